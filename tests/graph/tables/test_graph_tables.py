"""Tables of a whole graph and their cache."""

from __future__ import annotations

import json
import re
import time
from typing import ClassVar

import pytest
from msgspec import structs

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.options import profile_named
from kgqa.graph.endpoint.replies import check_complete
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.store import Rows
from kgqa.graph.tables.declarations import read_declarations
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.net.threads import question_end
from kgqa.schema import bundled_schema
from kgqa.storage.cache import Cache
from kgqa.testing.sparql_server import SparqlServer, table
from kgqa.trace.trace import Budget, Trace
from tests.memory_graph import memory_graph

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
INVERSE = "<http://www.w3.org/2002/07/owl#inverseOf>"
RANGE = "<http://www.w3.org/2000/01/rdf-schema#range>"
LINES = [
    f'<http://e/a> {LABEL} "Ann"@en .',
    "<http://e/a> <http://e/knows> <http://e/b> .",
    f'<http://e/knows> {LABEL} "is friends with"@en .',
    f"<http://e/knows> {INVERSE} <http://e/known> .",
    f"<http://e/knows> {RANGE} <http://e/Person> .",
]
MORE = [
    f'<http://e/b> {LABEL} "Bob"@en .',
    "<http://e/b> <http://e/likes> <http://e/c> .",
    f'<http://e/likes> {LABEL} "is fond of"@en .',
    f"<http://e/likes> {INVERSE} <http://e/liked> .",
]
SCHEMA = bundled_schema("rdfs")


def _from(iri):
    return RelationPath(Entity(iri))


def test_tables_after_a_load(load, tmp_path):
    with EmbeddedStore(load(LINES)) as store:
        graph = KnowledgeGraph(store, SCHEMA, cache=Cache(tmp_path / "c"))
        assert "http://e/likes" not in graph.tables.relations and graph.search("bob") == []
        (tmp_path / "more.nt").write_text("\n".join(MORE) + "\n")
        store.load([tmp_path / "more.nt"])
        assert "http://e/likes" in graph.tables.relations and graph.search("bob")[0].name == "Bob"
        assert graph.tables.inverses["http://e/likes"] == "http://e/liked"
        assert graph.tables.relation_labels["http://e/likes"] == "is fond of"
        graph.close()


WRONG = ("[]", "7", '{"out": [3]}', '{"leads": []}', '{"http://e/x": {}}', "null", "{")


def test_damaged_cached_table_is_named_once_and_computed_again(new_store, tmp_path, caplog):
    store, cache = new_store(LINES), Cache(tmp_path / "c")

    right = tables(KnowledgeGraph(store, SCHEMA, cache=cache))
    (file,) = KnowledgeGraph(store, SCHEMA, cache=cache).tables.folder.glob("tables-*.json")
    kept = file.read_text()
    for wrong in WRONG:
        file.write_text(wrong)
        assert tables(KnowledgeGraph(store, SCHEMA, cache=cache)) == right, wrong
        assert json.loads(file.read_text()) == json.loads(kept), wrong
    assert [message.partition(" cannot be read: ")[0] for message in caplog.messages] == [str(file)]


class LargeGraphStore:
    """A store that refuses queries over the whole graph, as for a very large graph."""

    def __init__(self, store, *patterns: str, error=StoreTimeout) -> None:
        self.store = store
        self.too_much = re.compile("|".join(patterns))
        self.error = error
        self.refused: list[str] = []
        self.sent: list[str] = []

    def __getattr__(self, name):
        return getattr(self.store, name)

    def select(self, query, **options):
        self.sent.append(query)
        if self.too_much.search(query):
            self.refused.append(query)
            raise self.error("too much")
        return self.store.select(query, **options)


ALL_TRIPLES = r"GROUP BY \?relation"
WD, PROP = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
PROPERTY = "<http://wikiba.se/ontology#Property>"
WIKIDATA_LINES = [
    f"<{WD}Q17> <{PROP}direct/P36> <{WD}Q1490> .",
    f"<{WD}Q17> <{PROP}P39> <{WD}statement/1> .",
    f"<{WD}statement/1> <{PROP}statement/P39> <{WD}Q30185> .",
    f'<{WD}Q17> <{PROP}direct/P214> "12" .',
    f"<{WD}P36> {TYPE} {PROPERTY} .",
    f"<{WD}P39> {TYPE} {PROPERTY} .",
    f"<{WD}P214> {TYPE} {PROPERTY} .",
    f"<{WD}P214> <http://wikiba.se/ontology#propertyType> <http://wikiba.se/ontology#ExternalId> .",
    f'<{WD}P36> {LABEL} "capital"@en .',
    f'<{WD}P36> {LABEL} "Hauptstadt"@de .',
    f'<{WD}P39> {LABEL} "position held"@en .',
]
FREEBASE_NS = "http://rdf.freebase.com/ns/"


