"""Options that several commands share, and functions that convert options to settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from kgqa.plugins import known_settings, plugin_names
from kgqa.settings.setting import LARGEST, PluginKind, value_of_text
from kgqa.settings.table import own_settings
from kgqa.settings.values import Settings, resolve
from kgqa.text.hints import repeat_options
from kgqa.text.words import clean, safe_text

Command = TypeVar("Command", bound=Callable[..., Any])


class Number(click.FloatRange):
    """A finite number of an option, in a range that includes its limits."""

    def __init__(self, least: float = -LARGEST, most: float = LARGEST) -> None:
        super().__init__(least, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return self.fail(f"{value} is not a number.", param, ctx) if number != number else number


def whole(least: int = 0, most: int = LARGEST) -> click.IntRange:
    """Return the type of an option that takes a whole number in a range that includes its limits."""
    return click.IntRange(least, most)


_GRAPH = click.option(
    "--graph",
    "graph_path",
    metavar="FOLDER|URL|NAME:REST",
    help="graph folder, corpus folder, URL of a SPARQL endpoint, or NAME:REST (a store of another package, such as "
    "rdflib:file.ttl). [the bundled demo graph]",
)
JSON = click.option("--json", "as_json", is_flag=True, help="print JSON, for scripts")


def _set_verbosity(ctx: click.Context, parameter: click.Parameter, value: int | bool) -> None:
    if value:
        ctx.find_root().ensure_object(dict)
        ctx.find_root().obj["verbosity"] = -1 if parameter.name == "quiet" else int(value)
        if parameter.name == "verbose":
            import logging  # not needed for `--version`

            logging.basicConfig()
            logging.getLogger("kgqa").setLevel(logging.DEBUG)


def combined(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds several options, which the help lists in this order."""

    def add(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return add


_QUIET = click.option(
    "-q", "--quiet", is_flag=True, help="no progress and no notes", expose_value=False, callback=_set_verbosity
)
_VERBOSE = click.option(
    "-v",
    "--verbose",
    count=True,
    help="more messages; after an internal error or an error of another package, the traceback",
    expose_value=False,
    callback=_set_verbosity,
)
# both may be given before or after the name of a command
verbosity_options = combined(_VERBOSE, _QUIET)


_HEADINGS = {
    "graph": "Graph", "graph_path": "Graph", "endpoint": "Graph",
    "ask": "Method", "as_published": "Method", "explore": "Search", "rank": "Ranking of paths",
    "llm": "Language model", "replay_only": "Language model", "corpus": "Facts from texts",
    "budget": "Limits", "max_cost": "Limits", "concurrency": "Limits", "keep_going": "Limits",
    "assignments": "Other",
    "as_json": "Output", "show_trace": "Output", "show_sparql": "Output", "iris": "Output", "verbose": "Output",
    "quiet": "Output",
}  # fmt: skip
"""The headings in the help of a GroupedCommand, in order: by the first part of a setting's key, or by parameter."""


class GroupedCommand(click.Command):
    """A command whose help lists its many options under headings.

    Args:
        heading: heading of the options that only commands like this one have; they come first.
    """

    def __init__(self, *args: Any, heading: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.heading = heading

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        found: dict[str, list[tuple[str, str]]] = {name: [] for name in (self.heading, *_HEADINGS.values())}
        for parameter in self.get_params(ctx):
            section = (parameter.name or "").partition("__")[0]
            name = "Output" if "--help" in parameter.opts else _HEADINGS.get(section, self.heading)
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                found[name].append(record)
        for name, records in found.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class _PluginName(click.types.StringParamType):
    """The name of a plugin; the help and the shell completion list the names."""

    def __init__(self, kind: PluginKind) -> None:
        self._kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(plugin_names(self._kind))}]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in plugin_names(self._kind) if name.startswith(incomplete)]


def setting_option(key: str, *names: str) -> Callable[[Command], Command]:
    """Return a click option with the help, type and choices of a setting; `names` replace the setting's own options."""
    setting = known_settings({})[0][key]
    parameter = key.replace(".", "__")
    kind: Any = click.Choice(setting.choices) if setting.choices and setting.kind is str else setting.kind
    if setting.plugin:
        kind = _PluginName(setting.plugin)
    default = "none" if setting.default is None else setting.default
    return click.option(
        *(names or setting.option.split()),
        parameter,
        type=kind,
        default=None,
        help=f"{setting.help}. [{default}]",
        metavar=setting.metavar,
    )


