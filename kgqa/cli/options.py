"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from kgqa.settings import BY_KEY, Settings, resolve

_PLACE = click.option(
    "--graph",
    "graph_path",
    metavar="FOLDER|URL",
    help="Graph folder, or address of a SPARQL endpoint; without it the bundled demo graph.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def _louder(ctx: click.Context, parameter: click.Parameter, value: int | bool) -> None:
    if value:
        ctx.find_root().ensure_object(dict)
        ctx.find_root().obj["verbosity"] = -1 if parameter.name == "quiet" else int(value)


def verbosity_options(function: Callable) -> Callable:
    """-v and -q after a command's name, as well as before it."""
    for names, attributes, text in (
        (("-q", "--quiet"), {"is_flag": True}, "Say less: no progress, no notes."),
        (("-v", "--verbose"), {"count": True}, "Say more; with an internal error, show the traceback."),
    ):
        function = click.option(*names, **attributes, help=text, expose_value=False, callback=_louder)(function)
    return function


def setting_option(key: str, *names: str, **attributes: Any) -> Callable:
    """A click option for a setting: its help, type and choices come from the table of settings."""
    setting = BY_KEY[key]
    parameter = key.replace(".", "__")
    kind = click.Choice(setting.choices) if setting.choices and setting.kind is str else setting.kind
    default = "none" if setting.default is None else setting.default
    help_text = f"{setting.help[0].upper()}{setting.help[1:]}. [{default}]"
    return click.option(*names, parameter, type=kind, default=None, help=help_text, **attributes)


def graph_options(function: Callable) -> Callable:
    """--graph, which named graphs of it, and the languages of its names."""
    function = setting_option("graph.languages", "--languages", metavar="LIST")(function)
    return _PLACE(setting_option("graph.iri", "--graph-iri", metavar="IRI")(function))


def settings_from(options: dict[str, Any], graph_path: str | None = None) -> Settings:
    """Resolve the settings with what was given on the command line."""
    given = {name.replace("__", "."): value for name, value in options.items() if "__" in name}
    given["graph.path"] = graph_path
    return resolve(given)


def verbosity() -> int:
    """-1 quiet, 0 normal, 1 and more verbose."""
    context = click.get_current_context()
    return (context.find_root().obj or {}).get("verbosity", 0)


def say(text: str) -> None:
    """Tell the person something about the work, unless they asked for quiet."""
    if verbosity() >= 0:
        print(text, file=sys.stderr, flush=True)
