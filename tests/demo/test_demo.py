"""The bundled demo graph and its questions."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from importlib.resources import files
from typing import get_args

import pyoxigraph as ox
import pytest

from kgqa.evaluation.datasets.registry import dataset_questions
from kgqa.evaluation.metrics.keys import answer_keys, gold_keys
from kgqa.graph.opening import open_graph
from kgqa.graph.query.tokens import expand_prefixes
from kgqa.model.conditions import OperationKind
from kgqa.testing.gold_candidates import gold_candidate
from scripts import demo_graph as build

NS = "http://rdf.freebase.com/ns/"
FOLDER = files("kgqa") / "demo"
QUESTIONS, CONDITIONS = (
    [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]
    for name in ("questions.jsonl", "conditions.jsonl")
)


@pytest.fixture(scope="module")
def store() -> ox.Store:
    store = ox.Store()
    store.bulk_load((FOLDER / "graph.nt").read_bytes(), format=ox.RdfFormat.N_TRIPLES)
    return store


@pytest.fixture(scope="module")
def names(store) -> dict[str, str]:
    rows = store.query(f"SELECT ?x ?n {{ ?x <{NS}type.object.name> ?n FILTER(LANG(?n) = 'en') }}")
    return {row[0].value.removeprefix(NS): row[1].value for row in rows}


def test_graph_file_is_up_to_date():
    assert (FOLDER / "graph.nt").read_text(encoding="utf-8").splitlines() == build.build_lines()


def test_size_and_variety(store, names):
    assert len(store) >= 3000
    assert sum(name.startswith("m.demo_") for name in names) >= 500
    assert len(QUESTIONS) >= 60 and {q["hops"] for q in QUESTIONS} == {1, 2, 3}
    both = QUESTIONS + CONDITIONS
    assert len({q["id"] for q in both}) == len({q["question"] for q in both}) == len(both)
    shared = Counter(names.values())
    assert sum(count > 1 for count in shared.values()) >= 5, "namesakes"
    degrees = Counter(quad.object.value for quad in store if isinstance(quad.object, ox.NamedNode))
    assert max(count for iri, count in degrees.items() if "m.demo_" in iri) >= 100, "a hub"
    assert any(not name.isascii() for name in names.values())


def test_ids_have_the_demo_prefix(store):
    nodes = {t.value for quad in store for t in (quad.subject, quad.object) if isinstance(t, ox.NamedNode)}
    entity_iris = [iri for iri in nodes if iri.startswith((NS + "m.", NS + "g."))]
    assert all(iri.startswith((NS + "m.demo_", NS + "g.demo_")) for iri in entity_iris)


def test_inverse_relations_are_complete(store):
    pairs = list(store.query("SELECT ?r ?s { ?r <http://www.w3.org/2002/07/owl#inverseOf> ?s }"))
    assert len(pairs) >= 20
    for left, right in pairs:
        assert not store.query(f"ASK {{ ?x {left} ?y FILTER NOT EXISTS {{ ?y {right} ?x }} }}")


def test_every_entity_except_mediators_has_a_name(store, names):
    nodes = {q.subject.value.removeprefix(NS) for q in store}
    assert all(node in names for node in nodes if node.startswith("m."))
    assert not any(node.startswith("g.") for node in names)


def test_literals_have_no_control_characters(store):
    for quad in store:
        if isinstance(quad.object, ox.Literal):
            assert all(unicodedata.category(c) not in ("Cc", "Cf") for c in quad.object.value)


@pytest.mark.parametrize("question", QUESTIONS + CONDITIONS, ids=lambda q: q["id"])
def test_gold_queries_give_the_gold_answers(question, store, names):
    result = store.query(expand_prefixes(question["sparql"]))
    found = {ox.Literal(bool(result))} if isinstance(result, ox.QueryBoolean) else {row[0] for row in result}
    gold = {
        ox.NamedNode(NS + a["id"]) if "id" in a else ox.Literal(a["value"], datatype=ox.NamedNode(a["datatype"]))
        for a in question["answers"]
    }
    assert found == gold and gold
    for entity in question["topic_entities"] + [a for a in question["answers"] if "id" in a]:
        assert names[entity["id"]] == entity["name"]


def test_conditions_and_operations_are_expressed_by_one_candidate():
    """The translated gold query is written again by kgqa, and returns the gold answers."""
    kinds = set()
    with open_graph() as graph:
        dates = {relation for relation, type_ in graph.tables.types["out"].items() if type_ == NS + "type.datetime"}
        for question in dataset_questions("demo-conditions"):
            topics = [graph.schema.iri(topic) for topic in question.topics]
            candidate = gold_candidate(question.sparql[0], topics, is_date=dates.__contains__)
            assert candidate.conditions or candidate.operation or candidate.joins
            sparql = graph.answer_query(
                candidate.path,
                joins=candidate.joins,
                conditions=candidate.conditions,
                operation=candidate.operation,
            )
            gold = gold_keys(question.answers)
            assert answer_keys(graph.named(graph.run_exported(sparql)), gold) == gold, question.text
            kinds |= {candidate.operation.kind} if candidate.operation else {"conditions"}
    assert kinds == {"conditions", *get_args(OperationKind)}
