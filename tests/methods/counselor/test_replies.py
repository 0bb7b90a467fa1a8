"""Readers of replies: what they read, what they refuse, and that they never raise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.replies.action_lines import Call, call_text
from kgqa.methods.counselor.counsel import CUT, tokens_of, within
from kgqa.methods.counselor.replies import read_judgment, read_plan, read_reflection, read_sentences, read_turn
from kgqa.methods.published.counselor import read_published_judgment


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("It was seen. It follows.\nJudgment: yes", "yes"),
        ("It was seen. It follows.\n**Judgment: No.**", "no"),
        ("It was seen.\nJudgement: [yes]", "yes"),
        ("Judgment: no\nOn second thought it follows.\nJudgment: yes", "yes"),
        ("It follows. Judgment: no", "no"),
        ("It does not follow.\n\nNo.", "no"),
        ("<think>Judgment: yes</think>Two are missing.\nJudgment: no", "no"),
        ("Judgment: yes or no", None),
        ("Judgment: yes, if the year is right", None),
        ("The judgment is hard, yes", None),
        ("Judgment: yes\nJudgment: maybe", None),
        ("I would say yes", None),
        ("yes, but not all of them", None),
        ("<think>Judgment: yes", None),
        ("", None),
    ],
)
def test_judgments(text, verdict):
    read = read_judgment(text)
    assert (read.value.verdict if read.value else None) == verdict
    assert (verdict is None) == bool(read.problem)


@pytest.mark.parametrize(
    ("text", "label", "line"),
    [
        ("Plan 2: Go on.\nThen count.", "plan", "Go on. Then count."),
        ("**Plan:** Go on.", "plan", "Go on."),
        ("Go on.\nNeed 2: the year\nAction 2: Finish[x]", "plan", "Go on."),
        ("Need 3: the year\nSeen 3: 1990", "need", "the year"),
        ("<think>no</think>the year", "need", "the year"),
        ("...", "need", None),
        ("", "plan", None),
    ],
)
def test_sentences(text, label, line):
    assert read_sentences(text, label).value == line


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"plan": "p", "need": "n", "actions": "Retrieve[a], Count[b]"}', ["Retrieve[a]", "Count[b]"]),
        ('```json\n{"need": "n", "actions": ["Retrieve[a]", "Finish[x]"]}\n```', ["Retrieve[a]", "Finish[x]"]),
        ("Plan 1: p\nNeed 1: n\nAction 1: Retrieve[a]", ["Retrieve[a]"]),
        ("Retrieve[a]", ["Retrieve[a]"]),
        ('{"plan": "p", "need": "n", "actions": 7}', None),
        ('{"plan": "p", "need": "n"}', None),
        ("I do not know.", None),
    ],
)
def test_turns_in_one_reply(text, calls):
    read = read_turn(text)
    assert (list(map(call_text, read.value[1])) if read.value else None) == calls
    assert read.value or read.problem


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Plan 2: Finish[a; b]", "Finish[a; b]"),
        ("Finish[" + "; ".join(f"name {number}" for number in range(300)) + "]", None),
        ("Finish[\n- a\n- b\n]", "Finish[a; b]"),
        ("Find him. Then Finish[answer].", "Find him. Then Finish[answer]."),
        ("Finish[answer]", "Finish[answer]"),
    ],
)
def test_plans_that_finish(text, found):
    read = read_plan(text).value
    if isinstance(read, Call):
        assert call_text(read) == (found or text), "a long list is not cut"
    else:
        assert read == found


LINES = (
    "Plan 1:",
    "Action 2: ",
    "Judgment: ",
    "yes",
    "[No]",
    "Finish[",
    "]",
    '{"actions": "',
    '"}',
    "\n",
    "a",
    "<think>",
)


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=5), max_size=30).map("".join))
def test_readers_never_raise(text):
    for read in (read_turn, read_judgment, read_published_judgment, read_reflection):
        reading = read(text)
        assert reading.value is not None or reading.problem
    assert "\n" not in (read_sentences(text, "plan").value or "")


@given(st.lists(st.text("ab é", max_size=600), max_size=12), st.integers(0, 800))
def test_lines_within_a_number_of_tokens(lines, tokens):
    kept = within(lines, tokens)
    assert sum(tokens_of(line) + 1 for line in kept) <= tokens
    assert all(line in lines or line.endswith(CUT) for line in kept)
    if sum(tokens_of(line) + 1 for line in lines) <= tokens:
        assert kept == lines
