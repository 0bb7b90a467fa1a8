"""`kgqa cache`: what is kept that could be derived again, and how to be rid of it."""

from __future__ import annotations

import click

from kgqa.cli.options import JSON


@click.group("cache")
def command() -> None:
    """Look at or clear what was derived: tables of graphs, models, embeddings, the demo graph."""


def _open():
    from kgqa.methods.ask import cache_of
    from kgqa.settings import resolve

    return cache_of(resolve())


@command.command("info")
@JSON
def info(as_json: bool) -> None:
    """What is in the cache, how large, and when it was last used."""
    from kgqa.answer_json import json_text
    from kgqa.cache import age_words
    from kgqa.words import clean

    cache = _open()
    entries = cache.entries()
    total = sum(entry.bytes for entry in entries)
    if as_json:
        rows = [{"kind": e.kind, "name": e.name, "bytes": e.bytes, "used": e.used} for e in entries]
        data = {"folder": str(cache.folder), "bytes": total, "limit_bytes": cache.limit_bytes, "entries": rows}
        print(json_text(data, indent=2))
        return
    print(f"{cache.folder}: {_size(total)} of at most {_size(cache.limit_bytes)}")
    for entry in reversed(entries):
        print(f"  {entry.kind:<11}{_size(entry.bytes):>9}  {age_words(entry.used):<15} {clean(entry.name)}")


@command.command("clear")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["graphs", "models", "embeddings", "demo"]),
    help="Only this kind.",
)
def clear(kinds: tuple[str, ...]) -> None:
    """Remove what is in the cache. Everything comes back when it is needed; graphs you loaded are not in it."""
    from kgqa.cache import CLEARED

    print(f"{_size(_open().clear(kinds or CLEARED))} freed.")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
