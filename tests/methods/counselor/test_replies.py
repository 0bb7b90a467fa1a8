"""Readers of replies: what they read, what they refuse, and that they never raise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.replies.action_lines import Call, call_text
from kgqa.methods.counselor.replies import read_judgment, read_plan, read_reflection, read_sentences, read_turn
from kgqa.methods.published.counselor import read_published_judgment


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("It was seen. It follows.\nJudgment: yes", "yes"),
        ("It was seen. It follows.\n**Judgment: No.**", "no"),
        ("Judgment: no\nOn second thought it follows.\nJudgment: yes", "yes"),
        ("It does not follow.\n\nNo.", "no"),
        ("<think>Judgment: yes</think>Two are missing.\nJudgment: no", "no"),
        ("Judgment: yes or no", None),
        ("Judgment: yes\nJudgment: maybe", None),
        ("yes, but not all of them", None),
        ("", None),
    ],
)
def test_judgments(text, verdict):
    read = read_judgment(text)
    assert (read.value.verdict if read.value else None) == verdict
    assert (verdict is None) == bool(read.problem)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"plan": "p", "need": "n", "actions": "Retrieve[a], Count[b]"}', ["Retrieve[a]", "Count[b]"]),
        ('```json\n{"need": "n", "actions": ["Retrieve[a]", "Finish[x]"]}\n```', ["Retrieve[a]", "Finish[x]"]),
        ("Plan 1: p\nNeed 1: n\nAction 1: Retrieve[a]", ["Retrieve[a]"]),
        ('{"plan": "p", "need": "n", "actions": 7}', None),
        ("I do not know.", None),
    ],
)
def test_turns_in_one_reply(text, calls):
    read = read_turn(text)
    assert (list(map(call_text, read.value[1])) if read.value else None) == calls
    assert read.value or read.problem


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Plan 2: Finish[a; b]", "Finish[a; b]"),
        ("Finish[\n- a\n- b\n]", "Finish[a; b]"),
        (f"Finish[{'name; ' * 300}end]", f"Finish[{'name; ' * 300}end]"),
        ("Find him. Then Finish[answer].", "Find him. Then Finish[answer]."),
        ("Plan 2: Go on.\nThen count.\nNeed 2: the year\nAction 2: Finish[x]", "Go on. Then count."),
    ],
)
def test_plans_and_those_that_finish(text, plan):
    read = read_plan(text).value
    assert (call_text(read) if isinstance(read, Call) else read) == plan


PARTS = ("Plan 1:", "Action 2: ", "Judgment: ", "yes", "[No]", "Finish[", "]", '{"actions": "', '"}', "\n", "<think>")


@given(st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=30).map("".join))
def test_readers_never_raise(text):
    for read in (read_turn, read_judgment, read_published_judgment, read_reflection):
        reading = read(text)
        assert reading.value is not None or reading.problem
    assert "\n" not in (read_sentences(text, "plan").value or "")
