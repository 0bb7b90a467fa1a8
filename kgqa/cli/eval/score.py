"""`kgqa score`: scores published predictions with kgqa's metrics and with those of the system that made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.answer_json import json_text
from kgqa.cli.eval import score_print
from kgqa.cli.options import JSON, setting_option, settings_from, verbosity_options
from kgqa.words import clean

FORMATS = ("pog", "tog", "rog", "gnn-rag", "aog", "kgqa")
JUDGES = ("correct", "answer", "evidence", "generation")


@click.command("score")
@click.argument("file", metavar="PREDICTIONS", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    required=True,
    help="format of PREDICTIONS, named after the system that wrote the file",
)
@click.option(
    "--dataset",
    metavar="NAME:FILE|FILE",
    help="questions with gold answers; not needed if PREDICTIONS contains gold answers",
)
@click.option("--aliases", is_flag=True, help="accept aliases of gold answers")
@click.option("--count-missing", is_flag=True, help="count a question of the data set as wrong if it has no prediction")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    type=click.Choice(JUDGES),
    help="how a language model judges the answers; may be repeated; evidence: needs a data set with passages",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="PREDICTIONS",
    help="second file of predictions in the same format; a language model compares the two files answer by answer",
)
@setting_option("llm.model")
@setting_option("llm.concurrency")
@setting_option("llm.replay")
@setting_option("llm.reask")
@click.option(
    "--max-calls", type=click.IntRange(min=0), help="maximum number of calls to the judging language model [no limit]"
)
@click.option(
    "--max-cost", type=click.FloatRange(min=0), help="maximum cost of the judging language model in USD [no limit]"
)
@JSON
@verbosity_options
def command(
    file: Path,
    format_: str,
    dataset: str | None,
    aliases: bool,
    count_missing: bool,
    judges: tuple[str, ...],
    against: Path | None,
    max_calls: int | None,
    max_cost: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Score PREDICTIONS: JSON with an object per line or one array, gzipped or not.

    Prints two sets of scores, and the reasons for their differences. "our metrics" (those of kgqa) compare whole
    answers after normalisation; "the project's own metrics" are defined by the system that made the predictions.
    docs/metrics.md explains each number.

    \b
    Fields read in each format:
      tog      question, results            the reply, with the answer in braces
      pog      question, results            a JSON text with A.Answer
      aog      question, ground_truth, Answer, correct
      rog      id, question, prediction, ground_truth (or ground_paths)
      gnn-rag  like rog
      kgqa     a run or its predictions.jsonl, or kgqa ask --json

    \b
    Examples:
      kgqa score predictions.jsonl --format gnn-rag
      kgqa score results.jsonl --format tog --dataset cwq:ComplexWebQuestions_test.json --aliases
      kgqa score runs/x/predictions.jsonl --format kgqa --json
      kgqa score a.jsonl --format rog --against b.jsonl --judge generation --llm openai:gpt-4.1-mini
    """
    from kgqa.evaluation.published.predictions import PublishedError, read_published
    from kgqa.evaluation.published.rescoring import match, rescore
    from kgqa.evaluation.runs.run_files import PREDICTIONS

    questions = _questions(dataset) if dataset else None
    if format_ == "kgqa" and file.is_dir():
        file = file / PREDICTIONS
    predictions = list(read_published(file, format_))
    found = rescore(predictions, format_, questions, aliases=aliases, count_missing=count_missing)
    if found.unmatched and found.unmatched == len({each.id or each.question for each in predictions}):
        raise PublishedError(
            f"None of the {found.unmatched:,} questions of {file} is in {dataset}.",
            "Give the data set of these questions: --dataset NAME:FILE",
        )
    if not found.n:
        raise PublishedError(
            f"{file} contains no gold answers.", "Give the questions with gold answers: --dataset NAME:FILE"
        )
    judged: dict[str, Any] = {}
    compared: dict[str, Any] = {}
    if judges or against:
        here, _ = match(predictions, questions)
        there = match(read_published(against, format_), questions)[0] if against else None
        if "evidence" in judges and not any(each.evidence for each, _ in here):
            raise click.UsageError(
                "--judge evidence needs a data set with supporting passages, for example --dataset hotpotqa:FILE"
            )
        options |= {"budget__calls": max_calls, "budget__cost": max_cost}
        judged, compared = _judged(here, there, judges, options)
    if as_json:
        data = {"file": str(file), "format": format_, "dataset": dataset, "aliases": aliases}
        more = {"judges": judged} if judged else {}
        more |= {"against": {"file": str(against), **compared}} if compared else {}
        print(json_text(data | score_print.as_data(found) | more, indent=2))
        return
    source = clean(dataset) if dataset else "in the file"
    print(f"{clean(str(file))}, format {format_}: {found.n:,} questions; gold answers: {source}")
    lines = score_print.as_lines(found, aliases=aliases) + score_print.judged_lines(judged)
    for line in lines + (score_print.against_lines(compared) if compared else []):
        print(line)


def _questions(source: str) -> list[Any]:
    from kgqa.evaluation.datasets.registry import dataset_questions

    return list(dataset_questions(source))


def _judged(
    here: Any, there: Any, judges: tuple[str, ...], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    from kgqa.evaluation.judges.judge_predictions import judge_against, judge_published
    from kgqa.llm.models import open_models
    from kgqa.llm.prompts import Prompts
    from kgqa.trace import Budget, Trace

    settings = settings_from(options)
    models = open_models(settings)
    if models is None:
        raise click.UsageError("--judge and --against need a language model. Choose a language model: --llm MODEL")
    prompts = Prompts(Path(settings["llm.prompts"]) if settings["llm.prompts"] else None)
    budget = Budget(calls=settings["budget.calls"], cost=settings["budget.cost"])
    try:
        asking: dict[str, Any] = {
            "models": models.for_question(Trace(budget)),
            "prompts": prompts,
            "reask": settings["llm.reask"],
        }
        judged = judge_published(here, judges, **asking)
        return judged, judge_against(here, there, **asking) if there is not None else {}
    finally:
        models.close()
