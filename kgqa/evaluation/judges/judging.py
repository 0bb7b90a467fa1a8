"""Language models as judges of answers: right or wrong, and ratings from 0 to 10 in several dimensions.

What a judge replies and cannot be read is no verdict: it is left out of every mean, counted, and reported as a rate. A
judge is not a measure of truth; set its verdicts beside metrics that compare answers (docs/metrics.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from kgqa.evaluation.metrics.measures import Mean, mean
from kgqa.evaluation.metrics.scores import answer_texts, gold_texts
from kgqa.evaluation.runs.records import Record
from kgqa.llm.client import Prompt
from kgqa.llm.model_chooser import ask_and_read
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import read_verdict
from kgqa.llm.replies.json_values import Reading, find_key, json_values, last_part, plain_text

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
"""Answer and evidence score: GraphSearch, appendix F. Generation evaluation: EvoGraph-R1, supplement, section D."""
HIGHEST = 10
SHOWN = 50
"""Gold answers or pieces of evidence that a judge is shown, at most."""
NOTHING = "(nothing)"
_RATINGS = tuple(map(str, range(HIGHEST + 1)))
_NUMBER = r"(?<![\w.,-])(\d{1,3}(?:\.\d+)?)(?: ?/ ?(\d+))?(?![\w/]|[.,]\d)"
_ALONE = re.compile(rf"[\s*_`\[({{]*{_NUMBER}[\s*_`\])}}.]*")
_LABELLED = re.compile(rf"\b(?:score|rating)\b[*_`\"']* ?(?:is|of|:|=)? ?[*_`\"'\[]*{_NUMBER}", re.IGNORECASE)


@dataclass(frozen=True)
class Judged:
    """One response: to which question, what is known to be right, and for the evidence score what answers it."""

    question: str
    response: str
    gold: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


Ratings = Mapping[str, int | None]
"""By dimension a number from 0 to 10, None where the reply could not be read; empty where nobody was asked."""


@dataclass(frozen=True)
class RatingSummary:
    """Means from 0 to 10 over n responses that were judged: of each dimension over those that have it, and `score` over
    those that have all of a response's dimensions. `unparsed`: the share of verdicts asked for that could not be read,
    None where none was asked for.
    """

    n: int
    dimensions: Mapping[str, Mean]
    score: Mean
    unparsed: float | None


def judged_of(record: Record, evidence: Sequence[str] = ()) -> Judged:
    """The names of a record's answers as a response, and its gold answers."""
    gold = gold_texts(record.readings, aliases=False)
    return Judged(record.text, ", ".join(answer_texts(record.answer)), tuple(gold), tuple(evidence))


def rate(
    kind: Kind, responses: Sequence[Judged], *, models: QuestionModels, prompts: Prompts, reask: int = 1
) -> list[Ratings]:
    """Rate responses in every dimension of a kind, one call a dimension.

    Args:
        kind: `answer` and `generation` show the gold answers, `evidence` the evidence; without these a response is not
            judged.
        models: its stage `judge` is asked, and its trace charged.
        reask: how often a reply that cannot be read is asked for again.

    Raises:
        BudgetExhausted, ModelUnavailable: as `QuestionModels.complete`.
    """
    shown = "evidence" if kind == "evidence" else "answers"
    places = [place for place, each in enumerate(responses) if (each.evidence if kind == "evidence" else each.gold)]
    found: list[dict[str, int | None]] = [{} for _ in responses]
    for dimension in DIMENSIONS[kind]:
        asked = [
            Prompt(
                prompts.render(
                    f"judge/{kind}",
                    question=responses[place].question,
                    response=responses[place].response.strip() or NOTHING,
                    dimension=dimension,
                    **{
                        shown: list(
                            (responses[place].evidence if kind == "evidence" else responses[place].gold)[:SHOWN]
                        )
                    },
                ),
                "judge",
                choices=_RATINGS,
            )
            for place in places
        ]
        said = ask_and_read(models, prompts, asked, [read_rating] * len(asked), reask=reask) if asked else []
        for place, value in zip(places, said):
            found[place][dimension] = value
    return found  # type: ignore[return-value]


def judge_correct(
    responses: Sequence[Judged], *, models: QuestionModels, prompts: Prompts, reask: int = 1
) -> list[bool | None]:
    """Whether each response is right; None where the reply could not be read, or there are no gold answers.

    Raises:
        BudgetExhausted, ModelUnavailable: as `QuestionModels.complete`.
    """
    places = [place for place, each in enumerate(responses) if each.gold]
    asked = [
        Prompt(
            prompts.render(
                "judge/correct",
                question=responses[place].question,
                answers=list(responses[place].gold[:SHOWN]),
                response=responses[place].response.strip() or NOTHING,
            ),
            "judge",
            choices=("YES", "NO"),
        )
        for place in places
    ]
    said = ask_and_read(models, prompts, asked, [_read_yes] * len(asked), reask=reask) if asked else []
    found: list[bool | None] = [None] * len(responses)
    for place, value in zip(places, said):
        found[place] = value
    return found


def summary_of_ratings(kind: Kind, ratings: Sequence[Ratings]) -> RatingSummary:
    """Means and the rate of verdicts that could not be read. Nothing stands in for those."""
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
    """A whole number from 0 to 10: in JSON under `score` or `rating`, alone, or behind such a label.

    No value where there is none, or where several differ. Never raises, whatever the text.
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
    """What is out of range, no whole number, or out of another highest number, is no rating."""
    if isinstance(given, str):
        found = _ALONE.fullmatch(given[:40])
        given = found.groups() if found else None
    if isinstance(given, tuple):
        number, most = given
        given = None if most not in (None, str(HIGHEST)) else float(number)
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or given != given
        or given not in range(HIGHEST + 1)
    ):
        return None
    return int(given)


def _read_yes(text: str) -> Reading[bool]:
    said = read_verdict(text)
    if said == "unparsed":
        return Reading(None, problem="The reply is neither YES nor NO; give one of the two and nothing else.")
    return Reading(said == "yes")
