"""How an answer names its graph."""

from __future__ import annotations

import pytest

from kgqa.answer_json import answer_object
from kgqa.model import Answer, GraphId, Question
from kgqa.report.answer import answer_text, graph_line

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
