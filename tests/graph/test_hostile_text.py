"""Hostile names, ids and labels in every public call on both stores: no other query runs, nothing changes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyoxigraph
import pytest
from hypothesis import Phase, given, settings
from rdflib.plugins.sparql import prepareQuery

from kgqa.errors import InvalidTerm, KgqaError, QueryRejected, StoreTimeout, StoreUnavailable
from kgqa.graph.detection import detect_schema
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.server_index import ServerIndex
from kgqa.graph.queries import Queries
from kgqa.graph.query.explain import explain
from kgqa.graph.query.text import render_term
from kgqa.graph.query.tokens import tokens
from kgqa.methods.ask import ask
from kgqa.methods.resources import Resources
from kgqa.model import Candidate, Entity, Join, Literal, RelationPath, Step, Triple
from kgqa.model.conditions import Comparison, Condition, Operation
from kgqa.report.answer import answer_text
from kgqa.schema import bundled_schema
from kgqa.search.linking import find_mentions
from kgqa.settings.values import resolve
from kgqa.storage.answer_json import answer_object, json_text
from tests.conftest import SOAK
from tests.graph.facts import ends, expansion, path, walks
from tests.graph.graph_factories import VirtuosoGraphFactory
from tests.graph.hostile_text import FRAGMENTS, hostile_texts
from tests.graph.query_recording import RecordingProxy, RecordingStore, query_structure

EXAMPLES = {"embedded": 500 if SOAK else 180, "rdflib": 300 if SOAK else 90, "virtuoso": 500 if SOAK else 150}
UPDATES = 100 if SOAK else 15
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OPTIONS = resolve({"rank.embeddings": "off", "explore.depth": 1}, environment={})
SHARE = 1 if SOAK else 8
"""One in this many hostile texts is asked about."""
ANN, BOB = Entity("http://e/ann"), Entity("http://e/bob")
FACTS = [
    (ANN, "http://e/knows", BOB),
    (BOB, "http://e/knows", Entity("http://e/cid")),
    (BOB, "http://e/born", Entity("http://e/rome")),
    (BOB, "http://e/age", Literal("5")),
    *((Entity(f"http://e/{name}"), RDFS + "label", Literal(label, language="en")) for name, label in (("ann", "Ann Lee"), ("bob", "Bob"))),
]  # fmt: skip
HARMLESS = ("ann", "http://e/ann", "Ann Lee", "x", "2001", "who knows bob", "a+b", "a b", "ann bob rome")
Call = Callable[[KnowledgeGraph], object]


def calls(text: str) -> dict[str, Call]:
    """Return all public calls with the text in each argument that may come from outside."""
    entity, raw, step = Entity(f"http://e/{text}"), Entity(text), Step(f"http://e/{text}")
    knows = Step("http://e/knows")
    known = RelationPath(ANN, (knows, knows))
    paths = [
        RelationPath(entity, (knows,)),
        RelationPath(ANN, (knows, step.reversed())),
        RelationPath(raw, (step,)),
        RelationPath(ANN, (Step(text),)),
    ]
    values = [Literal(text), Literal("5", text), Literal("5", language=text), entity]
    found: dict[str, Call] = {
        "next_steps": lambda g: expansion(g, RelationPath(entity)),
        "ends joined": lambda g: g.paths.ends([Candidate(known, joins=[Join(1, paths[0])])]),
        "ends restricted": lambda g: g.paths.ends([Candidate(known, restricted=((1, (BOB, entity)),))], limit=3),
        "relation": lambda g: (
            g.tables.target_type(step),
            g.paths.describing_relations([step.reversed()]),
            g.tables.leads_to_mediator(step),
        ),
        "noise": lambda g: (g.tables.is_noise(step.relation), g.tables.is_noise(text), g.tables.inverses.get(text)),
        "exists": lambda g: g.paths.present([entity]),
        "exists raw": lambda g: g.paths.present([raw]),
        "degrees": lambda g: g.paths.degrees([ANN, entity]),
        "neighbours": lambda g: g.paths.neighbours(entity, limit=5),
        "labels": lambda g: g.labels([ANN, entity]),
        "named": lambda g: g.named([*values, raw, BOB]),
        "search": lambda g: g.search(text),
        "find_mentions": lambda g: find_mentions(g, text),
        "names_of": lambda g: entity in g.paths.present([entity]) or g.names.names_of([entity]),
        "value_of": lambda g: g.paths.present([Entity(g.schema.iri(text))]),
        "view": lambda g: KnowledgeGraph(g.store, g.schema, view=[*(v.iri for v in g.view), text]).paths.present([ANN]),
        "detect_schema": lambda g: detect_schema(g.store, [f"http://e/{text}"]),
        "ask": lambda g: ask_question(g, text),
        "ask of ann": lambda g: ask_question(g, f"who does ann know {text}"),
        "ask with a topic": lambda g: ask_question(g, "who is known?", topics=[text]),
        "ask with an IRI": lambda g: ask_question(g, "who is known?", topics=[f"http://e/{text}"]),
        "explain": lambda g: explain(g, text),
    }
    for number, which in enumerate(paths):
        found[f"next_steps {number}"] = lambda g, which=which: expansion(g, which)
        found[f"ends {number}"] = lambda g, which=which: ends(g, which)
        found[f"walks_along {number}"] = lambda g, which=which: walks(g, which)
        found[f"exported {number}"] = lambda g, which=which: g.run_exported(g.answer_query(which))
    for number, value in enumerate(values):
        found[f"walks_along to {number}"] = lambda g, value=value: walks(g, known, ends=[value])
        found[f"condition {number}"] = lambda g, value=value: answers_of(g, known, [condition_on(value)])
    found["condition on a node"] = lambda g: answers_of(g, known, [Condition(1, (), entity, True)])
    found["condition on a relation"] = lambda g: answers_of(g, known, [Condition(2, (step, knows), negated=True)])
    for kind in ("most", "sum", "difference"):
        operation = Operation(kind, (step,), topics=(ANN, entity))
        found[kind] = lambda g, operation=operation: answers_of(g, RelationPath(ANN), (), operation)
    return found


def condition_on(value: Entity | Literal) -> Condition:
    """Return the condition that Bob has this value; a literal that cannot be compared is compared as a text."""
    if isinstance(value, Entity):
        return Condition(1, (Step("http://e/knows"),), value)
    with contextlib.suppress(ValueError):
        return Condition(1, (Step("http://e/age"),), Comparison("=", value))
    return Condition(1, (Step("http://e/age"),), Comparison("!=", Literal(value.value)))


def answers_of(graph: KnowledgeGraph, path: RelationPath, conditions, operation: Operation | None = None) -> object:
    """Run the exported query of a path with conditions and an operation; a query with conditions is explained, too."""
    query = graph.answer_query(path, conditions=conditions, operation=operation)
    if conditions:
        is_safe_text(explain(graph, query))
    return graph.run_exported(query)


def ask_question(graph: KnowledgeGraph, question: str, **options):
    answer = ask(question, resources=Resources(graph, None, OPTIONS), **options)
    is_safe_text(answer_text(answer, iris=True, graph=True))
    is_safe_text(json_text(answer_object(answer, trace=True), indent=2))
    return answer


_ORDERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def is_safe_text(text: str) -> None:
    """Return whether the text has no control characters and no bidirectional marks."""
    assert not _ORDERS.search(text), ascii(text)


def run(graph: KnowledgeGraph, text: str, *, first: int = 0, every: int = 1) -> set[str]:
    """Make all or a share of the calls and return those that gave results; only KgqaError may be raised."""
    done = set()
    for name, call in list(calls(text).items())[first % every :: every]:
        try:
            call(graph)
            done.add(name)
        except StoreTimeout:
            raise
        except KgqaError as error:
            is_safe_text(str(error))
    return done


# --- sent queries


@dataclass(frozen=True)
class RecordedGraph:
    """The small graph in a writable store that records its queries."""

    graph: KnowledgeGraph
    log: RecordingStore | RecordingProxy

    def sent(self) -> list[str]:
        """Return the queries since the last call, if nothing else was sent."""
        if isinstance(self.log, RecordingStore):
            queries, self.log.queries = self.log.queries, []
            return queries
        requests, self.log.requests = self.log.requests, []
        for request in requests:
            assert request.method in ("GET", "POST") and request.path == "/sparql", request
            assert set(request.fields) <= {"query", "timeout", "format", "output", "results"}, request
            assert len(request.fields["query"]) == 1, request
        return [request.query for request in requests]


@pytest.fixture(scope="module")
def recorded_graph(graphs) -> Iterator[RecordedGraph]:
    store, name = graphs.write_facts(FACTS)
    schema = bundled_schema("rdfs")
    log: RecordingStore | RecordingProxy
    if graphs.kind == "virtuoso":
        graphs.index_names(KnowledgeGraph(store, schema, view=[name]))
        log = RecordingProxy(graphs.url)
        store = EndpointStore(log.url, writable=name, access=graphs.access())
    else:
        log = store = RecordingStore(store)
    graph = KnowledgeGraph(store, schema, view=[name], timeout=10.0)
    graph.tables.prepare()
    assert graph.names.count == 2
    assert isinstance(graph.names, ServerIndex) == (graphs.kind == "virtuoso")
    yield RecordedGraph(graph, log)
    if isinstance(log, RecordingProxy):
        store.close()
        log.close()


def one_by_one(queries: Queries, lookups, *, look_up=Queries.look_up, **options) -> list:
    return [look_up(queries, [each], **options)[0] for each in lookups]


@pytest.fixture(scope="module")
def harmless_structures(recorded_graph) -> frozenset[str]:
    """Return the structures of all queries that harmless text leads to, those of halved batches among them."""
    done = set()
    with pytest.MonkeyPatch.context() as patch:
        for look_up in (Queries.look_up, one_by_one):
            patch.setattr(Queries, "look_up", look_up)
            for text in HARMLESS:
                done |= run(recorded_graph.graph, text)
    assert done >= set(calls("")) - {"explain"}
    return frozenset(map(query_structure, recorded_graph.sent()))


@pytest.mark.soak
def test_only_own_queries_run_and_the_graph_is_unchanged(graphs, recorded_graph, harmless_structures):
    before = graphs.state()
    texts = count = 0
    examples, every = EXAMPLES[graphs.kind], 1 if SOAK else 3 if graphs.kind == "embedded" else 7

    def check(text: str) -> None:
        nonlocal texts, count
        run(recorded_graph.graph, text, first=texts, every=every)
        texts += 1
        for query in recorded_graph.sent():
            assert query_structure(query) in harmless_structures, query
            count += 1

    fragments = FRAGMENTS[:: 2 if graphs.kind == "rdflib" and not SOAK else 1]  # all of them in the other stores
    for text in fragments:
        check(text)
    settings(max_examples=examples - len(fragments), phases=[Phase.generate])(given(hostile_texts)(check))()
    assert texts == examples and count > 3 * examples
    assert graphs.state() == before


_PATTERN = re.compile(r'"(?:[()]| |AND|OR|\\"[^\W_][\w\u0300-\u036f .]*\*?\\")+"')


@pytest.mark.soak
def test_search_text_stays_words(recorded_graph):
    """Hostile words do not change the full-text pattern, a language of its own that only servers use."""
    recorded_graph.sent()
    for text in FRAGMENTS[:: 1 if SOAK else 3]:
        for asked_for in (text, f"ann {text}*"):
            recorded_graph.graph.search(asked_for)
            find_mentions(recorded_graph.graph, f"who is {asked_for} and Ann Lee?")
    patterns = 0
    for query in recorded_graph.sent():
        solid = [token.text for token in tokens(query) if token.kind not in ("space", "comment")]
        for place in (place for place, word in enumerate(solid) if word == "<bif:contains>"):
            assert _PATTERN.fullmatch(solid[place + 1]), query
            patterns += 1
    assert patterns > 30 or (isinstance(recorded_graph.log, RecordingStore) and not patterns)


# --- hostile graphs

LABELS = [piece for piece in FRAGMENTS if "\x00" not in piece and not re.search("[\ud800-\udfff]", piece)]


def is_iri(text: str) -> bool:
    """Return whether both engines accept the IRI."""
    try:
        pyoxigraph.NamedNode(text)
        return bool(render_term(Entity(text)))
    except (ValueError, KgqaError):
        return False


IRIS = [iri for iri in (f"http://e/i{piece}" for piece in LABELS) if is_iri(iri)]


@pytest.fixture(scope="module")
def hostile_graph(graphs) -> KnowledgeGraph:
    """Return a graph with hostile labels, values and IRIs."""
    facts = [(ANN, RDFS + "label", Literal("Ann", language="en"))]
    for number, text in enumerate(LABELS):
        thing, relation = Entity(f"http://e/h{number}"), f"http://e/r{number}"
        facts += [
            (ANN, relation, thing),
            (thing, "http://e/says", Literal(text)),
            (thing, RDFS + "label", Literal(text, language="en")),
            (Entity(relation), RDFS + "label", Literal(text)),
        ]
    for iri in IRIS:
        facts += [(ANN, "http://e/met", Entity(iri)), (Entity(iri), iri, ANN)]
    store, name = graphs.write_facts(facts)
    return KnowledgeGraph(store, bundled_schema("rdfs"), view=[name], timeout=20.0)


@pytest.mark.soak
def test_hostile_labels_change_no_query(graphs, hostile_graph):
    share = 1 if SOAK or graphs.kind == "embedded" else 6
    harmless = query_structure(hostile_graph.answer_query(RelationPath(ANN, (Step("http://e/x"),))))
    for number, text in list(enumerate(LABELS))[::share]:
        thing = Entity(f"http://e/h{number}")
        query = hostile_graph.answer_query(RelationPath(ANN, (Step(f"http://e/r{number}"),)))
        assert query_structure(query) == harmless
        prepareQuery(query)
        assert hostile_graph.run_exported(query) == (thing,)
        is_safe_text(query)
        is_safe_text(explain(hostile_graph, query))
        assert len(query.splitlines()) == len(query.split("\n"))
        restricted = RelationPath(ANN, (Step(f"http://e/r{number}"), Step("http://e/says")))
        query = hostile_graph.answer_query(restricted, restricted={1: [thing]})
        assert hostile_graph.run_exported(query) == (Literal(text),)
        is_safe_text(query)


def test_hostile_labels_and_values_are_unchanged(hostile_graph):
    things = [Entity(f"http://e/h{number}") for number in range(len(LABELS))]
    assert list(hostile_graph.labels(things).values()) == LABELS
    for thing, text in zip(things, LABELS):
        says = path(thing.iri, "http://e/says")
        assert ends(hostile_graph, says) == (Literal(text),)
        assert walks(hostile_graph, says, ends=[Literal(text)]) == [(thing, Literal(text))]
    assert set(ends(hostile_graph, path(ANN.iri, "http://e/met"))) == set(map(Entity, IRIS))
    for iri in IRIS:
        back = RelationPath(Entity(iri), (Step(iri),))
        assert ends(hostile_graph, back) == hostile_graph.run_exported(hostile_graph.answer_query(back)) == (ANN,)


@pytest.mark.soak
def test_hostile_text_does_not_reach_the_terminal(hostile_graph):
    """Hostile labels, values and IRIs are escaped in answers, JSON, notes and reasons."""
    things = [f"http://e/h{number}" for number in range(0, len(LABELS), SHARE)]
    asked = [("what does it say?", [thing]) for thing in things] + [("who was met?", [iri]) for iri in IRIS[::SHARE]]
    asked += [(f"what does {text} say?", []) for text in LABELS[::SHARE]]
    seen = [ask_question(hostile_graph, question, topics=topics).status for question, topics in asked]
    assert set(seen) >= {"answered", "no_answer"} and seen.count("answered") > len(LABELS) // SHARE


# --- updates


@pytest.mark.soak
def test_edits_write_only_to_their_graph(virtuoso_server):
    graphs = VirtuosoGraphFactory(virtuoso_server)
    store, name = graphs.write_facts(FACTS)
    before = graphs.sizes()
    query = f"SELECT ?text FROM <{name}> WHERE {{ <http://e/said> <http://e/says> ?text }}"
    said = Entity("http://e/said")

    def check(text: str) -> None:
        edits = [
            (name, Triple(Entity(f"http://e/{text}"), "http://e/says", said)),
            (name, Triple(said, f"http://e/{text}", said)),
            (name, Triple(said, "http://e/says", Entity(text))),
            (name, Triple(said, "http://e/says", Literal("x", f"http://e/{text}"))),
            (name, Triple(said, "http://e/says", Literal("x", language=text))),
            (text, Triple(said, "http://e/says", said)),
        ]
        for graph, triple in edits:
            with contextlib.suppress(InvalidTerm, QueryRejected, StoreUnavailable):
                store.edit(graph, [triple])
                store.edit(graph, [], [triple])
        triple = Triple(said, "http://e/says", Literal(text))
        with contextlib.suppress(InvalidTerm, QueryRejected):  # not accepted by servers: NUL and lone surrogates
            store.edit(name, [triple])
            assert store.select(query).rows == [(Literal(text),)]
            assert store.edit(name, [], [triple]).removed == (triple,)

    for text in FRAGMENTS[:: 1 if SOAK else 5]:
        check(text)
    settings(max_examples=UPDATES, phases=[Phase.generate])(given(hostile_texts)(check))()
    assert graphs.sizes() == before
    graphs.close()
