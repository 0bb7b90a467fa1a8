"""`kgqa eval`: the group of commands for runs over the questions in a data set."""

from __future__ import annotations

import click

from kgqa.cli.lazy_group import LazyGroup

COMMANDS = {
    "run": ("kgqa.cli.eval.run:command", "Start a run over the questions of a data set."),
    "resume": ("kgqa.cli.eval.resume:command", "Ask the remaining questions of a run."),
    "status": ("kgqa.cli.eval.status:command", "Show the progress and the scores of a run."),
    "merge": ("kgqa.cli.eval.merge:command", "Merge the shards of a run."),
    "table": (
        "kgqa.cli.eval.table:command",
        "Measure a table of the thesis and print it beside the published figures.",
    ),
}


@click.command("eval", cls=LazyGroup, lazy_commands=COMMANDS)
def command() -> None:
    """Ask the questions of a data set and score the answers.

    \b
    Ctrl-C waits for the questions in flight, then stops. However a run ended, `kgqa eval resume`
    asks the remaining questions; answers on disk are kept.

    \b
    Examples:
      kgqa eval run --dataset webqsp:WebQSP.test.json --graph http://127.0.0.1:8890/sparql --out runs/a
      kgqa eval run --dataset questions.jsonl.gz --graph mygraph/ --sample 200 --out runs/b
      kgqa eval run --method top-1,top-2,tog --llm openai:gpt-4.1-mini --dataset cwq:test.json --out runs/c
      kgqa eval resume runs/a
      kgqa report runs/a runs/b
    """
