"""`kgqa config`: which settings are in force, and where each came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import JSON, graph_options, say, settings_from
from kgqa.errors import StoreError
from kgqa.settings import FILE_NAME, SETTINGS, Settings, user_settings_file


@click.group("config")
def command() -> None:
    """Look at the settings."""


@command.command("show")
@graph_options
@JSON
def show(graph_path: str | None, as_json: bool, **options: Any) -> None:
    """Every setting: its value, where it came from, and what it does.

    A value comes from the command line, else a variable such as KGQA_EXPLORE_DEPTH, else kgqa.toml in the
    working folder, else your own kgqa.toml, else the graph, else the default. The graph is the one of --graph,
    or the one that `kgqa ask` would ask.
    """
    from kgqa.answer_json import json_text
    from kgqa.words import clean

    settings = settings_from(options, graph_path)
    try:
        settings = settings.with_graph(_of_graph(settings))
    except StoreError as error:
        say(f"kgqa: the graph's own settings are not shown: {error}")
    if as_json:
        data = {
            s.key: {"value": settings[s.key], "from": settings.origins[s.key], "variable": s.variable, "help": s.help}
            for s in SETTINGS
        }
        print(json_text(data, indent=2))
        return
    section = ""
    for setting in SETTINGS:
        head, _, name = setting.key.partition(".")
        if head != section:
            print(("\n" if section else "") + f"[{head}]")
            section = head
        value = settings[setting.key]
        shown = "none" if value is None else clean(str(value))
        print(f"  {name:<15} {shown:<12} {clean(settings.origins[setting.key]):<12} {setting.help}")
    print(f"\nYour own file: {user_settings_file()}; in a working folder: {FILE_NAME}")


def _of_graph(settings: Settings) -> dict[str, Any]:
    """The settings that a graph's folder keeps. Nothing of the graph itself is opened."""
    from kgqa.graph.demo import demo_folder
    from kgqa.graph.embedded.folder import GraphFolder
    from kgqa.graph.store import is_address
    from kgqa.methods.ask import cache_of

    place = settings["graph.path"]
    if place and is_address(place):
        return {}  # a server keeps none
    return GraphFolder(Path(place) if place else demo_folder(cache_of(settings))).meta().settings
