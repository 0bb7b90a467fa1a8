"""`kgqa eval resume`: ask the remaining questions of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.console import ConsoleObserver, exit_code
from kgqa.cli.eval.options import run_options
from kgqa.cli.eval.results import print_results
from kgqa.cli.options import setting_option
from kgqa.evaluation.runs.resume import Changes, resume


@click.command("resume")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--retry",
    multiple=True,
    metavar="CLASS",
    help="also ask failed questions: `failed` for all, or a class of failure such as StoreTimeout; may be repeated",
)
@click.option("--trust", is_flag=True, help="use the settings in run.json although another user created the run")
@setting_option("llm.model")
@run_options
def command(
    folder: Path,
    retry: tuple[str, ...],
    trust: bool,
    concurrency: int | None,
    budget: float | None,
    keep_going: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Resume a run: ask the remaining questions with the original settings.

    Questions that failed because of an outage are asked too; other failed questions only with --retry. A language
    model given with --llm is recorded in run.json.
    """
    settings = {name.replace("__", "."): value for name, value in options.items()}
    changes = Changes(settings, concurrency=concurrency, budget=budget, keep_going=keep_going)
    results = resume(folder, changes, retry=retry, trust=trust, observer=ConsoleObserver())
    print_results([result.run for result in results], as_json)
    return exit_code(results)
