"""`kgqa score`: scores published predictions with kgqa's metrics and with those of the system that made them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import (
    JSON,
    Number,
    check_usage,
    print_result,
    setting_option,
    settings_from,
    verbosity_options,
    whole,
)
from kgqa.text.words import clean, counted

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
    help="how a language model judges the responses; may be repeated; evidence: against the supporting passages of the "
    "data set, or else against the quotes of the answers",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="PREDICTIONS",
    help="second file of predictions, or run, in the same format; a language model compares the two answer by answer",
)
@setting_option("llm.model")
@setting_option("llm.concurrency")
@setting_option("llm.replay")
@setting_option("llm.reask")
@click.option("--max-calls", type=whole(0), help="maximum number of calls to the judging language model [no limit]")
@click.option("--max-cost", type=Number(0), help="maximum cost of the judging language model in USD [no limit]")
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
    from kgqa.evaluation.datasets.registry import dataset_questions
    from kgqa.evaluation.judges.judge_predictions import evidence_of
    from kgqa.evaluation.published.predictions import PublishedError, read_published
    from kgqa.evaluation.published.rescoring import match, rescore

    questions = list(dataset_questions(dataset)) if dataset else None
    if format_ == "kgqa":
        file, against = _predictions_of(file), against and _predictions_of(against)
    predictions = list(read_published(file, format_))
    found = rescore(predictions, format_, questions, aliases=aliases, count_missing=count_missing)
    if found.unmatched and found.unmatched == len({each.id or each.question for each in predictions}):
        raise PublishedError(
            f"No question of {file} ({found.unmatched:,}) is in {dataset}.",
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
        check_usage(
            (
                "evidence" in judges and not any(evidence_of(each) for each, _ in here),
                "--judge evidence needs supporting passages (such as --dataset hotpotqa:FILE) or answers with quotes",
            )
        )
        options |= {"budget__calls": max_calls, "budget__cost": max_cost}
        judged, compared = _judged(here, there, judges, options)
    data = {"file": str(file), "format": format_, "dataset": dataset, "aliases": aliases, **_as_data(found)}
    data |= {"judges": judged} if judged else {}
    data |= {"against": {"file": str(against), **compared}} if compared else {}
    source = clean(dataset) if dataset else "in the file"
    lines = [
        f"{clean(str(file))}, format {format_}: {counted(found.n, 'question')}; gold answers: {source}",
        *_as_lines(found, aliases=aliases),
        *_judged_lines(judged),
        *(_against_lines(compared) if compared else ()),
    ]
    print_result(as_json, data, lines)


def _predictions_of(place: Path) -> Path:
    """Return the predictions of a run, given its folder; other files are returned as they are."""
    from kgqa.evaluation.runs.run_files import PREDICTIONS

    if not place.is_dir():
        return place
    inner = sorted(str(each.parent) for each in place.glob(f"*/{PREDICTIONS}"))
    several = not (place / PREDICTIONS).exists() and inner
    check_usage((several, f"{place} contains several runs. Give one of them: {', '.join(inner)}"))
    return place / PREDICTIONS


def _judged(
    here: Any, there: Any, judges: tuple[str, ...], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    from kgqa.evaluation.judges.judge_predictions import judge_against, judge_published
    from kgqa.llm.models import open_models
    from kgqa.llm.prompts import Prompts
    from kgqa.trace.trace import Budget, Trace

    settings = settings_from(options)
    models = open_models(settings)
    if models is None:
        raise click.UsageError("--judge and --against need a language model. Choose a language model: --llm MODEL")
    prompts = Prompts(Path(settings.llm.prompts) if settings.llm.prompts else None)
    budget = Budget(calls=settings.budget.calls, cost=settings.budget.cost)
    with closing(models):
        question_models = models.for_question(Trace(budget))
        asking: dict[str, Any] = {"models": question_models, "prompts": prompts, "reask": settings.llm.reask}
        judged = judge_published(here, judges, **asking)
        return judged, judge_against(here, there, **asking) if there is not None else {}


def _as_data(found: Any) -> dict[str, Any]:
    """Convert the scores of a file to plain JSON data."""
    sides = {
        side: {name: {part: _plain(getattr(mean, part)) for part in ("value", "low", "high")} for name, mean in means}
        for side, means in (("ours", found.ours.items()), ("theirs", found.theirs.items()))
    }
    names = ("unmatched", "unanswered", "repeated", "without_gold", "lists")
    return {
        "n": found.n,
        **sides,
        "reasons": [asdict(each) for each in found.reasons],
        **{name: getattr(found, name) for name in names},
        "constants": dict(found.constants),
    }


def _as_lines(found: Any, *, aliases: bool) -> list[str]:
    """Format the scores of a file and the reasons for differences between the metrics."""
    counts = (
        (found.unmatched, "predictions left out: question not in the data set"),
        (found.without_gold, "predictions left out: no gold answers"),
        (found.unanswered, "questions of the data set have no prediction"),
        (found.repeated, "predictions replaced by a later prediction with the same id"),
        (found.lists, "predictions in prose that were read as a list, because the list scores better"),
    )
    lines = [f"  {count:,} {text}" for count, text in counts if count]
    lines += ["", f"our metrics: whole answers, normalised{', aliases accepted' if aliases else ''}"]
    lines += [f"  {name:<16}{_points(value)}" for name, value in found.ours.items()]
    if found.theirs:
        lines += ["", "the project's own metrics"]
        lines += [f"  {name:<16}{_points(value)}" for name, value in found.theirs.items()]
    means = {name: value.value for side in (found.ours, found.theirs) for name, value in side.items()}
    for pair, reasons in groupby(found.reasons, key=lambda each: (each.theirs, each.ours)):
        left, right = (f"{name} {100 * means[name]:.1f}" for name in pair)
        lines += ["", f"{left} -> {right}, because"]
        lines += [f"  {each.points:+6.1f}  {each.questions:>5,}  {each.reason}" for each in reasons]
    constants = ", ".join(f'"{text}" {100 * value:.1f}' for text, value in found.constants.items())
    return [*lines, "", f"tog_em of constant answers with these gold answers: {constants}"]


def _judged_lines(judged: Mapping[str, Any]) -> list[str]:
    """Format each judge's mean over its readable verdicts, and the share of its verdicts that are unreadable."""
    lines = []
    for name, part in judged.items():
        lines += ["", f"judge: {name}, {part['n']:,} judged, {_percent(part['unparsed'])} of the verdicts unreadable"]
        lines += [f"  {key:<20}{_value(value)}" for key, value in part.items() if isinstance(value, dict)]
        lines += [f"  stopped: {clean(part['stopped'])}"] if part["stopped"] else []
    return lines


def _against_lines(found: Mapping[str, Any]) -> list[str]:
    """Format the win rates against the second file of predictions."""
    lines = ["", f"against the other file: {found['judged']:,} of {found['pairs']:,} pairs, each in both orders"]
    for name, part in found["dimensions"].items():
        elo = "-" if part["elo"] is None else f"{part['elo']:.0f}"
        lines.append(
            f"  {name:<20}{_percent(part['rate'])} won ({part['wins']} won, {part['ties']} tied, "
            f"{part['losses']} lost), Elo {elo}; {_percent(part['unparsed'])} unreadable, "
            f"{_percent(part['contradictory'])} changed with the order"
        )
    return lines + ([f"  stopped: {clean(found['stopped'])}"] if found["stopped"] else [])


def _points(value: Any) -> str:
    interval = f"  [{100 * value.low:.1f}, {100 * value.high:.1f}]" if math.isfinite(value.low) else ""
    return f"{100 * value.value:>6.1f}{interval}"


def _value(value: Mapping[str, Any]) -> str:
    if value["value"] is None:
        return "     -"
    interval = "" if value["low"] is None else f"  [{value['low']:.2f}, {value['high']:.2f}]"
    return f"{value['value']:>6.2f}{interval}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
