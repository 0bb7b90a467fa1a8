"""Readers of ToG-3's replies: forms that occur, and garbage."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.methods.tog3.replies import (
    Reflection,
    distinct_questions,
    read_keywords,
    read_plain_answer,
    read_questions,
    read_refinement,
    read_reflection,
    read_turn,
    read_verdict,
)

READERS = (
    read_verdict,
    read_plain_answer,
    partial(read_questions, most=2),
    partial(read_reflection, most=2),
    partial(read_turn, size=3, most=2),
    partial(read_keywords, most=10),
    partial(read_refinement, facts=3, passages=2),
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"verdict": "YES"}', True),
        ('{"verdict": "No."}', False),
        ('{"sufficient": true}', True),
        ("**YES**", True),
        ("no", False),
        ("<think>yes</think>", None),
        ("Yes, but no.", None),
        ('{"verdict": "maybe"}', None),
        ('{"verdict": ["YES"]}', None),
        ('{"verdict": "YES", "verdict": "NO"}', None),
        ("", None),
    ],
)
def test_verdict(text, verdict):
    assert read_verdict(text).value is verdict


def test_reflection():
    text = json.dumps({"verdict": "NO", "missing": "The year.", "questions": ["When?", "When?", "Where?", "Who?"]})
    assert read_reflection(text, most=2).value == Reflection(False, "The year.", ("When?", "Where?"))
    assert read_reflection('{"verdict": "YES", "questions": ["When?"]}', most=2).value == Reflection(True)
    assert read_reflection('{"questions": ["When?"]}', most=2).value is None
    assert read_questions('{"questions": "When?"}', most=2).value == Reflection(False, "", ("When?",))
    assert read_questions('{"questions": ["When was #1 built?", "Who is [answer]?", 3]}', most=2).value == Reflection()


def test_turn_without_a_verdict_is_insufficient():
    read = read_turn('{"answer": ["A"], "support": []}', size=1, most=2).value
    assert read.answer.answers == ("A",) and not read.reflection.sufficient
    assert read_turn('{"verdict": "YES"}', size=1, most=2).value is None


def test_plain_answer():
    assert read_plain_answer("It was Ada.").value.answers == ("It was Ada.",)
    assert read_plain_answer("The answer is: Ada").value.answers == ("Ada",)
    assert read_plain_answer("Unknown.").value.answers == ()
    assert read_plain_answer("  ").value is None


def test_refinement():
    fact = {"subject": "A", "relation": "r", "object": "B", "passage": 2, "quote": "A r B"}
    wrong = [{**fact, "passage": 3}, {**fact, "subject": ""}, "A r B", {**fact, "passage": True}]
    text = json.dumps({"keep": [1, "3", 9, 0, True], "same": [["A", "B"], ["A"], ["A", "A"]], "add": [fact, *wrong]})
    read = read_refinement(text, facts=3, passages=2).value
    assert read.keep == {0, 2} and read.same == (("A", "B"),) and read.refused == 6
    assert [each.passage for each in read.add] == [1]
    assert read_refinement('{"keep": []}', facts=3, passages=2).value.keep is None
    assert read_refinement('{"facts": []}', facts=3, passages=2).value is None


def test_keywords():
    assert read_keywords('{"keywords": ["a", "b", "a", 3]}', most=10).value == ("a", "b")
    assert read_keywords('{"synonyms": "a^b^c"}', most=2).value == ("a", "b")


def test_questions_that_were_asked_before():
    assert distinct_questions(["Who  was Ada?", "Who is Ada?", "?"], ["who was ada"]) == ["Who is Ada?"]


@given(
    st.one_of(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(
                    st.sampled_from(
                        ["verdict", "questions", "answer", "support", "keep", "same", "add", "keywords", "missing"]
                    )
                    | st.text(),
                    inner,
                )
            ),
            max_leaves=20,
        ).map(json.dumps),
    )
)
def test_readers_never_raise(text):
    for reader in READERS:
        reader(text)
