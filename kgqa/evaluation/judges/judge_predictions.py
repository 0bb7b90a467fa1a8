"""Lets a language model judge published predictions, with results as plain JSON data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from kgqa.evaluation.judges.correctness import judge_correct
from kgqa.evaluation.judges.pairwise import PAIR_DIMENSIONS, Pair, elo_ratings, judge_pairs, win_rate
from kgqa.evaluation.judges.ratings import DIMENSIONS, Kind, rate_responses, summarise_ratings
from kgqa.evaluation.judges.responses import JudgedResponse
from kgqa.evaluation.metrics.measures import mean
from kgqa.evaluation.metrics.scores import gold_texts, response_text
from kgqa.evaluation.published.predictions import Prediction, Readings
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.trace.trace import BudgetExhausted

BATCH = 8
"""Number of responses judged at once. If the budget is spent during a batch, the verdicts of this batch are lost."""
T = TypeVar("T")
V = TypeVar("V")


def judge_published(
    pairs: Sequence[tuple[Prediction, Readings]],
    judges: Sequence[str],
    *,
    models: QuestionModels,
    prompts: Prompts,
    reask: int = 1,
) -> dict[str, Any]:
    """Judge predictions until the budget is spent.

    Args:
        judges: `correct` (see `judge_correct`), or kinds of `ratings.DIMENSIONS`.

    Returns:
        For each judge `{n, unparsed, stopped, ...}`: number of judged predictions, share of unreadable replies, why
        the judging ended early (empty if it did not), and means with intervals.

    Raises:
        ModelUnavailable: the model cannot be reached.
    """
    responses = [_judged(published, readings) for published, readings in pairs]
    asking: dict[str, Any] = {"models": models, "prompts": prompts, "reask": reask}
    found: dict[str, Any] = {}
    for judge in judges:
        if judge == "correct":
            verdicts, stopped = _batches([r for r in responses if r.gold], lambda part: judge_correct(part, **asking))
            known = [float(each) for each in verdicts if each is not None]
            unparsed = 1 - len(known) / len(verdicts) if verdicts else None
            found[judge] = {"n": len(verdicts), "unparsed": unparsed, "right": mean(known).as_json()}
        else:
            kind: Kind = judge  # type: ignore[assignment]
            ratings, stopped = _batches(responses, partial(rate_responses, kind, **asking))
            summary = summarise_ratings(kind, ratings)
            means = {name: summary.dimensions[name].as_json() for name in DIMENSIONS[kind]}
            found[judge] = {"n": summary.n, "unparsed": summary.unparsed, "score": summary.score.as_json(), **means}
        found[judge]["stopped"] = stopped
    return found


def judge_against(
    first: Sequence[tuple[Prediction, Readings]],
    second: Sequence[tuple[Prediction, Readings]],
    *,
    models: QuestionModels,
    prompts: Prompts,
    reask: int = 1,
) -> dict[str, Any]:
    """Let a language model compare two files of predictions on the questions that both share.

    Returns:
        Win rates of the first file in every dimension, and its Elo ratings with the second file as reference.

    Raises:
        ModelUnavailable: the model cannot be reached.
    """
    other = {_name(published): published for published, _ in second}
    shared = [(published, other[_name(published)]) for published, _ in first if _name(published) in other]
    pairs = [Pair(one.question or another.question, _response(one), _response(another)) for one, another in shared]
    asked, stopped = _batches(pairs, lambda part: judge_pairs(part, models=models, prompts=prompts, reask=reask))
    rates = {name: win_rate(asked, name) for name in PAIR_DIMENSIONS}
    elo = {name: elo_ratings({"first": each.rate}, reference="second")["first"] for name, each in rates.items()}
    dimensions = {name: asdict(each) | {"elo": elo[name]} for name, each in rates.items()}
    return {"pairs": len(pairs), "judged": len(asked), "stopped": stopped, "dimensions": dimensions}


def _batches(items: Sequence[T], ask: Callable[[Sequence[T]], Sequence[V]]) -> tuple[list[V], str]:
    found: list[V] = []
    try:
        for start in range(0, len(items), BATCH):
            found += ask(items[start : start + BATCH])
    except BudgetExhausted as error:
        return found, str(error)
    return found, ""


def _judged(published: Prediction, readings: Readings) -> JudgedResponse:
    gold = tuple(gold_texts(readings, aliases=False))
    return JudgedResponse(published.question, _response(published), gold, evidence_of(published))


def evidence_of(published: Prediction) -> tuple[str, ...]:
    """Return the texts that the judge compares a response with.

    These are the supporting passages of the data set, or else the verified quotes and the statements that the answer
    itself rests on.
    """
    if published.evidence or published.answer is None:
        return published.evidence
    given = [each for each in published.answer.get("evidence") or () if isinstance(each, Mapping)]
    texts = [str(each.get("words") or "") for each in given if each.get("verified", True)]
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def _response(published: Prediction) -> str:
    if published.answer is not None:
        return response_text(published.answer)
    return published.raw.replace("\n", "; ")


def _name(published: Prediction) -> str:
    return published.id or published.question
