"""`kgqa doctor`: whether a graph, a model and the settings will do, and what to do about what will not."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Any

import click

from kgqa.cli.options import JSON, graph_options, say, setting_option, settings_from, verbosity, verbosity_options

NARROWEST, WIDEST = 60, 120
_NAME, _VERDICT = 19, 9
_WORDS = {"failed": "FAILED"}


@click.command("doctor")
@graph_options
@setting_option("graph.schema", "--schema", metavar="NAME|FILE")
@setting_option("endpoint.profile", "--profile")
@setting_option("ask.method", "--method")
@setting_option("ask.preset", "--preset")
@setting_option("llm.model", "--llm", metavar="MODEL")
@click.option("--no-model", is_flag=True, help="Do not ask the language model, which costs a few calls.")
@JSON
@verbosity_options
def command(graph_path: str | None, no_model: bool, as_json: bool, **options: Any) -> int:
    """Examine a graph, a language model and the settings, and say what is wrong and what helps.

    Each check is ok, a warning (results can be trusted, but come slowly or in part), failed (they cannot), or skipped.
    Nothing is written to the graph. A language model is asked at most seven times.

    \b
    Examples:
      kgqa doctor
      kgqa doctor --graph http://127.0.0.1:8890/sparql --graph-iri http://freebase.com
      kgqa doctor --llm http://127.0.0.1:8000/v1 --json

    \b
    Exit codes: 0 an evaluation may be trusted, 1 it cannot be, 2 wrong usage, 130 stopped by Ctrl-C.
    """
    from kgqa.doctor.examination import Examination

    if graph_path is not None and not graph_path.strip():
        raise click.UsageError("--graph is empty: give a folder or an address, or leave it out for the demo graph.")
    line = _Line()
    examination = Examination(settings_from(options, graph_path), model=not no_model, watch=line.show, say=line.say)
    try:
        health = examination.run()
    except KeyboardInterrupt:
        line.clear()
        _print(examination.health(), as_json)
        say("kgqa: Stopped; what was found before is printed.")
        raise KeyboardInterrupt("said") from None
    finally:
        line.clear()
    _print(health, as_json)
    return 0 if health.trusted else 1


class _Line:
    """One line on the terminal that says what is looked at; nothing where there is no terminal."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty() and verbosity() >= 0
        self._dirty = False

    def show(self, name: str) -> None:
        if self._shows:
            print(f"\r\x1b[KLooking at: {name}", end="", file=sys.stderr, flush=True)
            self._dirty = True

    def say(self, text: str) -> None:
        self.clear()
        say(text)

    def clear(self) -> None:
        if self._dirty:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._dirty = False


def _print(health, as_json: bool) -> None:
    from kgqa.answer_json import json_text
    from kgqa.model import to_json

    if as_json:
        data = {
            "trusted": health.trusted,
            "complete": health.complete,
            "seconds": round(health.seconds, 3),
            "graph": to_json(health.graph),
            "checks": to_json(health.checks),
        }
        print(json_text(data, indent=2))
        return
    skipped: dict[str, list[str]] = {}
    for check in health.checks:
        if check.verdict == "skipped":
            skipped.setdefault(check.found, []).append(check.name)
        else:
            _print_row(check.name, _WORDS.get(check.verdict, check.verdict), check.found, check.remedy)
    for why, names in skipped.items():
        _print_row("", "skipped", f"{why} ({', '.join(names)})")
    print(f"\n{_summary(health)}")


def _print_row(name: str, verdict: str, found: str, remedy: str = "") -> None:
    from kgqa.words import clean

    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
    indent = " " * (_NAME + _VERDICT)
    lines = [(f"{name:<{_NAME}}{verdict:<{_VERDICT}}", clean(found))]
    if remedy:
        lines.append((indent, f"→ {clean(remedy)}"))
    for start, text in lines:
        # addresses and IRIs stay whole, to be copied
        whole = {"break_long_words": False, "break_on_hyphens": False}
        print(textwrap.fill(text, width, initial_indent=start, subsequent_indent=indent, **whole))


def _summary(health) -> str:
    counted = {verdict: health.count(verdict) for verdict in ("ok", "warning", "failed", "skipped")}
    words = {"warning": "warning" if counted["warning"] == 1 else "warnings"}
    counts = ", ".join(f"{count} {words.get(verdict, verdict)}" for verdict, count in counted.items() if count)
    if not health.complete:
        verdict = "The examination was stopped, so nothing can be said on the whole"
    elif health.trusted:
        verdict = "An evaluation on this may be trusted"
        verdict += ", but the model was not looked at" if "model" in health.left_out else ""
    else:
        verdict = "An evaluation on this cannot be trusted"
        verdict += f", as nothing is known of {', '.join(health.unseen)}" if health.unseen else ""
    return f"{verdict}: {counts} ({health.seconds:.1f} s)."
