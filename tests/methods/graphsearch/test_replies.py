"""Readers of GraphSearch's replies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.methods.graphsearch.replies import (
    copies_reply,
    numbered_reply,
    plan_reply,
    question_reply,
    triples_reply,
    verdict_reply,
)
from kgqa.methods.text.replies import PROSE

PLAN, NUMBERED, VERDICT = plan_reply(), numbered_reply(), verdict_reply()
QUESTION, TRIPLES = question_reply(), triples_reply()


@pytest.mark.parametrize(
    ("text", "texts", "patterns"),
    [
        (
            '{"sub_questions": [{"question": "Who?", "triples": [["a", "b", "#1"]]}, {"question": "Where?"}]}',
            ("Who?", "Where?"),
            ((("a", "b", "#1"),), ()),
        ),
        ('{"1": "Who?", "2": "Where did #1 die?"}', ("Who?", "Where did #1 die?"), ((), ())),
        (
            '{"1": [["a", "b", "Entity#1"], ["c", "d", 5]]}',
            ("",),
            ((("a", "b", "Entity#1"), ("c", "d", "5")),),
        ),
    ],
)
def test_plans(text, texts, patterns):
    plan = NUMBERED.read(text).value
    assert [each.question for each in plan] == list(texts) and [each.triples for each in plan] == list(patterns)


@pytest.mark.parametrize(
    ("text", "verdict", "failed"),
    [
        ('{"failed": [], "verdict": "yes"}', "yes", ()),
        ('{"failed": [2, "1", 2], "verdict": "no"}', "no", (1, 2)),
        ('{"failed": [2], "verdict": "yes"}', "no", (2,)),
        ("All is supported.\n**Yes**", "yes", ()),
        ("Yes, but a step is missing: No", "no", ()),
        ("No step is missing. Yes", "yes", ()),
        ('{"failed": ["claim 1"], "verdict": "yes"}', "no", ()),
    ],
)
def test_verdicts(text, verdict, failed):
    found = VERDICT.read(text).value
    assert (found.verdict, found.failed) == (verdict, failed)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Not sure.", "yesterday", '{"verdict": ["yes"]}', '{"verdict": "maybe"} yes', '{"verdict": 1}'),
        *("I cannot say yes.", '{"verdict": "not yes"}', "I am told to reply no or yes or", "Yes if 2 held"),
    ],
)
def test_no_verdict(text):
    assert VERDICT.read(text).value is None and VERDICT.read(text).problem


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["sub_questions", "question", "triples", "verdict", "failed", "facts", "1", "a"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.text(max_size=200) | JSON.map(repr) | JSON.map(json.dumps))
def test_no_reply_raises(text):
    for reader in (PLAN.read, NUMBERED.read, VERDICT.read, QUESTION.read, TRIPLES.read, PROSE.read):
        reading = reader(text)
        assert reading.value is not None or reading.problem
    copies_reply(["a", "b"]).read(text)
