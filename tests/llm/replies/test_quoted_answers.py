"""The reader of replies with quotes."""

from __future__ import annotations

import json

import pytest

from kgqa.llm.replies.quoted_answers import QuotedAnswer, Support, quoted_reply


def read(value, size=3):
    return quoted_reply(size).read(value if isinstance(value, str) else json.dumps(value))


def test_whole_reply():
    support = [{"claim": "c", "passage": 3, "quote": " q "}]
    found = read({"answers": ["Ada"], "response": "It is Ada.", "support": support})
    assert found.value == QuotedAnswer(("Ada",), "It is Ada.", (Support("c", 2, "q"),)) and not found.repaired


@pytest.mark.parametrize(
    "support",
    [
        {"passage": 0, "quote": "q"},
        {"passage": 4, "quote": "q"},
        {"passage": True, "quote": "q"},
        {"passage": "one", "quote": "q"},
        {"passage": 1, "quote": "  "},
        {"passage": 1, "quote": "."},
        {"quote": "q"},
        "q",
        None,
    ],
)
def test_support_that_names_no_passage_is_left_out(support):
    found = read({"answers": ["Ada"], "support": [support, {"Passage": "2", "quote": "q"}]})
    assert found.value.supports == (Support("", 1, "q"),)


def test_form_is_read_leniently():
    assert read({"answer": "Ada", "citations": {"piece": 1, "quote": "q"}}).value.supports == (Support("", 0, "q"),)
    assert read('Well:\n```json\n{"answers": ["Ada"], "response": "x"}\n```').value == QuotedAnswer(("Ada",), "x")
    assert read({"answers": [], "response": "no"}).value == QuotedAnswer((), "no")
    assert read({"answers": [1815]}).value.answers == ("1815",)
    assert read('<think>{"answers": ["no"]}</think>{"answers": ["Ada"]}').value.answers == ("Ada",)


@pytest.mark.parametrize("depth", range(900, 1000, 5))
def test_deep_answers(depth):
    for answers in ("[" * depth + "]" * depth, '{"name": ' * depth + '"Ada"' + "}" * depth):
        read(f'{{"answers": {answers}}}')


def test_what_is_likely_counts_only_without_answers():
    assert read({"answers": [], "likely": ["Ada"]}).value.likely == ("Ada",)
    assert read({"answers": ["Bob"], "likely": ["Ada"]}).value.likely == ()
