"""Replies of a thought and a call, or of a thought and an answer."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.replies.answers import CitedAnswer, read_cited_answers
from kgqa.llm.replies.tool_calls import read_tool_reply
from kgqa.methods.evograph.tools import SCHEMAS

TOOLS = SCHEMAS
SEARCH = '{"name": "graph_search", "arguments": {"query": "Ada"}}'


def read(text, schemas=TOOLS):
    return read_tool_reply(text, schemas=schemas)


@pytest.mark.parametrize(
    "text",
    [
        f"<think>Why.</think><tool_call>{SEARCH}</tool_call>",
        f"<think>Why.</think>\n<tool_call>\n```json\n{SEARCH}\n```\n</tool_call>",
        '<think>Why.</think><tool_call>{"tool": "graph_search", "args": {"query": "Ada"}}</tool_call>',
        '<think>Why.</think><tool_call>{"name": "graph_search", "arguments": "{\\"query\\": \\"Ada\\"}"}</tool_call>',
        f"<think>Why.</think><tool_call>{SEARCH}",  # a stop string ended the reply
        f"<think>Why. <tool_call>{SEARCH}</tool_call>",
        f"Why.</think>{SEARCH}",
        f"<think>Why.</think><tool_call>{SEARCH}</tool_call><tool_call>{SEARCH}</tool_call>",
        f"<think>Why.</think><tool_call>{SEARCH}</tool_call><tool_response>Mars</tool_response><answer>Mars</answer>",
        f"<think>Why.</think><tool_call>[{SEARCH}, {SEARCH}]</tool_call>",
    ],
)
def test_first_call_after_the_thought_is_read(text):
    reply = read(text).value
    assert (reply.thought, reply.name, dict(reply.arguments)) == ("Why.", "graph_search", {"query": "Ada"})
    assert reply.answer is None and reply.ignored == (text.count(SEARCH) > 1 or "<answer>" in text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Ada Lovelace", "not of the form"),
        ("", "not of the form"),
        ("<think>The answer is <answer>Mars</answer></think>", "not of the form"),  # only a thought
        ("<think>x</think><answer> </answer>", "empty"),
        ("<think>x</think><tool_call>search Ada</tool_call>", "no JSON object"),
        ('<tool_call>{"name": "format_disk", "arguments": {}}</tool_call>', "no tool format_disk"),
        (
            '<tool_call>{"name": "graph_search", "arguments": {}}</tool_call>',
            "needs the argument query",
        ),
        ('<tool_call>{"name": "graph_search", "arguments": {"query": 3}}</tool_call>', "must be a text"),
        (
            '<tool_call>{"name": "graph_search", "arguments": {"query": "a", "k": 99}}</tool_call>',
            "no argument k",
        ),
        (
            '<tool_call>{"name": "insert", "arguments": {"content": "a", "sources": ["b"]}}</tool_call>',
            "list of numbers",
        ),
        (
            json.dumps({"name": "graph_search", "arguments": {f"a{number}": 1 for number in range(1000)}}),
            "It takes query.",
        ),
        ("<think>x</think><tool_response>Mars</tool_response><answer>Mars</answer>", "invents"),
    ],
)
def test_other_replies_are_refused_with_a_reason(text, problem):
    reading = read(text)
    assert reading.value is None and problem in reading.problem and len(reading.problem) < 300


def test_last_turn_takes_answers_only():
    assert "No tool can be called" in read(f"<think>x</think><tool_call>{SEARCH}</tool_call>", ()).problem
    assert read("<think>x</think><answer>Mars</answer>", ()).value.answer == "Mars"


def test_numbers_may_be_written_as_text():
    text = '{"name": "update", "arguments": {"target": "[3]", "new_content": "a", "sources": "2"}}'
    reading = read(f"<tool_call>{text}</tool_call>")
    assert dict(reading.value.arguments) == {"target": 3, "new_content": "a", "sources": [2]} and reading.repaired


_TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<answer>", "</answer>", "<tool_response>"]
_JSON = [SEARCH, '{"name": ', '"arguments": {"query": "', '{"tool": {}}', "null", "[" * 400, "{" * 400]
_PARTS = st.sampled_from([*_TAGS, *_JSON, "\x00\ud800", "[2]", "; ", "é" * 30, "\n"])


@given(st.lists(_PARTS | st.text(max_size=20), max_size=30).map("".join))
def test_no_text_raises_or_takes_long(text):
    began = time.process_time()
    for schemas in (TOOLS, ()):
        reading = read(text, schemas)
        assert (reading.value is None) == bool(reading.problem)
        if reading.value is not None and reading.value.answer is None:
            json.dumps(dict(reading.value.arguments))
            assert reading.value.name in {each["name"] for each in schemas}
    read_cited_answers(text)
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("London [2]", [("London", (2,))]),
        ("London [2, 5]; Paris [3].", [("London", (2, 5)), ("Paris", (3,))]),
        ("Ada; Mary [2][4]", [("Ada", (2, 4)), ("Mary", (2, 4))]),
        ("The answer is: John F. Kennedy Jr.", [("John F. Kennedy Jr.", ())]),
        ("- yes [result 7]", [("yes", (7,))]),
        ("unknown", []),
        ("None. [1]", []),
    ],
)
def test_answers_and_their_numbers_are_read(text, found):
    assert read_cited_answers(text) == tuple(CitedAnswer(*each) for each in found)
