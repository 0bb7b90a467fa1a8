"""`kgqa config`: which settings are in force, and where each came from."""

from __future__ import annotations

import click

from kgqa.cli.options import JSON
from kgqa.settings import FILE_NAME, SETTINGS, resolve, user_settings_file


@click.group("config")
def command() -> None:
    """Look at the settings."""


@command.command("show")
@JSON
def show(as_json: bool) -> None:
    """Every setting: its value, where it came from, and what it does.

    A value comes from the command line, else a variable such as KGQA_EXPLORE_DEPTH, else kgqa.toml in the
    working folder, else your own kgqa.toml, else the graph, else the default.
    """
    from kgqa.report.answer import json_text
    from kgqa.words import clean

    settings = resolve()
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