def _freebase(subject, predicate, value):
    value = value if value.startswith('"') else f"<{FREEBASE_NS}{value}>"
    return f"<{FREEBASE_NS}{subject}> <{FREEBASE_NS}{predicate}> {value} ."


FREEBASE_LINES = [
    _freebase("people.marriage", "freebase.type_hints.mediator", '"true"'),
    _freebase("people.person.spouse_s", "type.property.expected_type", "people.marriage"),
    _freebase("m.ann", "people.person.spouse_s", "m.wedding"),
    _freebase("m.wedding", "people.marriage.spouse", "m.bob"),
    _freebase("m.ann", "base.odd.relation", "m.wedding"),
    _freebase("m.wedding", "type.object.type", "people.marriage"),
    *(
        _freebase(name, "type.object.type", "type.property")
        for name in ("people.person.spouse_s", "people.marriage.spouse", "base.odd.relation")
    ),
]


class TestLargeGraphs:
    def test_wikidata(self, new_store, tmp_path):
        store, cache = LargeGraphStore(new_store(WIKIDATA_LINES), ALL_TRIPLES), Cache(tmp_path / "c")
        graph = KnowledgeGraph(store, bundled_schema("wikidata"), cache=cache, scan=False)
        graph.tables.prepare()
        assert list(graph.tables.relations)[:4] == [f"{PROP}{name}" for name in ("P36", "P39", "P214", "direct/P36")]
        assert len(graph.tables.relations) == 12 and set(graph.tables.relations.values()) == {0}
        assert graph.tables.relation_labels[f"{PROP}qualifier/P36"] == "capital"
        assert graph.tables.is_noise(f"{PROP}direct/P214") and not graph.tables.counted
        (note,) = graph.tables.notes
        assert "too large to count its relations" in note
        kept = [file for file in (tmp_path / "c").rglob("*") if file.is_file()]
        assert kept == []
        steps = graph.paths.steps([Candidate(_from(f"{WD}Q17"))])[0].steps
        assert steps == (Step(f"{PROP}P39"), Step(f"{PROP}direct/P36"))
        assert graph.paths.ends_on_mediators(_from(f"{WD}Q17").then(steps[0]))
        assert store.refused == []

    def test_relation_labels_are_read_on_demand(self, new_store):
        # not all of them at once
        declared = re.escape(f"?kind {{ {PROPERTY} }}") + r"[^}]*\?label"
        store = LargeGraphStore(new_store(WIKIDATA_LINES), declared)
        graph = KnowledgeGraph(store, bundled_schema("wikidata"), scan=False)
        graph.tables.prepare()
        assert len(graph.tables.relations) == 12 and graph.tables.relation_labels == {} and len(graph.tables.notes) == 2
        trace = Trace()
        bound = graph.for_question(trace)
        bound.paths.steps([Candidate(_from(f"{WD}Q17"))])[0]
        assert graph.tables.relation_labels == {f"{PROP}direct/P36": "capital", f"{PROP}P39": "position held"}
        spent = trace.usage().queries
        bound.paths.steps([Candidate(_from(f"{WD}Q17"))])[0]
        assert trace.usage().queries == spent
        german = KnowledgeGraph(store, bundled_schema("wikidata"), languages=("de",), scan=False)
        german.paths.steps([Candidate(_from(f"{WD}Q17"))])[0]
        assert german.tables.relation_labels[f"{PROP}direct/P36"] == "Hauptstadt"

    def test_freebase_tables_by_ranges_and_names(self, new_store, tmp_path):
        store, cache = new_store(FREEBASE_LINES), Cache(tmp_path / "c")
        whole = KnowledgeGraph(store, bundled_schema("freebase"))
        graph = KnowledgeGraph(store, bundled_schema("freebase"), cache=cache, scan=False)
        graph.tables.prepare()
        odd = Step(f"{FREEBASE_NS}base.odd.relation")
        for step in (Step(f"{FREEBASE_NS}people.person.spouse_s"), Step(f"{FREEBASE_NS}people.marriage.spouse", "in")):
            assert graph.tables.leads_to_mediator(step) and whole.tables.leads_to_mediator(step)
        assert whole.tables.leads_to_mediator(odd) and not graph.tables.leads_to_mediator(odd)
        assert set(graph.tables.relations) < set(whole.tables.relations) and whole.tables.notes == ()
        assert len(graph.tables.notes) == 2
        assert not list((tmp_path / "c").rglob("*.json"))


