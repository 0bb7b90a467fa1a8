"""Replies by their type: the schema, what is read, and what a model hears of an unusable reply."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.replies.reply import Form, Prose, reply_of


@dataclass(frozen=True, kw_only=True)
class Item:
    name: Annotated[str, Form(chars=5)]
    number: Annotated[int, Form(name="piece", keys=("passage",))] = 0


@dataclass(frozen=True, kw_only=True)
class Said:
    verdict: Literal["YES", "NO"]
    items: Annotated[tuple[Item, ...], Form(keys=("entries",), bare=True)] = ()
    text: Annotated[Prose, Form(optional=True)] = ""


REPLY = reply_of(Said)


def test_schema_follows_from_the_type():
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "piece": {"type": "integer"}},
        "required": ["name", "piece"],
        "additionalProperties": False,
    }
    assert REPLY.schema == {
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["YES", "NO"]},
            "items": {"type": "array", "items": item},
            "text": {"type": "string"},
        },
        "required": ["verdict", "items"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("text", "value", "repaired"),
    [
        ('{"verdict": "YES"}', Said(verdict="YES"), False),
        ('<think>{"verdict": "YES"}</think>```json\n{"Verdict": " no. "}\n```', Said(verdict="NO"), False),
        ("{'verdict': True, 'text': 'a\\nb'", Said(verdict="YES", text="a\nb"), True),
        ('{"a": {"verdict": "yes"}, "entries": [{"name": "x"}]}', Said(verdict="YES", items=(Item(name="x"),)), False),
        ('{"verdict": "NO", "items": ["abcdefg"]}', Said(verdict="NO", items=(Item(name="abcde"),)), False),
        ('{"verdict": "NO", "items": {"name": 7, "Piece": "[3]"}}', Said(verdict="NO", items=(Item(name="7", number=3),)), False),
        ('{"verdict": "NO", "items": [["x", 2], {"passage": 1}]}', Said(verdict="NO", items=(Item(name="x", number=2),)), True),
        ('{"verdict"\uff1a "NO"\uff0c "text"\uff1a "\u201cq\u201d"}', Said(verdict="NO", text="\u201cq\u201d"), True),
        ('{"verdict": "NO"}\n{"verdict": "perhaps"}', Said(verdict="NO"), False),
    ],
)  # fmt: skip
def test_replies_are_read_by_their_type(text, value, repaired):
    reading = REPLY.read(text)
    assert (reading.value, reading.repaired) == (value, repaired)


@pytest.mark.parametrize("text", ["", "YES", '{"verdict": "perhaps"}', '[{"name": "x"}]', '{"items": []}'])
def test_a_reply_without_what_it_must_have_is_unusable(text):
    reading = REPLY.read(text)
    assert reading.value is None
    assert (
        reading.problem
        == f"It is not of the form {json.dumps({'verdict': 'YES', 'items': [{'name': '...', 'piece': 1}], 'text': '...'})}."
    )


def test_values_are_checked_and_mapped():
    def check(said: Said) -> str:
        if not said.items:
            raise ValueError("It has no items.")
        return said.items[0].name

    reply = REPLY.then(check)
    assert reply.schema is REPLY.schema and reply.read('{"verdict": "NO", "items": ["x"]}').value == "x"
    assert reply.read('{"verdict": "NO"}').problem == "It has no items."


@dataclass(frozen=True)
class Numbers:
    numbers: Annotated[tuple[int, ...], Form(strict=True)] = ()


@pytest.mark.parametrize(
    ("value", "numbers"),
    [([1, "[2]"], (1, 2)), (None, ()), (3, (3,)), *((wrong, None) for wrong in ([True], ["x"], [1.5], [{}]))],
)
def test_a_strict_field_fits_whole_or_not_at_all(value, numbers):
    reading = reply_of(Numbers).read(json.dumps({"numbers": value}))
    assert reading.value == (None if numbers is None else Numbers(numbers))


@pytest.mark.parametrize("key", ["verdict", "items", "text"])
def test_deeply_nested_values_do_not_fit(key):
    deep = "[" * 900 + "]" * 900
    assert REPLY.read(f'{{"verdict": "NO", "{key}": {deep}}}').value in (
        None,
        Said(verdict="NO"),
        Said(verdict="NO", items=()),
    )


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda each: st.lists(each) | st.dictionaries(
    st.sampled_from(["verdict", "items", "name", "piece", "text"]), each)).map(json.dumps))  # fmt: skip
def test_no_text_raises(text):
    reading = REPLY.read(text)
    assert bool(reading.problem) == (reading.value is None)
