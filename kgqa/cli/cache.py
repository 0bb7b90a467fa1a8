"""`kgqa cache`: show or clear the cache of derived data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from kgqa.cli.groups import HelpfulGroup
from kgqa.cli.options import JSON, print_result
from kgqa.settings.values import resolve
from kgqa.storage.cache import CLEARED
from kgqa.text.words import clean

if TYPE_CHECKING:
    from kgqa.storage.cache import Cache


@click.group("cache", cls=HelpfulGroup)
def command() -> None:
    """Show or clear the cache of derived data: tables of graphs, models, embeddings, the demo graph."""


def _open() -> Cache:
    from kgqa.methods.ask import cache_of  # imports modules that `kgqa cache --help` does not need

    return cache_of(resolve())


@command.command("info")
@JSON
def info(as_json: bool) -> None:
    """List the entries of the cache with their sizes and last use."""
    cache = _open()
    entries = cache.entries()
    total = sum(entry.bytes for entry in entries)
    rows = [{"kind": e.kind, "name": e.name, "bytes": e.bytes, "used": e.used} for e in entries]
    data = {"folder": str(cache.folder), "bytes": total, "limit_bytes": cache.limit_bytes, "entries": rows}
    lines = [
        f"{cache.folder}: {_size(total)} of at most {_size(cache.limit_bytes)}",
        *(
            f"  {each.kind:<11}{_size(each.bytes):>9}  {age_words(each.used):<15} {clean(each.name)}"
            for each in reversed(entries)
        ),
    ]
    print_result(as_json, data, lines)


@command.command("clear")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["graphs", "models", "embeddings", "demo"]),
    help="Clear only entries of this kind; repeat the option for several kinds.",
)
def clear(kinds: tuple[str, ...]) -> None:
    """Clear the cache. kgqa creates its entries again when needed. Graphs that you loaded are not affected."""
    print(f"Freed {_size(_open().clear(kinds or CLEARED))}.")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def age_words(seconds_since_epoch: float) -> str:
    """Return how long ago a time was, for example `2 days ago`."""
    seconds = max(0.0, time.time() - seconds_since_epoch)
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
