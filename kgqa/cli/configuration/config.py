"""`kgqa config`: show the value and the source of each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import click

from kgqa.cli.groups import HelpfulGroup
from kgqa.cli.options import JSON, graph_options, print_result, say, settings_from
from kgqa.errors import StoreError
from kgqa.settings.values import FILE_NAME, Settings, user_settings_file
from kgqa.text.words import clean

HIDDEN = "(hidden)"
"""What is shown in place of a secret."""


@click.group("config", cls=HelpfulGroup)
def command() -> None:
    """Show the settings."""


@command.command("show")
@graph_options
@JSON
def show(graph_path: str | None, as_json: bool, **options: Any) -> None:
    """Show every setting: its value, its source, and what it does.

    Sources, highest priority first: the command line, environment variables such as KGQA_EXPLORE_DEPTH, kgqa.toml in
    the working folder, your own kgqa.toml, the graph, the defaults. Without --graph, settings of the graph that
    `kgqa ask` would use are shown.
    """
    settings = settings_from(options, graph_path, installed=True)
    try:
        settings = settings.with_graph(_of_graph(settings))
    except StoreError as error:
        say(f"kgqa: settings stored in the graph are not shown: {error}")
    data = {
        s.key: {
            "value": HIDDEN if s.secret and settings.values[s.key] else settings.values[s.key],
            "from": settings.origins[s.key],
            "variable": s.variable,
            "help": s.help,
        }
        for s in settings.table.values()
        if not s.variant
    }
    print_result(as_json, data, _lines(data))


def _lines(settings: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for section, keys in groupby(settings, key=lambda key: key.partition(".")[0]):
        yield f"[{section}]"
        for key in keys:
            value, origin = settings[key]["value"], clean(settings[key]["from"])
            shown = "none" if value is None else clean(str(value))
            yield f"  {key.partition('.')[2]:<15} {shown:<12} {origin:<12} {settings[key]['help']}"
        yield ""
    yield f"Your own settings file: {user_settings_file()}; in the working folder: {FILE_NAME}"


def _of_graph(settings: Settings) -> dict[str, Any]:
    """Read the settings stored with a graph; a server stores none."""
    from kgqa.graph.opening import demo_folder, open_store
    from kgqa.graph.store import is_address
    from kgqa.methods.ask import cache_of
    from kgqa.storage.corpus_file import read_corpus_file

    place = settings.graph.path
    corpus = read_corpus_file(place)
    if is_address(corpus.location if corpus else place or ""):
        return {}
    with open_store(place or demo_folder(cache_of(settings))) as store:
        return {name: value for name, value in store.settings.items() if name != "schema"}
