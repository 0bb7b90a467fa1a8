"""Events of methods that act in turns in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.report.answer import answer_text
from kgqa.report.text.explanation import explanation
from kgqa.storage.answer_json import answer_object
from kgqa.text.words import clean
from kgqa.trace import (
    KINDS,
    ActionRead,
    AnswerVerified,
    Called,
    EditAccepted,
    EditProposed,
    Finished,
    ProposedSource,
    Reflected,
    Seen,
    Stopped,
    TaskGiven,
)
from kgqa.trace.acting_words import ACTING_EVENTS, MAX_LINES
from kgqa.trace.words import event_words, progress_words, step_lines
from tests.report.agents.traces import GRAPH_TURNS, TOOL_TURNS, acting_answer
from tests.trace.test_events import built


def test_every_event_has_words():
    turns = (TaskGiven(system="Think first.", user="Question: Who?"), *GRAPH_TURNS, *TOOL_TURNS)
    assert {type(event) for event in turns} == set(ACTING_EVENTS)
    assert set(ACTING_EVENTS) == {kind for kind in KINDS if kind.__module__ == "kgqa.trace.acting"}
    assert all(map(event_words, turns))
    assert event_words(Stopped(round=2, why="The end.")) == "round 2: The end."


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (GRAPH_TURNS[0], "step 1: The question asks for a birthplace. First find the light, then its architect."),
        (GRAPH_TURNS[4], "step 1: Neighbour[Retrieve[Skerry Light], architect] → Ines Marr along Skerry Light → architect"),
        (GRAPH_TURNS[9], "step 2: Neighbour[p1, work] → Work 1, Work 2, Work 3, Work 4, Work 5 and 35 more along "
                         "Skerry Light → architect → work"),
        (GRAPH_TURNS[10], "step 2: Feature[p1, birthplace] → failed"),
        (GRAPH_TURNS[12], "step 3: answer Oban (does not follow from what was found: “Oban” is in no observation)"),
        (GRAPH_TURNS[13], "trial 1: answer rejected without asking a language model: Oban was not seen."),
        (GRAPH_TURNS[21], "trial 2, step 2: answer Kirkwick (follows from what was found)"),
        (TOOL_TURNS[1], "step 1: The graph comes first.; graph_search(query: Ines Marr)"),
        (TOOL_TURNS[2], "step 1: graph_search(query: Ines Marr) → Ines Marr was born in Oban in 1832. and 1 more"),
        (TOOL_TURNS[5], "step 2: web_search(query: birthplace of Ines Marr) → 1 result"),
        (TOOL_TURNS[8], "edit 1, step 3: replace “Ines Marr was born in Oban in 1832.” by “Ines Marr was born in "
                        "Kirkwick in 1832.” (sources 3, 1)"),
        (TOOL_TURNS[9], "edit 1: accepted; seen by this question only"),
        (TOOL_TURNS[-1], "edit 1: accepted; waits for review"),
        (TOOL_TURNS[13], "edit 2: rejected by the gate “sources”: A deletion needs a source that contradicts the text."),
        (AnswerVerified(verdict="unparsed"), "trial 1: verdict not readable"),
        (AnswerVerified(verdict="no", text="Not seen.\n**Judgment:** no."), "trial 1: answer rejected: Not seen."),
        (ActionRead(reply="x", problem="No call."), "step 1: no action; No call."),
        (Called(name="Count", arguments=("a",), total=2), "step 1: Count[a] → 2 values"),
        (Called(name="insert", arguments=("{broken",)), "step 1: insert({broken) → 0 results"),
        (Seen(text="a\nb", count=1, approximate=True), "step 1: 1 value (not all): a b"),
        (EditAccepted(proposal=1, edit="e", state="overlay"), "edit 1: accepted; seen by this question only"),
        (EditProposed(proposal=1, edit="delete", target_text="t", sources=(ProposedSource(4, "iri"),)),
         "edit 1, step 1: delete “t” (source 4)"),
    ],
)  # fmt: skip
def test_words(event, words):
    assert event_words(event) == words


@given(st.one_of(map(built, ACTING_EVENTS)))
def test_words_are_one_line_without_control_characters(event):
    for text in (event_words(event), progress_words(event), *step_lines([event])):
        assert text == clean(text)


def test_a_hostile_text_stays_one_short_line():
    text = "\x1b[2J\u202e" + "line\n" * 1000
    for event in (Reflected(text=text), Finished(text=text), Seen(text=text), Called(name=text, arguments=(text,))):
        assert len(progress_words(event)) < 200
        (line,) = step_lines([event]) or [""]
        assert "\x1b" not in line and "\u202e" not in line and len(line) < 400


def test_steps_of_two_trials():
    lines = step_lines(GRAPH_TURNS)
    assert lines[0].startswith("plan: The question asks for a birthplace.")
    assert lines[1] == "step 1: Retrieve[Skerry Light] → Skerry Light"
    assert "trial 1 taught: Recap: the birthplace was asked. Analysis: the works did not help." in "\n".join(lines)
    assert lines[-1] == "trial 2: answer accepted: Kirkwick was seen and is a town."


def test_a_single_trial_is_not_numbered():
    assert step_lines([AnswerVerified(verdict="yes", text="Seen. Judgment: yes")]) == ["answer accepted: Seen."]


def test_many_steps_keep_their_beginning_and_their_end():
    many = [Called(name="Count", arguments=(str(n),), total=n, step=n) for n in range(1, 41)]
    lines = step_lines(many)
    assert len(lines) == MAX_LINES + 1 and lines[5] == "... 28 more here (--trace shows all) ..."
    assert lines[4].startswith("step 5:") and lines[6].startswith("step 34:") and lines[-1].startswith("step 40:")


def test_steps_of_edits_say_what_became_of_them():
    lines = step_lines(TOOL_TURNS)
    assert [line.rsplit(": ", 1)[1] for line in lines if ", edit " in line] == [
        "accepted, waits for review",
        "rejected by the gate “sources”",
        "not decided",
    ]
    assert "step 5: The answer is not closed." in lines
    assert not any("update(" in line for line in lines)  # the line of the edit tells it


def test_answer_as_text():
    lines = answer_text(acting_answer()).splitlines()
    assert lines[0] == "Kirkwick (c1)"
    start = next(place for place, line in enumerate(lines) if line.startswith("  steps  plan: The question"))
    assert lines[start + 1] == "         step 1: Retrieve[Skerry Light] → Skerry Light"


def test_progress():
    words = [progress_words(event) for event in GRAPH_TURNS]
    assert words[4] == "step 1: Neighbour: 1 value" and words[9] == "step 2: Neighbour: 40 values"
    assert words[14] == "trial 1: trying again" and words[21] == "trial 2, step 2: answer: Kirkwick"
    assert [progress_words(TOOL_TURNS[place]) for place in (8, 9, 12, 13)] == [
        "edit 1: update proposed", "edit 1: accepted", "edit 2: delete proposed", "edit 2: rejected",
    ]  # fmt: skip


def test_all_steps_of_a_saved_answer_are_explained():
    many = tuple(Called(name="Count", arguments=(str(n),), total=n, step=n) for n in range(1, 41))
    lines = explanation(answer_object(acting_answer(many), trace=True)).splitlines()
    assert lines[1:3] == ["Answer: Kirkwick", "Steps:"] and len(lines) == 3 + 40
    lines = explanation(answer_object(acting_answer(TOOL_TURNS), trace=True)).splitlines()
    assert lines[-1] == "  step 6: answer Kirkwick (follows from what was found)"


def test_source_of_an_answer_that_is_not_proved():
    assert "  source the language model; what it found in the graph does not prove the answer" in answer_text(
        acting_answer(TOOL_TURNS)
    )
