"""Events in words: a line each, and the steps of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgqa.trace as events
from kgqa.text.words import clean
from kgqa.trace import KINDS, Called, step_lines
from kgqa.trace.words import MAX_STEPS
from tests.report.agents.traces import GRAPH_TURNS, TOOL_TURNS
from tests.report.text.traces import LIGHT, RAG, ROUNDS, STEPS
from tests.trace.test_events import built

FACT = events.LocalFact("a", "r", "b", LIGHT, "q")


def test_methods_over_text_and_in_turns_tell_every_event():
    every = (*GRAPH_TURNS, *TOOL_TURNS, *RAG, *ROUNDS, *STEPS)
    assert all(event.in_words() for event in every)
    told = {type(event).__name__ for event in every} | {"TaskGiven"}
    assert told == {kind.__name__ for kind in KINDS if issubclass(kind, (events.ActingEvent, events.TextEvent))}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (events.PathsRanked(paths=(events.RankedPath("a → b", 0.256, 0),)), "best path: a → b (0.26)"),
        (events.Accepted(why="the triples are sufficient", answers=("a", "b")), "accepted, because the triples are sufficient: a, b"),
        (GRAPH_TURNS[1], "step 1, needed: The architect of the Skerry Light."),
        (TOOL_TURNS[1], "step 1: The graph comes first.; graph_search(query: Ines Marr)"),
        (TOOL_TURNS[5], "step 2: web_search(query: birthplace of Ines Marr) → 1 result"),
        (Called(name="insert", arguments=("{broken",)), "step 1: insert({broken) → 0 results"),
        (events.EditProposed(proposal=1, edit="delete", target_text="t", sources=(events.ProposedSource(4, "iri"),)),
         "edit 1, step 1: delete “t” (source 4)"),
        (STEPS[9], "sub-question 3: Who leads the town born Ines Marr? (an earlier answer is missing)"),
        (STEPS[12], "round 0: draft rejected; claims that do not hold: 2"),
        (events.EvidenceEdited(step=2, added=(FACT,) * 6, merged=(("a", "c"),), removed=("x",), refused=3),
         f"sub-question 2: {'+ a — r → b; ' * 5}+ 1 more; a = c; 1 removed; 3 refused"),
        (events.SufficiencyJudged(round=1, verdict="yes"), "round 1: sufficient, but not accepted: no verified quote"),
        (events.DraftVerified(verdict="unparsed"), "round 0: verdict not readable, so the draft is rejected"),
    ],
)  # fmt: skip
def test_words(event, words):
    assert event.in_words() == words


@given(st.one_of(map(built, KINDS)))
def test_steps_are_short_lines_without_control_characters(event):
    assert isinstance(event.in_words(), str)
    for line in step_lines([event]):
        assert line == clean(line) and len(line) < 400


def test_a_hostile_text_stays_one_short_line():
    text = "\x1b[2J\u202e" + "line\n" * 1000
    for event in (
        events.Reflected(text=text),
        Called(name=text, arguments=(text,)),
        events.ActionRead(reply="", problem=text),
    ):
        (line,) = step_lines([event])
        assert "\x1b" not in line and len(line) < 400


def test_steps_of_two_trials():
    assert step_lines(GRAPH_TURNS) == [
        "step 1, plan: The question asks for a birthplace. First find the light, then its architect.",
        "step 1: Retrieve[Skerry Light] → Skerry Light",
        "step 1: Neighbour[Retrieve[Skerry Light], architect] → Ines Marr along Skerry Light → architect",
        "step 2: Neighbour[p1, work] → Work 1, Work 2, Work 3, Work 4, Work 5 and 35 more along Skerry Light → architect → work",
        "step 2: Feature[p1, birthplace] → failed",
        "step 3: answer Oban (does not follow from what was found: “Oban” is in no observation)",
        "trial 1: answer rejected without asking a language model: Oban was not seen.",
        "lesson of trial 1: Recap: the birthplace was asked. Analysis: the works did not help. Strategy: use place of "
        "birth.",
        "trial 2, step 1, plan: Use the relation that was named: place of birth.",
        "trial 2, step 1: Neighbour[p1, place of birth] → Kirkwick along Skerry Light → architect → place of birth",
        "trial 2, step 2: answer Kirkwick (follows from what was found)",
        "trial 2: answer accepted: Kirkwick was seen and is a town.",
    ]


def test_many_steps_keep_their_beginning_and_their_end():
    lines = step_lines([Called(name="Count", arguments=(str(n),), total=n, step=n) for n in range(1, 41)])
    assert len(lines) == MAX_STEPS + 1 and lines[5] == "... 28 more here (--trace shows all) ..."
    assert lines[4].startswith("step 5:") and lines[6].startswith("step 34:") and lines[-1].startswith("step 40:")


def test_steps_of_edits_say_what_became_of_them():
    lines = step_lines(TOOL_TURNS)
    assert [line for line in lines if line.startswith("edit")] == [
        "edit 1, step 3: replace “Ines Marr was born in Oban in 1832.” by “Ines Marr was born in Kirkwick in 1832.” "
        "(sources 3, 1)",
        "edit 1: accepted, seen by this question only",
        "edit 2, step 4: delete “The Skerry Light was built by Ines Marr.” (no source)",
        "edit 2: rejected by the gate “sources”: A deletion needs a source that contradicts the text.",
        "edit 3, step 5: insert “Kirkwick is a town.” (source 3)",
        "edit 1: accepted, waits for review",
    ]
    assert "step 5: no action; The answer is not closed." in lines
    assert not any("update(" in line for line in lines)  # the line of the edit tells it


def test_steps_over_text():
    assert step_lines(RAG) == []
    assert step_lines(ROUNDS) == [
        "the question → not in the passages",
        "round 1: insufficient; missing: the birthplace of Ines Marr",
        "round 1 asks: 1. Where was Ines Marr born?; 2. Who was Ines Marr?",
        "the question → Kirkwick (2 of 2 quotes verified)",
        "round 2: sufficient",
        "round 2 was the last: The answer was accepted.",
    ]
    unread = events.StepAnswered(question="q1", answers=(), read=False, step=1)
    assert step_lines([unread]) == ["sub-question 1: q1 → the reply could not be read"]
