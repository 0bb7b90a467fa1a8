"""Example questions about any graph."""

from __future__ import annotations

from kgqa import ask, open_resources
from kgqa.serve.examples import MAX_EXAMPLES, graph_examples
from kgqa.settings import resolve


def test_examples_read_like_questions_and_are_answered(demo):
    found = graph_examples(demo)
    assert len(set(found)) == MAX_EXAMPLES and all(text.startswith("What is the ") for text in found)
    resources = open_resources(demo, settings=resolve({"rank.embeddings": "off"}))
    answered = [ask(text, resources=resources).status == "answered" for text in found]
    assert sum(answered) >= MAX_EXAMPLES - 1
