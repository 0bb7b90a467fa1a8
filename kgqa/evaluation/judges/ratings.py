"""Ratings of responses from 0 to 10 by a language model, in several dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from kgqa.evaluation.judges.responses import MAX_SHOWN, NO_RESPONSE, JudgedResponse
from kgqa.evaluation.metrics.measures import Mean, mean
from kgqa.llm.asking import ask
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.json_values import Reading, find_key, json_values, last_part, plain_text
from kgqa.llm.replies.reply import Reply

Kind = OneOf["answer", "evidence", "generation"]
DIMENSIONS: Mapping[Kind, tuple[str, ...]] = {
    "answer": ("correctness", "logical coherence", "comprehensiveness"),
    "evidence": ("relevance", "knowledgeability", "factuality"),
    "generation": (
        "comprehensiveness",
        "knowledgeability",
        "correctness",
        "relevance",
        "diversity",
        "logical coherence",
        "factuality",
    ),
}
"""Dimensions of each kind of rating. `answer` and `evidence` are from GraphSearch (appendix F). `generation` has the
dimensions of G-E of EvoGraph-R1 (supplement, section D), but is another measure: it rates the response alone."""
HIGHEST = 10
_RATINGS = tuple(map(str, range(HIGHEST + 1)))
_NUMBER = r"(?<![\w.,-])(\d{1,3}(?:\.\d+)?)(?: ?/ ?(\d+))?(?![\w/]|[.,]\d)"
_ALONE = re.compile(rf"[\s*_`\[({{]*{_NUMBER}[\s*_`\])}}.]*")
_LABELLED = re.compile(rf"\b(?:score|rating)\b[*_`\"']* ?(?:is|of|:|=)? ?[*_`\"'\[]*{_NUMBER}", re.IGNORECASE)


Ratings = Mapping[str, int | None]
"""Rating from 0 to 10 by dimension, None if the reply was unreadable; empty if the response was not rated."""


@dataclass(frozen=True)
class RatingSummary:
    """Mean ratings from 0 to 10 over n rated responses.

    `dimensions`: mean rating of each dimension over its readable replies; `score`: mean over all dimensions, from the
    responses that have a readable reply in every dimension; `unparsed`: share of unreadable replies, None without
    replies.
    """

    n: int
    dimensions: Mapping[str, Mean]
    score: Mean
    unparsed: float | None


def rate_responses(
    kind: Kind, responses: Sequence[JudgedResponse], *, models: QuestionModels, prompts: Prompts, reask: int = 1
) -> list[Ratings]:
    """Rate responses in every dimension of a kind, one call per dimension.

    Args:
        kind: `answer` and `generation` show the judge the gold answers; `evidence` shows the evidence. Responses
            without gold answers, or without evidence, are not rated.
        models: the language model of the stage `judge` is asked; its calls are added to the trace.
        reask: how many times an unreadable reply is requested again.

    Raises:
        BudgetExhausted, ModelUnavailable: see `QuestionModels.complete`.
    """
    indices = [index for index, each in enumerate(responses) if (each.evidence if kind == "evidence" else each.gold)]
    found: list[dict[str, int | None]] = [{} for _ in responses]
    for dimension in DIMENSIONS[kind]:
        asked = [
            prompts.prompt(
                f"judge/{kind}",
                "judge",
                Reply(read_rating, choices=_RATINGS),
                question=responses[index].question,
                response=responses[index].response.strip() or NO_RESPONSE,
                dimension=dimension,
                **_shown(kind, responses[index]),
            )
            for index in indices
        ]
        replies = ask(models, prompts, asked, reask=reask)
        for index, value in zip(indices, replies):
            found[index][dimension] = value
    return found  # type: ignore[return-value]


def _shown(kind: Kind, response: JudgedResponse) -> dict[str, Any]:
    """Return the value of the prompt that shows the judge the evidence or the gold answers."""
    if kind == "evidence":
        return {"evidence": list(response.evidence[:MAX_SHOWN])}
    return {"answers": list(response.gold[:MAX_SHOWN])}


def summarise_ratings(kind: Kind, ratings: Sequence[Ratings]) -> RatingSummary:
    """Compute the mean ratings over readable replies, and the share of unreadable replies."""
    asked = [each for each in ratings if each]
    wanted = DIMENSIONS[kind]
    whole = [[each[name] for name in wanted] for each in asked if all(each.get(name) is not None for name in wanted)]
    unparsed = sum(each.get(name) is None for each in asked for name in wanted)
    return RatingSummary(
        n=len(asked),
        dimensions={name: mean([v for each in asked if (v := each.get(name)) is not None]) for name in wanted},
        score=mean([sum(values) / len(wanted) for values in whole]),  # type: ignore[arg-type]
        unparsed=unparsed / (len(asked) * len(wanted)) if asked else None,
    )


def read_rating(text: str) -> Reading[int]:
    """Read a rating, a whole number from 0 to 10, from the reply of a language model.

    The number may be the whole reply, follow the label `score` or `rating`, or be the value of such a key in JSON. The
    result has no value if the reply contains no rating or several different ratings. Never raises.
    """
    given: list[Any] = []
    for each in json_values(last_part(text)):
        there, value = find_key(each.value, ("score", "rating"))
        given += [value] if there else []
    repaired = not given
    words = plain_text(text)
    if not given and (alone := _ALONE.fullmatch(words)):
        given, repaired = [alone.groups()], words != alone[1]
    if not given:
        given = [match.groups() for match in _LABELLED.finditer(words)]
    values = {_rating(each) for each in given}
    value = values.pop() if len(values) == 1 else None
    if value is None:
        return Reading(None, problem=f"The reply has no whole number from 0 to {HIGHEST}; give that and nothing else.")
    return Reading(value, repaired=repaired)


def _rating(given: Any) -> int | None:
    """Return the rating if it is a whole number in range; None for fractions and for another maximum (7/20)."""
    if isinstance(given, str):
        found = _ALONE.fullmatch(given[:40])
        given = found.groups() if found else None
    if isinstance(given, tuple):
        number, maximum = given
        given = None if maximum not in (None, str(HIGHEST)) else float(number)
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or given != given
        or given not in range(HIGHEST + 1)
    ):
        return None
    return int(given)
