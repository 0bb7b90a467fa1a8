"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from kgqa.settings import BY_KEY, Settings, resolve
from kgqa.words import safe_text

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


_ASKING: tuple[tuple[str, str, str], ...] = (
    ("ask.method", "--method", ""),
    ("explore.depth", "--depth", ""),
    ("explore.beam", "--beam", ""),
    ("explore.mediator_hop", "--mediator-hop", ""),
    ("explore.shape", "--shape --explore", ""),
    ("explore.stop", "--stop", ""),
    ("explore.lengths", "--lengths", ""),
    ("explore.combine", "--combine", ""),
    ("explore.mask", "--mask", ""),
    ("graph.schema", "--schema", "NAME|FILE"),
    ("graph.walks", "--walks", ""),
    ("graph.frontier_cap", "--frontier-cap", ""),
    ("graph.timeout", "--timeout", ""),
    ("rank.wording", "--wording", ""),
    ("rank.prefilter", "--prefilter", ""),
    ("rank.pool", "--pool", ""),
    ("rank.tournament", "--tournament", ""),
    ("rank.votes", "--votes", ""),
    ("rank.chooser", "--chooser", ""),
    ("rank.ranker", "--ranker", "FILE"),
    ("rank.accept", "--accept", ""),
    ("rank.lexical_weight", "--lexical-weight", ""),
    ("rank.chunk", "--chunk", ""),
    ("rank.depth_penalty", "--depth-penalty", ""),
    ("rank.embeddings", "--embeddings", ""),
    ("rank.model", "--model", "NAME|FOLDER"),
    ("rank.seed", "--seed", ""),
    ("ask.preset", "--preset", ""),
    ("ask.compose", "--compose", ""),
    ("ask.on_exhausted", "--on-exhausted", ""),
    ("explore.prune_by", "--prune-by", ""),
    ("explore.clauses", "--clauses", ""),
    ("llm.model", "--llm", "MODEL"),
    ("llm.compare", "--compare", ""),
    ("llm.mask", "--llm-mask", ""),
    ("llm.temperature", "--temperature", ""),
    ("llm.max_tokens", "--max-reply-tokens", ""),
    ("llm.replay", "--replay", "FILE"),
    ("llm.reask", "--reask", ""),
    ("llm.prompts", "--prompts", "FOLDER"),
    ("budget.seconds", "--max-seconds", ""),
    ("budget.queries", "--max-queries", ""),
    ("budget.calls", "--max-calls", ""),
    ("budget.tokens", "--max-tokens", ""),
    ("budget.cost", "--max-cost", ""),
)
"""What can be said of how questions are asked: the setting, its options, what stands for its value."""


def asking_options(function: Callable) -> Callable:
    """All options that say how questions are asked."""
    flags = (
        ("--replay-only", "Call no model: every reply has to be in the --replay file."),
        ("--as-published", "Short for --preset as-published: no departure of ours."),
    )
    for name, text in flags:
        function = click.option(name, is_flag=True, help=text)(function)
    for key, names, metavar in reversed(_ASKING):
        more = {"metavar": metavar} if metavar else {}
        function = setting_option(key, *names.split(), **more)(function)
    return function


def settings_from(options: dict[str, Any], graph_path: str | None = None) -> Settings:
    """Resolve the settings with what was given on the command line."""
    given = {name.replace("__", "."): value for name, value in options.items() if "__" in name}
    given["graph.path"] = graph_path
    if options.get("as_published"):
        given["ask.preset"] = "as-published"
    if options.get("replay_only"):
        given["llm.replay_only"] = "on"
    return resolve(given)


def verbosity() -> int:
    """-1 quiet, 0 normal, 1 and more verbose."""
    context = click.get_current_context()
    return (context.find_root().obj or {}).get("verbosity", 0)


def note_printer() -> Callable[[str], None]:
    """Return a function that prints a note for the user, as `say` does, from any thread."""
    context = click.get_current_context()

    def note(message: str) -> None:
        with context.scope(cleanup=False):  # each thread has a context of its own
            say(f"kgqa: {message}")

    return note


def say(text: str, *, also_quiet: bool = False) -> None:
    """Tell the person something about the work, unless they asked for quiet; with `also_quiet` even then."""
    if verbosity() >= 0 or also_quiet:
        print(safe_text(text), file=sys.stderr, flush=True)
