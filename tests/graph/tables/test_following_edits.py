"""After any edits, all tables and the index of names equal those of a graph that is opened afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import FILE, NameIndex
from kgqa.graph.opening import open_graph, open_store
from kgqa.graph.store import Store
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Entity, Literal, Step, Triple
from kgqa.schema import Schema, bundled_schema, parse_schema
from kgqa.storage.cache import Cache
from kgqa.text.words import normalise
from tests.conftest import SOAK
from tests.graph.memory_store import MemoryStore

EDITS = 500 if SOAK else 100
RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
OWL, SKOS = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2004/02/skos/core#"
NS = "http://rdf.freebase.com/ns/"
WD, PROP, WIKIBASE = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/", "http://wikiba.se/ontology#"
NAMES = ["Ann", "Ann Lee", "The Bible", "Alien (film)", "Stockholm, Sweden", "United States of America", "Super Bowl"]
NAMES += ["Ann", "!!!", "Bob", "Zoë", "Zoe", "Łódź on a very long way to the sea and back", "Ann's bowl", "a"]
LITERALS = [Literal(name, language=tag) for name in NAMES for tag in ("en", "de", "en-GB", "")]
NUMBERS = [Literal("7", "http://www.w3.org/2001/XMLSchema#integer"), Literal("7")]


class Kind:
    """A kind of graph: a schema, and random triples of which each is one of a few hundred.

    Args:
        triples: functions that return a random triple; those listed first are drawn more often.
    """

    def __init__(self, schema: Schema, *triples: Callable[[random.Random], Triple]) -> None:
        self.schema = schema
        self.triples = triples

    def triple(self, rng: random.Random) -> Triple:
        place = min(int(rng.expovariate(0.5)), len(self.triples) - 1)
        return self.triples[place](rng)


def made_of(subjects: list[str], relations: list[str], objects: list) -> Callable[[random.Random], Triple]:
    """Return a function that returns a random triple of these subjects, relations and objects."""
    objects = [value if isinstance(value, Literal) else Entity(value) for value in objects]
    return lambda rng: Triple(Entity(rng.choice(subjects)), rng.choice(relations), rng.choice(objects))


def iris(base: str, count: int) -> list[str]:
    return [f"{base}{number}" for number in range(count)]


E = "http://e/"
NODES, RELATIONS = iris(f"{E}n", 12), iris(f"{E}r", 6)
CVT = iris(f"{NS}base.cvt", 3)
TOPICS = [*iris(f"{NS}m.n", 10), *iris(f"{NS}g.x", 2)]
FREEBASE = [f"{cvt}.role" for cvt in CVT] + [f"{NS}people.person.spouse", f"{NS}film.film.by", f"{NS}film.film.year"]
STATEMENTS, ITEMS = iris(f"{WD}statement/", 4), iris(f"{WD}Q", 8)
PROPERTIES = [f"{PROP}{kind}P{number}" for kind in ("direct/", "", "statement/", "qualifier/") for number in range(3)]
OWN = """
name = "own"
[names]
label = ["rdfs:label"]
[types]
predicates = ["rdf:type"]
range = ["rdfs:range"]
domain = ["rdfs:domain"]
[mediators]
types = ["http://e/Event"]
iri_prefixes = ["http://e/n1"]
"""
KINDS = {
    "labels": Kind(
        bundled_schema("rdfs"),
        made_of(NODES, RELATIONS, NODES + NUMBERS),
        made_of(NODES + RELATIONS, [f"{RDFS}label", f"{SKOS}prefLabel", f"{SKOS}altLabel"], LITERALS),
        made_of(RELATIONS, [f"{RDFS}range", f"{RDFS}domain", f"{OWL}inverseOf"], RELATIONS + NODES[:3]),
        made_of(RELATIONS, [f"{RDF}type"], [f"{RDF}Property"]),
    ),
    "no names": Kind(bundled_schema("rdfs"), made_of(NODES, RELATIONS, NODES + NUMBERS)),
    "rarely names": Kind(
        bundled_schema("rdfs"),
        *[made_of(NODES, RELATIONS, NODES)] * 12,
        made_of(NODES[:2], [f"{RDFS}label"], LITERALS[:1] + NODES[:1]),
    ),
    "freebase": Kind(
        bundled_schema("freebase"),
        made_of(TOPICS, FREEBASE, TOPICS + NUMBERS),
        made_of(TOPICS, [f"{NS}type.object.type", f"{RDF}type"], [*CVT, f"{NS}people.person"]),
        made_of(TOPICS + FREEBASE, [f"{NS}type.object.name", f"{NS}common.topic.alias", f"{RDFS}label"], LITERALS),
        made_of(FREEBASE, [f"{RDFS}range", f"{RDFS}domain", f"{NS}type.property.expected_type"], CVT + TOPICS[:2]),
        made_of(FREEBASE, [f"{OWL}inverseOf", f"{NS}type.property.reverse_property"], FREEBASE),
        made_of(CVT, [f"{NS}freebase.type_hints.mediator"], [Literal("true"), Literal("false")]),
    ),
    "wikidata": Kind(
        bundled_schema("wikidata"),
        made_of(ITEMS + STATEMENTS, PROPERTIES, ITEMS + STATEMENTS + NUMBERS),
        made_of(ITEMS + iris(f"{WD}P", 3), [f"{RDFS}label", f"{SKOS}altLabel"], LITERALS),
        made_of(iris(f"{WD}P", 3), [f"{PROP}direct/P1696"], iris(f"{WD}P", 3)),
        made_of(iris(f"{WD}P", 3), [f"{WIKIBASE}propertyType"], [f"{WIKIBASE}ExternalId", f"{WIKIBASE}Url"]),
    ),
    "corpus": Kind(
        bundled_schema("corpus"),
        made_of(NODES, [*RELATIONS, "urn:kgqa:corpus:party", "urn:kgqa:corpus:mentions"], NODES),
        made_of(NODES + RELATIONS, [f"{RDFS}label"], LITERALS),
        made_of(NODES, [f"{RDF}type"], ["urn:kgqa:corpus:Hyperedge", f"{E}Other"]),
    ),
    "own mediators": Kind(
        parse_schema(OWN),
        made_of(NODES, RELATIONS, NODES + NUMBERS),
        made_of(NODES, [f"{RDF}type"], [f"{E}Event", f"{E}Person"]),
        made_of(RELATIONS, [f"{RDFS}range", f"{RDFS}domain"], [f"{E}Event", f"{E}Person"]),
        made_of(NODES, [f"{RDFS}label"], LITERALS),
    ),
}
WORDS = sorted({word for name in NAMES for word in normalise(name).split()} | {"n1", "nobody"})
KEYS = ["bible", "alien", "stockholm", "superbowl", "usa", "al", "annsbowl", "alienfilm", "n1"]


def state(graph: KnowledgeGraph, nodes: list[Entity]) -> dict:
    """Return all tables of a graph and the results of all kinds of lookups of names."""
    tables, names = graph.tables, graph.names
    norms = [normalise(name) for name in NAMES] + ["n1", "n 1"]
    steps = [Step(relation, side) for relation in graph.tables.relations for side in ("out", "in")]
    return {
        "relations": list(graph.tables.relations.items()),
        "noise": tables.declarations.noise,
        "mediators": graph.tables.mediators,
        "inverses": (
            graph.tables.inverses,
            {name: set(found) for name, found in tables.declarations.inverse_of.items()},
        ),
        "types": tables.types,
        "relation labels": graph.tables.relation_labels,
        "described": graph.paths.describing_relations(steps),
        "labels": graph.labels(nodes),
        "names": names.count,
        "exact": names.exact(norms),
        "loose": names.loose(KEYS),
        "initials": [names.initials_with_prefix(prefix) for prefix in ("u", "us", "a", "z")],
        "frequencies": names.frequencies(WORDS),
        "words": [names._words_with_prefix(prefix, 500) for prefix in ("", "a", "b", "zo")],
        "containing": [names.containing([word]) for word in WORDS] + [names.containing(WORDS[:9])],
        "names of": names.names_of(nodes),
        "search": [names.search(text) for text in [*NAMES, "an", "ann bowl nobody", "n1"]],
    }


def check(graph: KnowledgeGraph, nodes: list[Entity]) -> None:
    """Compare a graph whose tables follow the edits with a graph opened now."""
    fresh = KnowledgeGraph(graph.store, graph.schema, view=[entity.iri for entity in graph.view])
    followed, expected = state(graph, nodes), state(fresh, nodes)
    for name, value in expected.items():
        assert followed[name] == value, name
    fresh.close()


def random_edit(kind: Kind, rng: random.Random, present: set[Triple]) -> tuple[list[Triple], list[Triple]]:
    """Return triples to add, some of them present, and triples to remove, some of them absent."""
    adds = [kind.triple(rng) for _ in range(rng.randrange(6))]
    removes = [kind.triple(rng) for _ in range(rng.randrange(2))]
    known = sorted(present, key=str)
    removes += rng.sample(known, min(len(known), rng.randrange(1 + min(5, len(known) // 12))))
    return adds, removes


def all_nodes(present: set[Triple]) -> list[Entity]:
    ends = {end for triple in present for end in (triple.subject, triple.object) if isinstance(end, Entity)}
    return sorted(ends, key=str)


@pytest.mark.soak
@pytest.mark.parametrize("name", KINDS)
def test_tables_follow_random_edits(name):
    kind, rng = KINDS[name], random.Random(name)
    store, present = MemoryStore(), set()
    graph = KnowledgeGraph(store, kind.schema)
    for number in range(EDITS):
        adds, removes = random_edit(kind, rng, present)
        report = store.edit("", adds, removes)
        assert not present & set(report.added) and set(report.removed) <= present
        present = present - set(report.removed) | set(report.added)
        if rng.random() < 0.7 or number == EDITS - 1:  # else two or more edits are followed at once
            check(graph, all_nodes(present))
    assert len(present) > 30 and len(graph.tables.relations) > 3


def test_a_name_in_two_languages_is_added_and_removed_twice():
    node = Entity(f"{E}n1")
    english, german = (Triple(node, f"{RDFS}label", Literal("Ann", language=tag)) for tag in ("en", "de"))
    other = Triple(Entity(f"{E}n2"), f"{RDFS}label", Literal("Ann Lee"))
    store = MemoryStore()
    store.edit("", [other])
    graph = KnowledgeGraph(store, bundled_schema("rdfs"))
    for adds, removes in (([english, german], []), ([], [german]), ([german], []), ([], [english, german])):
        check(graph, [node])
        store.edit("", adds, removes)
    check(graph, [node])


GRAPHS = ("", "http://g/1", "http://g/2", "http://g/3")


def edit_and_check(store: Store, kind: Kind, *, view: tuple[str, ...], edits: int) -> None:
    """Edit random graphs of a store, and check a view of it after about every second edit."""
    rng = random.Random(len(view))
    graph = KnowledgeGraph(store, kind.schema, view=view)
    present: dict[str, set[Triple]] = {name: set() for name in GRAPHS}
    for number in range(edits):
        name = rng.choice(GRAPHS)
        adds, removes = random_edit(kind, rng, set().union(*present.values()))
        report = store.edit(name, adds, removes)
        present[name] = present[name] - set(report.removed) | set(report.added)
        if rng.random() < 0.5 or number == edits - 1:
            check(graph, all_nodes(set().union(*present.values())))
    assert sum(map(len, present.values())) > edits


@pytest.mark.soak
@pytest.mark.parametrize("view", [(), ("http://g/1",), ("http://g/1", "http://g/2")])
def test_views_follow_edits_of_their_graphs(view):
    """A triple that stands in two graphs of a view counts once."""
    edit_and_check(MemoryStore(), KINDS["freebase"], view=view, edits=EDITS)


@pytest.fixture
def whole_graph_queries(monkeypatch):
    """Return a list of the templates of queries that read the whole graph."""
    read: list[str] = []
    original = GraphTables.read

    def recording(self, name, **values):
        read.append(name)
        return original(self, name, **values)

    monkeypatch.setattr(GraphTables, "read", recording)
    return read


def test_edits_of_facts_read_nothing_else(whole_graph_queries):
    kind, rng = KINDS["freebase"], random.Random(1)
    store = MemoryStore()
    store.edit("", [kind.triple(rng) for _ in range(300)])
    graph = KnowledgeGraph(store, kind.schema)
    graph.tables.prepare()
    assert graph.search("ann") and whole_graph_queries
    whole_graph_queries.clear()
    names = graph.names
    for _ in range(20):
        store.edit("", [triple(rng) for triple in kind.triples[:3]])
        graph.tables.prepare()
        assert graph.search("ann")
    assert whole_graph_queries == [] and graph.names is names


@pytest.mark.parametrize("published", [True, False])
def test_next_process_finds_the_tables_of_an_edited_graph(tmp_path, monkeypatch, whole_graph_queries, published):
    """They are written when the graph is published or closed."""
    kind, rng, cache = KINDS["freebase"], random.Random(3), Cache(tmp_path / "cache")
    with open_store(tmp_path / "g", writable=True, create=True) as store:
        store.edit("", [kind.triple(rng) for _ in range(200)])
    with KnowledgeGraph(open_store(tmp_path / "g", writable=True), kind.schema, cache=cache, owns_store=True) as graph:
        graph.tables.prepare()
        assert graph.search("ann")
        graph.store.edit("", [kind.triple(rng) for _ in range(20)])
        if published:
            graph.publish()
        expected = state(graph, [])
    whole_graph_queries.clear()
    monkeypatch.setattr(NameIndex, "_build", lambda *_: pytest.fail("the index is built again"))
    with open_graph(tmp_path / "g", schema="freebase", cache=cache) as again:
        again.tables.prepare()
        assert state(again, []) == expected and whole_graph_queries == []
    assert len(list((tmp_path / "cache").rglob(FILE))) == 2


def test_tables_of_an_edit_that_leaves_all_counts_equal(tmp_path):
    """The fingerprint of a server stays the same then."""
    kind, store = KINDS["wikidata"], MemoryStore()
    store.capabilities = replace(store.capabilities, remote=True)
    store.fingerprint_of = lambda graphs=(): "counts"
    entity, relation, label = Entity(f"{WD}P0"), f"{PROP}direct/P0", f"{RDFS}label"
    names = [Triple(entity, label, Literal(name, language="en")) for name in ("old", "new")]
    store.edit("", [Triple(Entity(f"{WD}Q1"), relation, Entity(f"{WD}Q2")), names[0]])
    for expected in ("old", "new"):
        with closing(KnowledgeGraph(store, kind.schema, cache=Cache(tmp_path))) as graph:
            assert graph.tables.relation_labels[relation] == expected
            store.edit("", names[1:], names[:1])