class CappedStore:
    """A store that truncates results at a row cap and reports it, as Virtuoso does."""

    def __init__(self, store, cap: int) -> None:
        self.store, self.cap = store, cap

    def __getattr__(self, name):
        return getattr(self.store, name)

    def select(self, query, **options):
        rows = self.store.select(query, **options)
        cut = Rows(rows.variables, rows.rows[: self.cap])
        check_complete(cut, query, profile_named("generic"), [self.cap] if len(rows) > self.cap else [], {})
        return cut


def tables(graph) -> dict:
    """Return all tables of a graph."""
    derived = graph.tables
    names = ("relations", "declarations", "mediators", "inverses", "types", "relation_labels", "counted")
    return {name: getattr(derived, name) for name in names} | {"notes": graph.tables.notes}


class TestIncompleteTables:
    """An incomplete table is read in pages or is an error, never a short table."""

    SCHEMAS: ClassVar = {"rdfs": LINES + MORE, "wikidata": WIKIDATA_LINES, "freebase": FREEBASE_LINES}

    @pytest.mark.parametrize("cap", [2, 3, 10])
    @pytest.mark.parametrize("name", SCHEMAS)
    def test_row_cap(self, new_store, name, cap):
        store = new_store(self.SCHEMAS[name])
        whole = KnowledgeGraph(store, bundled_schema(name))
        capped = KnowledgeGraph(CappedStore(store, cap), bundled_schema(name))
        assert tables(capped) == tables(whole)

    def test_graph_changing_between_pages(self, new_store):
        class ChangingStore(CappedStore):
            def select(self, query, **options):
                return super().select(re.sub(r"OFFSET [1-9]", "OFFSET 0", query), **options)

        graph = KnowledgeGraph(ChangingStore(new_store(LINES), 2), SCHEMA)
        with pytest.raises(PartialResult, match="on two pages|row cap"):
            graph.tables.prepare()

    TABLES: ClassVar = {
        "relations": ("rdfs", ALL_TRIPLES, "The relations"),
        "declarations": ("rdfs", f"\\?subject {RANGE} \\?object", "Declarations"),
        "mediators": ("freebase", r"SELECT DISTINCT \?subject WHERE", "The mediators"),
    }


def test_only_the_things_marked_as_noise_are_read():
    type_ = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    schema = structs.replace(SCHEMA, noise_marked_by=(type_, "http://e/Noise"))
    lines = [f"<http://e/n{number}> <{type_}> <http://e/T> ." for number in range(50)]
    read: list[int] = []

    def select(name, *, what, **values):
        rows = graph.tables.read(name, what=what, **values)
        read.append(len(rows))
        return rows

    with memory_graph([*LINES, *lines, f"<http://e/id> <{type_}> <http://e/Noise> ."], schema="rdfs") as graph:
        assert read_declarations(schema, select).noise == {"http://e/id"} and sum(read) < 10


def test_a_question_waits_for_tables_at_most_for_its_own_time():
    """A server that hangs on every count does not even count its triples."""

    def script(request):
        hangs = 30.0 if "COUNT" in request.query else 0.0
        return table(["subject", "predicate", "object", "relation", "node"], [], seconds=hangs)

    with SparqlServer(script) as server, EndpointStore(server.url, profile="generic") as store:
        graph, started = KnowledgeGraph(store, SCHEMA), time.monotonic()
        token = question_end.set(started + 2)
        graph.for_question(Trace(Budget(seconds=2)))
        assert not store.may_scan()  # what cannot be counted is not scanned either
        question_end.reset(token)
        assert time.monotonic() - started < 10


def test_time_of_tables_is_not_taken_from_the_question(new_store):
    class SlowStore(LargeGraphStore):
        def select(self, query, **options):
            time.sleep(0.2)
            return super().select(query, **options)

    graph, end = KnowledgeGraph(SlowStore(new_store(LINES), "no such query"), SCHEMA), time.monotonic() + 60
    token, trace = question_end.set(end), Trace(Budget(seconds=60))
    graph.for_question(trace)
    assert question_end.get() >= end + 0.2 and trace.elapsed() < 1
    question_end.reset(token)


def test_a_comment_words_a_relation_whose_id_is_a_code():
    comment, label = (f"<http://www.w3.org/2000/01/rdf-schema#{name}>" for name in ("comment", "label"))
    lines = [
        *(f"<http://e/a> <http://e/{relation}> <http://e/b> ." for relation in ("p17", "p18", "twin_town")),
        *(
            f'<http://e/{relation}> {comment} "Mother of a town. Not of a village." .'
            for relation in ("p17", "twin_town")
        ),
        f'<http://e/p18> {comment} "the harbour" .',
        f'<http://e/p18> {label} "port" .',
    ]
    labels = memory_graph(lines, schema="rdfs").tables.relation_labels
    assert labels == {"http://e/p17": "Mother of a town", "http://e/p18": "port"}
