"""Saved answers over text in plain words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.report.text.explanation import explanation
from kgqa.storage.answer_json import answer_object
from tests.report.site.test_bracket import json_values
from tests.report.test_pages import ATTACKS
from tests.report.text.traces import QUESTION, STEPS, text_answer


def test_steps_and_claims():
    lines = explanation(answer_object(text_answer("graphsearch", STEPS), trace=True)).splitlines()
    assert lines[:5] == [
        f"Question: {QUESTION}",
        "Answer: Kirkwick",
        "Steps:",
        "  round 0 asks: 1. Who was the architect of the Skerry Light?; 2. Where was #1 born? (needs 1); 3. Who leads "
        "the town #2? (needs 2)",
        "  sub-question 1: Who was the architect of the Skerry Light? → Ines Marr (1 of 1 quote verified)",
    ]
    assert lines[-4:] == [
        "Claims, 2 of 3 with a quote that stands in the text:",
        "  1. Ines Marr was the architect. “Its architect was Ines Marr” [docs/Skerry Light.txt, 36–63] ✓",
        "  2. She was born in Kirkwick. “She was born in Kirkwick on 3 May 1832” [docs/Ines Marr.txt, 28–66] ✓",
        f"  3. She lived in Oban. “She lived in Oban” [{text_answer().citations[2].piece}] (not found in the text)",
    ]


def test_without_a_trace_only_claims_are_explained():
    assert "Steps" not in explanation(answer_object(text_answer()))
    assert explanation({"answers": [], "sparql": "SELECT"}) == ""
    assert "Answer: no answer" in explanation({"citations": [{}]})


@pytest.mark.parametrize("attack", ATTACKS)
def test_control_characters_are_removed(attack):
    citation = {"claim": attack, "quote": attack, "piece": attack, "span": {"source": attack}}
    text = explanation({"question": attack, "answers": [{"name": attack}], "citations": [citation]})
    assert text.replace("\n", "").isprintable()


@given(st.dictionaries(st.sampled_from(["question", "answers", "citations", "trace", "reason"]), json_values))
def test_any_object_is_explained(data):
    explanation(data)
