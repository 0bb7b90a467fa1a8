"""Views: immutable, many at once on one store, in every kind of store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.model import Candidate, Entity, Literal, RelationPath, Triple
from kgqa.trace.trace import Trace

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ANN, FACTS, HYPER = Entity("http://e/ann"), "http://e/facts", "http://e/hyper"
LINES = [
    f"<http://e/ann> <http://e/knows> <http://e/bob> <{FACTS}> .",
    f'<http://e/ann> <{LABEL}> "Ann" <{FACTS}> .',
    *(f"<http://e/ann> <http://e/part{n}> <http://e/edge{n}> <{HYPER}> ." for n in range(5)),
    f'<http://e/ann> <{LABEL}> "Ann of edges" <{HYPER}> .',
]
RELATIONS = {FACTS: {"http://e/knows"}, HYPER: {f"http://e/part{n}" for n in range(5)}}
NAMES = {FACTS: "Ann", HYPER: "Ann of edges"}


@pytest.fixture(scope="module")
def whole(graphs) -> KnowledgeGraph:
    return graphs.make(LINES, "rdfs")


def seen(view: KnowledgeGraph) -> tuple[object, ...]:
    steps = {step.relation for step in view.paths.steps([Candidate(RelationPath(ANN))])[0].steps}
    return steps, view.labels([ANN]), [match.name for match in view.search("ann")], set(view.tables.relations) - {LABEL}


def expected(iri: str) -> tuple[object, ...]:
    return RELATIONS[iri], {ANN: NAMES[iri]}, [NAMES[iri]], RELATIONS[iri]


def test_two_views_at_once(whole):
    views = {iri: whole.view_of(iri) for iri in (FACTS, HYPER)}

    def look(number: int) -> bool:
        iri = (FACTS, HYPER)[number % 2]
        return seen(views[iri]) == expected(iri)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(look, range(24)))
    assert views[FACTS].store is views[HYPER].store is whole.store
    fingerprints = {whole.store.fingerprint_of([iri]) for iri in views}
    assert len(fingerprints) == 2 and whole.store.triples_of([FACTS]) == 2 and whole.store.triples_of([HYPER]) == 6
    views[FACTS].close()
    assert seen(views[HYPER]) == expected(HYPER) and seen(whole.view_of(FACTS)) == expected(FACTS)
    views[HYPER].close()
    assert whole.store.ask("ASK { GRAPH ?g { ?s ?p ?o } }")


def test_a_view_of_a_question_is_charged_to_the_question(whole):
    trace = Trace()
    view = whole.view_of(FACTS).for_question(trace).view_of(HYPER)
    before = trace.usage().queries
    assert view.labels([ANN]) == {ANN: NAMES[HYPER]} and trace.usage().queries == before + 1
    view.close()


def test_edits_of_one_graph_are_seen_by_its_views_only(graphs):
    store, name = graphs.write_facts([(ANN, LABEL, Literal("Ann"))])
    with KnowledgeGraph(store, open_graph().schema, view=[name]) as graph:
        other = graph.view_of("http://e/elsewhere")
        assert graph.labels([ANN]) == {ANN: "Ann"} and other.labels([ANN]) == {}
        version = store.version_of(["http://e/elsewhere"])
        store.edit(name, [Triple(ANN, LABEL, Literal("Anne"))], [Triple(ANN, LABEL, Literal("Ann"))])
        assert graph.labels([ANN]) == {ANN: "Anne"} and other.labels([ANN]) == {}
        assert store.version_of(["http://e/elsewhere"]) == version
        other.close()
