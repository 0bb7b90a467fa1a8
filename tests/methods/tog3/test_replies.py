"""The forms of ToG-3's replies: what occurs, and garbage."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.replies.quoted_answers import quoted_reply
from kgqa.llm.replies.reply import Reply, reply_of
from kgqa.methods.rounds import new_questions
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
        ("**YES**", "YES"),
        ("no", "NO"),
        ("Yes, but no.", "NO"),
        ("<think>yes</think>", None),
        ('{"verdict": "maybe"}', None),
        ('{"verdict": ["YES"]}', None),
        ("", None),
    ],
)
def test_verdict(text, verdict):
    read = sufficient_reply().read(text).value
    assert (read and read.verdict) == verdict


def test_reflection():
    text = json.dumps(
        {"verdict": "NO", "missing": "The year.", "questions": ["When?", "Where was #1?", "[answer]?", 3]}
    )
    assert REFLECTION.read(text).value == Reflection(verdict="NO", missing="The year.", questions=("When?",))
    assert REFLECTION.read('{"questions": ["When?"]}').value is None
    assert gap_reply().read('{"questions": "When?"}').value == Reflection(verdict="NO", questions=("When?",))
    assert gap_reply().read('{"missing": "When"}').value is None


def test_turn_without_a_verdict_is_insufficient():
    answer, reflection = turn_reply(1).read('{"answer": ["A"], "support": []}').value
    assert answer.answers == ("A",) and not reflection.sufficient
    assert turn_reply(1).read('{"verdict": "YES"}').value is None


def test_plain_answer():
    assert read_plain_answer("It was Ada.").value.answers == ("It was Ada.",)
    assert read_plain_answer("The answer is: Ada").value.answers == ("Ada",)
    assert read_plain_answer("Unknown.").value.answers == ()
    assert read_plain_answer("  ").value is None


def test_keywords():
    assert reply_of(Keywords).read('{"keywords": ["a", "b", "a", 3]}').value.keywords == ("a", "b")
    assert reply_of(Keywords).read('{"synonyms": "a^b^c"}').value.keywords == ("a", "b", "c")


def test_questions_that_were_asked_before():
    assert new_questions(["Who  was Ada?", "Who is Ada?", "?"], ["who was ada"]) == ["Who is Ada?"]


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
