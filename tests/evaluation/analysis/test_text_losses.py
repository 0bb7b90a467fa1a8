"""At which step a method over text lost the right answer."""

from __future__ import annotations

import pytest

from kgqa.evaluation.analysis.losses import LOSSES
from kgqa.evaluation.analysis.text_losses import lost_in_text
from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.model import Answer, Literal, Named, Question
from kgqa.trace import PiecesKept, Pool, Retrieved, StepAnswered

GOLD = ((GoldAnswer("", "Ben Aske", aliases=("Aske Hill",)),),)
SUPPORT = (("a", "a2"), ("b",))
FOUND = Retrieved(query="q", pieces=("a2", "b", "c"))


def lost(*events, answers=(), status="answered", support=SUPPORT, gold=GOLD):
    named = tuple(Named(Literal(name), "", name) for name in answers)
    return lost_in_text(Answer(Question("?"), status, named, trace=events), support, gold)


CASES = [
    ("not retrieved", [Retrieved(query="q", pieces=("a",))]),
    ("not retrieved", [Retrieved(query="q", pieces=())]),
    ("not kept", [Retrieved(query="q", pieces=("a",)), Retrieved(query="r", pieces=("b",), step=1)]),
    ("not kept", [FOUND, PiecesKept(pieces=("a2",)), PiecesKept(pieces=("c",), step=1)]),
    ("misread", [FOUND, PiecesKept(pieces=("a2",)), PiecesKept(pieces=("b",), step=1)]),
    ("misread", [FOUND, PiecesKept(pieces=("a2", "b")), StepAnswered(question="q", answers=("Corrin",))]),
    (
        "not accepted",
        [FOUND, PiecesKept(pieces=("a2",)), StepAnswered(question="q", answers=("the Ben Aske",), step=2)],
    ),
]


@pytest.mark.parametrize(("loss", "events"), CASES)
def test_step_of_the_loss(loss, events):
    assert lost(*events, answers=("Corrin",)) == loss and loss in LOSSES
    assert lost(*events, status="no_answer") == loss
    assert lost(*events, answers=("Ben Aske",)) == lost(*events, answers=("aske hill",)) == "right"


def test_all_gold_answers_are_needed():
    two = ((GoldAnswer("", "Oster Quay"), GoldAnswer("", "Vell")),)
    assert lost(FOUND, answers=("Vell", "Oster Quay"), gold=two) == "right"
    assert lost(FOUND, answers=("Vell",), gold=two) == lost(FOUND, answers=("Vell", "Vell"), gold=two) == "not kept"
    assert lost(FOUND, answers=("Vell",), gold=(*GOLD, *two, two[0][1:])) == "right"


def test_other_ends():
    assert lost(FOUND, status="failed") == "failed"
    assert lost(FOUND, status="budget_exhausted") == "budget"
    right = StepAnswered(question="q", answers=("Ben Aske",))
    assert lost(FOUND, right, status="budget_exhausted") == "not accepted"


def test_data_set_without_supporting_passages():
    assert lost(FOUND, support=()) == "unknown"
    assert lost(Retrieved(query="q", pieces=()), support=()) == "not retrieved"
    assert lost(FOUND, support=((), ("b",))) == "not retrieved"  # a passage that the corpus does not contain


def test_answers_from_paths_are_analysed_by_their_paths():
    assert lost(Pool(hop=1, paths=())) is None