def graph_options(function: Command) -> Command:
    """Add --graph, --graph-iri, --view and --languages."""
    options = (setting_option(key) for key in ("graph.iri", "graph.view", "graph.languages"))
    return combined(_GRAPH, *options)(function)


_ELSEWHERE = (
    "graph.iri",
    "graph.view",
    "graph.languages",
    "endpoint.profile",
    "llm.concurrency",
    "llm.replay_only",
)
"""Settings whose option `asking_options` does not add, or adds as a flag."""


def asking_options(function: Command) -> Command:
    """Add all options for settings of question answering."""
    text = "value of any other setting, such as tog3.rounds=2; repeat for several (see kgqa config show)"
    published = "the published method without changes (preset as-published); not for top, but for top-1 and top-2"
    replay = "take every reply from the --replay file, and never call the language model"
    return combined(
        *(setting_option(key) for key, each in own_settings().items() if each.option and key not in _ELSEWHERE),
        click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help=text),
        click.option("--as-published", is_flag=True, help=published),
        click.option("--replay-only", is_flag=True, help=replay),
    )(function)


def given_options(options: dict[str, Any], graph_path: str | None = None) -> dict[str, Any]:
    """Return the settings given by options of the command line, by key, as `resolve` takes them."""
    given = {name.replace("__", "."): value for name, value in options.items() if "__" in name}
    given["graph.path"] = graph_path
    assigned: dict[str, Any] = dict(each.partition("=")[::2] for each in options.get("assignments", ()))
    for key, setting in known_settings({**given, **assigned})[0].items() if assigned else ():
        if key in assigned:
            assigned[key] = value_of_text(setting, assigned[key], f"--set {key}")
    given = {key: value for key, value in given.items() if value is not None or key not in assigned}
    repeat_graph({**assigned, **given})
    given |= {flag: True for flag in ("as_published", "replay_only") if options.get(flag)}
    return {**assigned, **given}


def repeat_graph(given: dict[str, Any]) -> None:
    """Let the commands in hints read the graph that these settings choose."""
    graph = ("graph.path", "graph.iri", "graph.view", "graph.schema", "graph.languages")
    profile = given.get("endpoint.profile")
    setting = [("--set", f"endpoint.profile={profile}")]
    others = {"doctor": [("--profile", profile)], "ask": setting, "chat": setting, "serve": setting} if profile else {}
    repeat_options(_chosen(given, *graph), others)


def settings_from(options: dict[str, Any], graph_path: str | None = None, *, installed: bool = False) -> Settings:
    """Resolve the settings, with the options given on the command line; see `resolve` for `installed`."""
    settings = resolve(given_options(options, graph_path), installed=installed)
    for note in settings.notes:
        say(f"kgqa: {note}")
    return settings


def _chosen(given: dict[str, Any], *keys: str) -> list[tuple[str, str]]:
    """Return the options that were given for some settings, by their names."""
    names = {key: (each.option or "--graph").split()[0] for key, each in own_settings().items()}
    return [(names[key], str(given[key])) for key in keys if given.get(key) is not None]


def verbosity() -> int:
    """Return -1 for quiet, 0 for normal, and 1 or more for verbose output."""
    context = click.get_current_context()
    return int((context.find_root().obj or {}).get("verbosity", 0))


def note_printer() -> Callable[[str], None]:
    """Return a function that prints a note for the user, as `say` does, from any thread."""
    context = click.get_current_context()

    def note(message: str) -> None:
        with context.scope(cleanup=False):  # click keeps a separate context for each thread
            say(f"kgqa: {message}")

    return note


def say(text: str, *, also_quiet: bool = False) -> None:
    """Print a note on standard error; with --quiet, print it only if `also_quiet` is true."""
    if verbosity() >= 0 or also_quiet:
        print(safe_text(text), file=sys.stderr, flush=True)


def print_result(as_json: bool, data: object, lines: Iterable[str]) -> None:
    """Print a JSON value, or, unless `as_json`, lines of text."""
    from kgqa.storage.answer_json import json_text  # imports modules that help texts do not need

    for line in [json_text(data, indent=2)] if as_json else lines:
        print(line)


def check_usage(*mistakes: tuple[object, str]) -> None:
    """Raise UsageError with the message of the first mistake that was made."""
    for made, message in mistakes:
        if made:
            raise click.UsageError(message)


@contextmanager
def stop_message(text: str = "") -> Iterator[None]:
    """On Ctrl-C, print what is kept and how to resume: `text`, or else the text of the exception."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        say(f"\nkgqa: Stopped. {clean(text or str(stopped))}".rstrip())
        raise KeyboardInterrupt("reported") from None
