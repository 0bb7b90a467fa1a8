"""`kgqa eval`: runs over the questions of a data set."""

from __future__ import annotations

import click

from kgqa.cli.lazy_group import LazyGroup

COMMANDS = {name: f"kgqa.cli.eval.{name}" for name in ("run", "resume", "status", "merge", "table")}


@click.command("eval", cls=LazyGroup, modules=COMMANDS)
def command() -> None:
    """Ask the questions of a data set and score the answers.

    \b
    Every answer is on the disk before it counts. Ctrl-C finishes the questions in flight; whatever
    ends a run, `kgqa eval resume` asks the remaining questions.

    \b
    Examples:
      kgqa eval run --dataset webqsp:WebQSP.test.json --graph http://127.0.0.1:8890/sparql --out runs/a
      kgqa eval run --dataset questions.jsonl.gz --graph mygraph/ --sample 200 --out runs/b
      kgqa eval run --method top-1,top-2,tog --llm openai:gpt-4.1-mini --dataset cwq:test.json --out runs/c
      kgqa eval resume runs/a
      kgqa report runs/a runs/b
    """
