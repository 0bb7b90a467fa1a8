"""How an answer names its graph."""

from __future__ import annotations

import pytest

from kgqa.answer_json import answer_object
from kgqa.model import Answer, GraphId, Named, Question, Usage
from kgqa.report.answer import MAX_SHOWN, answer_text, cost_line, graph_line

SERVER = GraphId("http://h:8890/sparql", ("http://a", "http://b"), "remote-1", 1_234_567, "freebase")


@pytest.mark.parametrize(
    "graph, line",
    [
        (
            SERVER,
            "http://h:8890/sparql <http://a> <http://b>, 1,234,567 triples, fingerprint remote-1, schema freebase",
        ),
        (GraphId("folder", schema="rdfs"), "folder, triples not counted, schema rdfs"),
        (GraphId("x\x1b[31m", (), "f", 1, "s\u202e"), "x[31m, 1 triple, fingerprint f, schema s"),
    ],
)
def test_graph_line(graph, line):
    assert graph_line(graph) == line


def test_graph_in_text_is_optional():
    answer = Answer(Question("x"), "no_answer", reason="Nothing.", graph=SERVER)
    assert "remote-1" not in answer_text(answer)
    assert f"  graph  {graph_line(SERVER)}" in answer_text(answer, graph=True).splitlines()
    assert "graph" not in answer_text(Answer(Question("x"), "failed"), graph=True)


def test_graph_in_json():
    found = answer_object(Answer(Question("x"), "failed", graph=SERVER))["graph"]
    assert found == {
        "place": "http://h:8890/sparql",
        "iris": ["http://a", "http://b"],
        "fingerprint": "remote-1",
        "triples": 1_234_567,
        "schema": "freebase",
    }
    assert answer_object(Answer(Question("x"), "failed"))["graph"] is None


def test_long_list_of_answers_is_cut():
    named = tuple(Named(f"city {number}", "", f"city {number}") for number in range(MAX_SHOWN + 2))
    lines = answer_text(Answer(Question("x"), "answered", named)).splitlines()
    assert lines[MAX_SHOWN - 1 : MAX_SHOWN + 1] == ["city 29", "... and 2 more (use --json to see all)"]
    assert "more" not in answer_text(Answer(Question("x"), "answered", named[:MAX_SHOWN]))


def test_answer_of_a_model_names_its_source():
    answer = Answer(Question("x"), "answered", (Named("Paris", "", "Paris"),), grounding="model")
    assert "  source the language model's own knowledge" in answer_text(answer)
    assert "source" not in answer_text(Answer(Question("x"), "answered", answer.answers, grounding="graph"))


def test_notes_are_optional_and_defects_are_not():
    answer = Answer(Question("x"), "answered", notes=("two topics",), defects=("a query failed",))
    assert "  note   two topics" in answer_text(answer)
    assert "two topics" not in answer_text(answer, notes=False)
    assert "  DEFECT a query failed" in answer_text(answer, notes=False)


def test_cost_line():
    assert cost_line(Answer(Question("x"), "answered", usage=Usage(hops=1, queries=2, seconds=0.5))) == (
        "1 hop, 0 candidates, 0 comparisons, 2 SPARQL queries, 0.50 s"
    )
    usage = Usage(calls=3, rounds=1, prompt_tokens=1000, completion_tokens=20, cost=0.0125)
    assert "3 model calls in 1 round, 1,020 tokens, 0.0125 USD, 0.00 s" in cost_line(
        Answer(Question("x"), "answered", usage=usage)
    )
