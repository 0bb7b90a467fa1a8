"""What is said about a question without an answer: the nearest paths and what would help."""

from __future__ import annotations

import pytest

from kgqa.methods.advice import with_advice
from kgqa.model import Answer, NearPath, Question, StageUsage, Usage
from kgqa.settings.values import resolve
from kgqa.text.hints import command_line_wording
from kgqa.trace import Kept, Linked, LinkedMention, PathsRanked, Pool, RankedPath, Rejected


def advised(*events, status="no_answer", usage=None, models=False, **given) -> Answer:
    answer = Answer(Question("?"), status)
    with command_line_wording():
        return with_advice(answer, events, usage or Usage(), resolve(given), models=models)


def ranked(*scores: float | None) -> PathsRanked:
    return PathsRanked(paths=tuple(RankedPath(f"path {n}", score, 0) for n, score in enumerate(scores)), keys=())


FULL_DEPTH = Pool(hop=2, paths=("k",))
UNPARSED = Usage(stages=(StageUsage("decide", unparsed=1),))


def test_rejected_by_its_score():
    found = advised(FULL_DEPTH, ranked(0.0826, 0.05), Rejected(path="path 0", score=0.0826, key="k"))
    assert found.nearest == (NearPath("path 0", 0.0826), NearPath("path 1", 0.05))
    assert found.hints == (
        "Accept lower scores: --accept 0.082",
        "Take the best path although it was not accepted: --on-exhausted best",
        "Let a language model compare the paths: --llm MODEL",
        "Follow longer paths: --depth 3",
    )


def test_ambiguous_topic():
    mentions = (LinkedMention("Paris", ("m.1", "m.2")),)
    assert advised(Linked(mentions=mentions), FULL_DEPTH).hints[0] == "Choose another topic: --topic ID"
    assert "topic" not in str(advised(Linked(mentions=(LinkedMention("Paris", ("m.1",)),)), FULL_DEPTH).hints)


def test_unreadable_replies():
    found = advised(Kept(hop=1, paths=("a", "b")), usage=UNPARSED, models=True)
    assert found.nearest == (NearPath("a"), NearPath("b")) and "--reask 3" in found.hints[1]


@pytest.mark.parametrize(
    ("limit", "usage", "hint"),
    [
        ({"budget.seconds": 2}, Usage(seconds=1.98), "--max-seconds 4"),
        ({"budget.calls": 3}, Usage(calls=2), "--max-calls 6"),
        ({"budget.tokens": 100}, Usage(prompt_tokens=90, completion_tokens=20), "--max-tokens 200"),
        ({"budget.cost": 0.5}, Usage(cost=0.6), "--max-cost 1"),
    ],
)
def test_budget(limit, usage, hint):
    found = advised(status="budget_exhausted", usage=usage, **limit)
    assert len(found.hints) == 1 and found.hints[0].endswith(f": {hint}")
