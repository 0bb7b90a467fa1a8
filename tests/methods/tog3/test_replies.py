"""The forms of ToG-3's replies: what occurs, and garbage."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.replies.quoted_answers import quoted_reply
from kgqa.llm.replies.reply import Reply, reply_of
from kgqa.methods.tog3.replies import (
    ANSWER,
    FINAL,
    Keywords,
    Refinement,
    Reflection,
    gap_reply,
    read_plain_answer,
    sufficient_reply,
    turn_reply,
)

REFLECTION = reply_of(Reflection)
FORMS = (
    *(quoted_reply(3, ANSWER), quoted_reply(3, FINAL), turn_reply(3), REFLECTION, gap_reply(), sufficient_reply()),
    *(reply_of(Keywords), reply_of(Refinement), Reply(read_plain_answer)),
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"verdict": "YES"}', "YES"),
        ('{"verdict": "No."}', "NO"),
        ('{"sufficient": true}', "YES"),
        ("Yes, but no.", "NO"),
        ("", None),
    ],
)
def test_verdict(text, verdict):
    read = sufficient_reply().read(text).value
    assert (read and read.verdict) == verdict


KEYS = ["verdict", "questions", "answer", "support", "keep", "same", "add", "keywords", "missing"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner),
    max_leaves=20,
)


@given(st.text() | VALUES.map(json.dumps))
def test_no_reply_raises(text):
    for form in FORMS:
        form.read(text)


@pytest.mark.parametrize("verdict", ["", '"verdict": "maybe", '])
def test_questions_of_a_turn_without_a_verdict_are_asked(verdict):
    text = (
        f'{{{verdict}"answers": ["Unknown"], "support": [], "missing": "m", "questions": ["When?", "Where was #1?"]}}'
    )
    _, reflection = turn_reply(2).read(text).value
    assert reflection == Reflection(verdict="NO", missing="m", questions=("When?",))
