"""Readers of GraphSearch's replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.methods.graphsearch.replies import (
    read_copies,
    read_patterns,
    read_plan,
    read_prose,
    read_question,
    read_verdict,
)


@pytest.mark.parametrize(
    ("text", "texts", "patterns"),
    [
        (
            '{"sub_questions": [{"question": "Who?", "triples": [["a", "b", "#1"]]}, {"question": "Where?"}]}',
            ("Who?", "Where?"),
            ((("a", "b", "#1"),), ()),
        ),
        ('{"1": "Who?", "2": "Where did #1 die?"}', ("Who?", "Where did #1 die?"), ((), ())),
        ('{"2": "Where?", "1": "Who?"}', ("Who?", "Where?"), ((), ())),
        ('{"Sub-query 1": "Who?", "Sub-query 2": "Where?"}', ("Who?", "Where?"), ((), ())),
        (
            '{"1": [["a", "b", "Entity#1"], ["c", "d", 5]]}',
            ("",),
            ((("a", "b", "Entity#1"), ("c", "d", "5")),),
        ),
        ('Here:\n```json\n["Who?", "Where?"]\n```', ("Who?", "Where?"), ((), ())),
        ("['Who?', 'Where?']", ("Who?", "Where?"), ((), ())),
        ('{"steps": {"1": "Who?"}}', ("Who?",), ((),)),
        (
            '{"questions": [{"text": "Who?", "triples": [{"subject": "a", "relation": "b", "object": "c"}]}]}',
            ("Who?",),
            ((("a", "b", "c"),),),
        ),
    ],
)
def test_plans(text, texts, patterns):
    plan = read_plan(text).value
    assert plan is not None and (plan.texts, plan.patterns) == (texts, patterns)


@pytest.mark.parametrize("text", ["", "Who?", "null", "{}", '{"sub_questions": "Who?"}', '{"a": 1}', "[]", "[[]]"])
def test_no_plan(text):
    assert read_plan(text).value is None and read_plan(text).problem


def test_an_empty_list_is_a_plan_if_it_may_be():
    assert read_plan('{"sub_questions": []}', empty=True).value.texts == ()
    assert read_plan("[]", empty=True).value.texts == () and read_plan("nothing", empty=True).value is None
    assert read_plan('{"sub_questions": [7]}', empty=True).value is None


@pytest.mark.parametrize(
    ("text", "verdict", "failed"),
    [
        ('{"failed": [], "verdict": "yes"}', "yes", ()),
        ('{"failed": [2, "1", 2], "verdict": "no"}', "no", (1, 2)),
        ('{"failed": [2], "verdict": "yes"}', "no", (2,)),
        ('{"verdict": "Yes, all hold."}', "yes", ()),
        ('{"verdict": true}', "yes", ()),
        ('{"verdict": "Yes ... No"}', "no", ()),
        ("All is supported.\n**Yes**", "yes", ()),
        ("Yes, but a step is missing: No", "no", ()),
        ("No step is missing. Yes", "yes", ()),
        ("<think>No</think>Yes", "yes", ()),
        ("The verdict is yes.", "yes", ()),
        ("Is it complete? Yes", "yes", ()),
        ('{"failed": ["claim 1"], "verdict": "yes"}', "no", ()),
        ('{"failed": "all", "verdict": "yes"}', "no", ()),
        ('{"failed": [[1]], "verdict": "yes"}', "no", ()),
        ('{"failed": null, "verdict": "yes"}', "yes", ()),
    ],
)
def test_verdicts(text, verdict, failed):
    found = read_verdict(text).value
    assert (found.verdict, found.failed) == (verdict, failed)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Not sure.", "yesterday", '{"verdict": ["yes"]}', '{"verdict": "maybe"} yes', '{"verdict": 1}', "YESNO"),
        *("I cannot say yes.", "Not yes", '{"verdict": "not yes"}', "I am told to reply no or yes or", "Yes if 2 held"),
    ],
)
def test_no_verdict(text):
    assert read_verdict(text).value is None and read_verdict(text).problem


def test_grounded_sub_questions():
    assert read_question('{"question": "Where was Ada born?"}').value == "Where was Ada born?"
    assert read_question('"Where was Ada born?"\n').value == "Where was Ada born?"
    assert read_question("First line.\nSecond line.").value is None and read_question("").value is None
    assert read_patterns('{"triples": [["Ada", "born in", "Entity#2"]]}').value == (("Ada", "born in", "Entity#2"),)
    assert read_patterns('["Ada", "born in", "?"]').value == (("Ada", "born in", "?"),)
    assert read_patterns("[]").value is None and read_patterns("Ada").value is None


def test_copied_facts_are_those_of_the_list():
    listed = ["Ada born in London", "伦敦 首都 英国", "wheat price $1,363.00"]
    text = '{"facts": ["2. 伦敦 首都 英国", ["ada", "born in", "LONDON"], "Mars is near", 7]}'
    assert read_copies(text, listed=listed).value == (1, 0)
    assert read_copies('["wheat price $1,363.00"]', listed=listed).value == (2,)
    assert read_copies('{"facts": []}', listed=listed).value == () and read_copies("no", listed=listed).value is None


def test_prose_has_no_control_characters():
    assert read_prose("<think>x</think> a\x1b[31m\nb ").value == "a\nb" or "\x1b" not in read_prose("a\x1b[31m").value
    assert read_prose(" \n").value is None and len(read_prose("a" * 99_999).value) == 8_000


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


@given(st.text(max_size=200) | JSON.map(repr) | JSON.map(lambda value: __import__("json").dumps(value)))
def test_no_reply_raises(text):
    for reader in (read_plan, read_verdict, read_question, read_patterns, read_prose):
        reading = reader(text)
        assert reading.value is not None or reading.problem
    read_copies(text, listed=["a", "b"])
