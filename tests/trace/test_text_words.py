"""Events of methods over text in words."""

from __future__ import annotations

import pytest

from kgqa.report.answer import answer_text
from kgqa.report.text.rounds import TEXT_EVENTS
from kgqa.trace import (
    KINDS,
    DraftVerified,
    EvidenceEdited,
    LocalFact,
    Planned,
    Retrieved,
    StepAnswered,
    Stopped,
    SufficiencyJudged,
)
from kgqa.trace.text_words import MAX_LINES, event_words, progress_words, step_lines
from tests.report.text.traces import LIGHT, RAG, ROUNDS, STEPS, text_answer


def test_every_text_event_has_words_and_no_other_event_has():
    for event in (*RAG, *ROUNDS, *STEPS):
        assert event_words(event)
    assert {type(event) for event in (*ROUNDS, *STEPS)} == set(TEXT_EVENTS)
    others = [kind for kind in KINDS if kind.__module__ != "kgqa.trace.text"]
    assert all(not issubclass(kind, TEXT_EVENTS) for kind in others)
    assert event_words(Stopped(round=0, why="")) and progress_words(Stopped(round=0, why="x")) == ""


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (0, "round 0: 1. Who was the architect of the Skerry Light?; 2. Where was #1 born? (needs 1); 3. Who leads the "
            "town #2? (needs 2)"),
        (1, "sub-question 1, semantic: 1 piece for “Who was the architect of the Skerry Light?”"),
        (4, "sub-question 1: Who was the architect of the Skerry Light? → Ines Marr (1 of 1 quote verified)"),
        (9, "sub-question 3: Who leads the town born Ines Marr? (an earlier answer is missing)"),
        (10, "sub-question 3: Who leads the town born Ines Marr? → the reply could not be read"),
        (11, "round 0: The architect is Ines Marr; she was born in Oban. (1 of 2 claims with a verified quote)"),
        (12, "round 0: draft rejected; claims that do not hold: 2"),
    ],
)  # fmt: skip
def test_words_of_steps(place, words):
    assert event_words(STEPS[place]) == words


def test_words_of_edits_and_verdicts():
    fact = LocalFact("a", "r", "b", LIGHT, "q")
    assert event_words(EvidenceEdited(step=2, added=(fact,) * 7, merged=(("a", "c"),), removed=("x",), refused=3)) == (
        "sub-question 2: + a — r → b; + a — r → b; + a — r → b; + a — r → b; + a — r → b; + 2 more; a = c; 1 removed; "
        "3 refused"
    )
    assert event_words(EvidenceEdited(step=0)) == "question: nothing"
    assert event_words(SufficiencyJudged(round=1, verdict="no", missing="m")) == "round 1: insufficient; missing: m"
    assert event_words(SufficiencyJudged(round=1, verdict="yes")).endswith("not accepted: no verified quote")
    assert "not readable" in event_words(SufficiencyJudged(round=1, verdict="unparsed"))
    assert "not readable" in event_words(DraftVerified(verdict="unparsed"))
    assert event_words(Planned(sub_questions=())) == "round 0: no sub-questions"
    assert event_words(Retrieved(query="q", pieces=())) == "question: 0 pieces for “q”"


def test_steps_of_an_answer_are_few_lines():
    assert step_lines(RAG) == []
    assert step_lines(ROUNDS) == [
        "the question → not in the passages",
        "round 1: insufficient; missing: the birthplace of Ines Marr",
        "round 1 asks: 1. Where was Ines Marr born? 2. Who was Ines Marr?",
        "the question → Kirkwick (2 of 2 quotes verified)",
        "round 2: sufficient",
        "stopped: The answer was accepted.",
    ]
    many = [StepAnswered(question=f"q{n}", answers=("a",), step=n) for n in range(1, MAX_LINES + 4)]
    lines = step_lines(many)
    assert lines[0] == "1. q1 → a" and len(lines) == MAX_LINES + 1
    assert lines[-1] == "... and 3 more (--trace shows all)"


def test_answer_as_text():
    lines = answer_text(text_answer()).splitlines()
    assert lines[0] == "Kirkwick" and lines[2].startswith("The architect of the Skerry Light")
    cited = "  cites  Ines Marr was the architect.: “Its architect was Ines Marr” [docs/Skerry Light.txt, 36–63] ✓"
    assert cited in lines
    assert "  cites  She lived in Oban.: “She lived in Oban” (not found in the text)" in lines
    assert not any(line.startswith("  quote") for line in lines)  # the citations show it
    start = lines.index("  steps  the question → not in the passages")
    assert lines[start + 1] == "         round 1: insufficient; missing: the birthplace of Ines Marr"


def test_progress_names_rounds_and_steps():
    words = [progress_words(event) for event in STEPS]
    assert words[0] == "round 0: 3 sub-questions" and words[1] == "sub-question 1: 1 piece found"
    assert "sub-question 1: reading 1 piece" in words and "round 0: verifying the draft" in words
    assert progress_words(ROUNDS[9]) == "sub-question 1: 2 new facts"
