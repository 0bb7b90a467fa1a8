"""Reading the body of a chat response: text, reasoning, failures and unreadable bodies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.backends.chat_response import (
    UnreadableBody,
    part_reasoning,
    read_body,
    read_reply,
)
from kgqa.llm.client import Completion


@pytest.mark.parametrize(
    ("text", "expected_text", "expected_reasoning"),
    [
        ("plain", "plain", ""),
        ("<think>\nwhy\n</think>\n\nyes\n", "yes", "why"),
        ("why</think>yes", "yes", "why"),
        ("<think>\n\n</think>\n\nyes", "yes", ""),
        ("<think>one</think>yes<think>two</think> and no", "yes and no", "one\n\ntwo"),
        ("<think>cut off", "", "cut off"),
        ("</think>", "", ""),
        ("the tag <think> opens it", "the tag <think> opens it", ""),
        ("<think>a<think>b</think>c</think>yes", "yes", "a\n\nb\n\nc"),
        ("<thought>a</thought>b", "b", "a"),
        ("", "", ""),
    ],
)
def test_reasoning_is_separated_from_the_text(text, expected_text, expected_reasoning):
    assert part_reasoning(text) == (expected_text, expected_reasoning)


@pytest.mark.parametrize(
    ("given_", "failure", "detail"),
    [
        ({"text": "yes"}, "", ""),
        ({"text": ""}, "empty", "is empty"),
        ({"text": "<think>a</think>"}, "empty", "only reasoning"),
        ({"text": "", "reasoning": "a"}, "empty", "only reasoning"),
        ({"text": "ye", "finish_reason": "length", "completion_tokens": 8}, "length", "8 tokens"),
        ({"text": "", "refusal": "I will not"}, "refused", "I will not"),
        ({"text": "part", "finish_reason": "content_filter"}, "refused", "content filter"),
    ],
)
def test_unusable_replies_are_failures(given_, failure, detail):
    completion = read_reply(**given_)
    assert completion.failure == failure and detail in completion.detail
    assert bool(completion.detail) is bool(failure)


def body(content="yes", *, finish_reason="stop", **message) -> dict:
    return {
        "choices": [{"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3},
    }


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ({"reasoning": "a"}, "a"),
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": None, "reasoning_content": "a"}, "a"),
        ({"reasoning": {"effort": "high"}}, ""),
        ({}, ""),
    ],
)
def test_reasoning_fields(message, reasoning):
    assert read_body(body(**message)).reasoning == reasoning


def test_content_in_parts():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}
    completion = read_body(body([thinking, {"type": "text", "text": "ye"}, {"type": "text", "text": "s"}, 7]))
    assert (completion.text, completion.reasoning) == ("yes", "why")


@pytest.mark.parametrize(
    "usage",
    [None, {}, [], {"prompt_tokens": None}, {"prompt_tokens": "12"}, {"prompt_tokens": -1}, {"prompt_tokens": True}],
)
def test_invalid_usage_counts_as_zero(usage):
    completion = read_body({**body(), "usage": usage})
    assert (completion.prompt_tokens, completion.completion_tokens) == (0, 0)


@pytest.mark.parametrize(
    ("unreadable", "expected_text"),
    [
        (None, "not a JSON object"),
        ({}, "no choices"),
        ({"choices": []}, "no choices"),
        ({"choices": ["text"]}, "no choices"),
        ({"choices": [{"message": "text"}]}, "no message"),
        ({"error": {"message": "overloaded"}}, "overloaded"),
        ({"error": "overloaded"}, "overloaded"),
        (body("half", finish_reason="error"), "aborted the reply"),
        ({"choices": [{"message": {"content": "half"}, "error": {"message": "gone"}}]}, "gone"),
    ],
)
def test_body_without_reply_is_unreadable(unreadable, expected_text):
    with pytest.raises(UnreadableBody, match=expected_text):
        read_body(unreadable)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "reasoning", "refusal", "finish_reason", "usage", "error", "text"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(json_values)
def test_any_json_is_read_or_unreadable(value):
    for each in (value, {"choices": [value]}, {"choices": [{"message": value}], "usage": value}):
        try:
            assert isinstance(read_body(each), Completion)
        except UnreadableBody as error:
            assert str(error)  # noqa: PT017  # both outcomes are allowed
