"""`kgqa doctor`: check a graph, a language model and the settings, and suggest how to solve problems."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from functools import partial
from typing import Any, get_args

import click
from msgspec import to_builtins

from kgqa.cli.bars import open_bar
from kgqa.cli.options import (
    JSON,
    check_usage,
    graph_options,
    print_result,
    say,
    setting_option,
    settings_from,
    verbosity_options,
)
from kgqa.doctor.subject import LEFT_OUT, Health, Verdict
from kgqa.text.words import clean, counted

NARROWEST, WIDEST = 60, 120
_NAME, _VERDICT = 19, 9


@click.command("doctor")
@graph_options
@setting_option("graph.schema")
@setting_option("endpoint.profile")
@setting_option("ask.method")
@setting_option("ask.preset")
@setting_option("llm.model")
@click.option("--no-model", is_flag=True, help="Skip the checks of the language model, which cost a few calls.")
@JSON
@verbosity_options
def command(graph_path: str | None, no_model: bool, as_json: bool, **options: Any) -> int:
    """Check a graph, a language model and the settings, and suggest how to solve problems.

    The result of a check is ok, warning (answers can be trusted, but may be slow or incomplete), failed (answers
    cannot be trusted), or skipped. The checks do not write to the graph, and call the language model at most seven
    times.

    \b
    Examples:
      kgqa doctor
      kgqa doctor --graph http://127.0.0.1:8890/sparql --graph-iri http://freebase.com
      kgqa doctor --llm http://127.0.0.1:8000/v1 --json

    \b
    Exit codes: 0 an evaluation on this graph can be trusted, 1 it cannot be trusted, 2 wrong usage, 130 stopped by
    Ctrl-C.
    """
    from kgqa.doctor.examination import examine

    check_usage(
        (
            graph_path is not None and not graph_path.strip(),
            "--graph is empty. Give a folder or a URL, or omit it for the demo graph.",
        )
    )
    settings = settings_from(options, graph_path)
    with open_bar(bar_format="Checking: {desc}", leave=False) as line:

        def say_above(text: str) -> None:
            line.clear()
            say(text)

        health = examine(settings, asks_model=not no_model, watch=line.set_description_str, say=say_above)
    data = {
        "trusted": health.trusted,
        "complete": health.complete,
        "seconds": round(health.seconds, 3),
        "graph": to_builtins(health.graph),
        "checks": to_builtins(health.checks),
    }
    print_result(as_json, data, _lines(health))
    if not health.complete:
        say("kgqa: Stopped. Only the results of finished checks are printed.")
        raise KeyboardInterrupt("reported")
    return 0 if health.trusted else 1


def _lines(health: Health) -> Iterator[str]:
    skipped: dict[str, list[str]] = {}
    for check in health.checks:
        if check.verdict == "skipped":
            skipped.setdefault(check.found, []).append(check.name)
        else:
            yield _row(check.name, check.verdict.replace("failed", "FAILED"), check.found, str(check.remedy))
    yield from (_row("", "skipped", f"{why} ({', '.join(names)})") for why, names in skipped.items())
    yield f"\n{_summary(health)}"


def _row(name: str, verdict: str, found: str, remedy: str = "") -> str:
    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
    indent = " " * (_NAME + _VERDICT)
    lines = {f"{name:<{_NAME}}{verdict:<{_VERDICT}}": found, **({indent: f"→ {remedy}"} if remedy else {})}
    # do not break URLs and IRIs, so that users can copy them
    wrap = partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap(clean(text), initial_indent=start, subsequent_indent=indent) for start, text in lines.items())


def _summary(health: Health) -> str:
    verdicts = [check.verdict for check in health.checks]
    counts = {verdict: verdicts.count(verdict) for verdict in get_args(Verdict)}
    words = [counted(n, word) if word == "warning" else f"{n} {word}" for word, n in counts.items() if n]
    unchecked = any(check.found == LEFT_OUT for check in health.checks)
    unseen = f", because these checks could not be run: {', '.join(health.unseen)}" if health.unseen else ""
    verdict = f"An evaluation on this graph cannot be trusted{unseen}"
    if health.trusted:
        verdict = "An evaluation on this graph can be trusted"
        verdict += ", but the language model was not checked" if unchecked else ""
    elif not health.complete:
        verdict = "Stopped before the end of the checks, so there is no overall result"
    return f"{verdict}: {', '.join(words)} ({health.seconds:.1f} s)."
