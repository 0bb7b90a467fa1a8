"""Tables of a whole graph: made anew when the graph has changed, or when what was kept is not what it should be."""

from __future__ import annotations

import json
import os
import re
import time

import pytest

from kgqa.cache import Cache
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph import whole_graph
from kgqa.graph.derived import Derived
from kgqa.graph.embedded import EmbeddedStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.transport import BrokenOff
from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import bundled_schema, parse_schema
from kgqa.trace import Trace

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


def look(graph) -> tuple:
    return (
        set(graph.relations) & {"http://e/knows", "http://e/likes"},
        graph.inverses.get("http://e/likes"),
        graph.relation_labels.get("http://e/likes"),
        [match.name for match in graph.search("bob")],
        graph.labels([Entity("http://e/b")]),
        {step.relation for step in graph.next_steps(_from("http://e/b")).steps if step.direction == "out"},
    )


def _from(iri):
    return RelationPath(Entity(iri))


BEFORE = ({"http://e/knows"}, None, None, [], {}, set())
AFTER = (
    {"http://e/knows", "http://e/likes"},
    "http://e/liked",
    "is fond of",
    ["Bob"],
    {Entity("http://e/b"): "Bob"},
    {"http://e/likes"},
)


def test_after_an_update(load, tmp_path):
    with EmbeddedStore(load(LINES), writable=True) as store:
        graph = KnowledgeGraph(store, SCHEMA, cache=Cache(tmp_path / "c"))
        assert look(graph) == BEFORE
        store.update("INSERT DATA { " + " ".join(MORE) + " }")
        assert look(graph) == AFTER
        graph.close()


def test_after_a_load(load, tmp_path):
    with EmbeddedStore(load(LINES)) as store:
        graph = KnowledgeGraph(store, SCHEMA, cache=Cache(tmp_path / "c"))
        assert look(graph) == BEFORE
        (tmp_path / "more.nt").write_text("\n".join(MORE) + "\n")
        store.load([tmp_path / "more.nt"])
        assert look(graph) == AFTER
        graph.close()


@pytest.mark.parametrize("wrong", ["[]", "7", '{"out": [3]}', '{"leads": []}', '{"http://e/x": {}}', "null", "{"])
@pytest.mark.parametrize("name", ["relations", "mediators", "inverses", "relation-labels", "types"])
def test_what_is_kept_wrongly_is_made_anew(opened, tmp_path, name, wrong):
    store, cache = opened(LINES), Cache(tmp_path / "c")

    def all_of(graph):
        return graph.relations, graph.mediators, graph.inverses, graph.relation_labels, graph.derived.types

    right = all_of(KnowledgeGraph(store, SCHEMA, cache=cache))
    (file,) = KnowledgeGraph(store, SCHEMA, cache=cache).derived.folder.glob(f"{name}*.json")
    kept = file.read_text()
    file.write_text(wrong)
    assert all_of(KnowledgeGraph(store, SCHEMA, cache=cache)) == right
    assert json.loads(file.read_text()) == json.loads(kept)


def test_types_by_range_and_domain(opened):
    graph = KnowledgeGraph(opened(LINES), SCHEMA)
    assert graph.leads_to_type(Step("http://e/knows")) == "http://e/Person"
    assert graph.leads_to_type(Step("http://e/knows", "in")) is None


def test_ends_are_described_where_no_type_is_declared(opened):
    films = ["<http://e/f> <http://e/by> <http://e/p> .", '<http://e/f> <http://e/year> "1999" .']
    graph = KnowledgeGraph(opened(films), SCHEMA)
    assert graph.described_by(Step("http://e/by")) == ("http://e/by",)
    assert set(graph.described_by(Step("http://e/by", "in"))) == {"http://e/by", "http://e/year"}
    typed = KnowledgeGraph(opened(LINES), SCHEMA)
    assert typed.described_by(Step("http://e/knows")) == typed.described_by(Step("http://e/knows", "in")) == ()


def test_a_mediator_known_by_its_iri_is_found_as_an_object(opened):
    schema = parse_schema(
        'name = "own"\n[names]\nlabel = ["rdfs:label"]\n[mediators]\niri_prefixes = ["http://e/statement/"]\n'
    )
    store = opened(["<http://e/a> <http://e/r> <http://e/statement/1> .", "<http://e/a> <http://e/q> <http://e/b> ."])
    graph = KnowledgeGraph(store, schema)
    assert graph.leads_to_mediator(Step("http://e/r")) and not graph.leads_to_mediator(Step("http://e/q"))


def test_a_text_that_looks_like_one_is_none(opened):
    schema = parse_schema(
        'name = "own"\n[names]\nlabel = ["rdfs:label"]\n[mediators]\niri_prefixes = ["http://e/statement/"]\n'
    )
    graph = KnowledgeGraph(opened(['<http://e/a> <http://e/r> "http://e/statement/1" .']), schema)
    assert graph.mediators.extent(Step("http://e/r")) == "none"


class Large:
    """A store that answers as another does, but for queries over all of a graph that is too large for them."""

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


class TestTooLarge:
    @pytest.mark.parametrize("error", [StoreTimeout, PartialResult])
    def test_wikidata(self, opened, tmp_path, error):
        store, cache = Large(opened(WIKIDATA_LINES), ALL_TRIPLES, error=error), Cache(tmp_path / "c")
        graph = KnowledgeGraph(store, bundled_schema("wikidata"), cache=cache)
        graph.prepare()
        assert list(graph.relations)[:4] == [f"{PROP}{name}" for name in ("P36", "P39", "P214", "direct/P36")]
        assert len(graph.relations) == 12 and set(graph.relations.values()) == {0}
        assert graph.relation_labels[f"{PROP}qualifier/P36"] == "capital"
        assert graph.is_noise(f"{PROP}direct/P214") and not graph.derived.counted
        (note,) = graph.notes
        assert "too large to count its relations" in note
        kept = [file for file in (tmp_path / "c").rglob("*") if file.is_file()]
        assert kept == []
        steps = graph.next_steps(_from(f"{WD}Q17")).steps
        assert steps == (Step(f"{PROP}P39"), Step(f"{PROP}direct/P36"))
        assert graph.on_mediator(_from(f"{WD}Q17").then(steps[0]))
        assert len(store.refused) == 1

    def test_labels_as_relations_come_up(self, opened):
        # not even the list of properties can be had
        declared = re.escape(f"?kind {{ {PROPERTY} }}")
        store = Large(opened(WIKIDATA_LINES), ALL_TRIPLES, declared)
        graph = KnowledgeGraph(store, bundled_schema("wikidata"))
        graph.prepare()
        assert graph.relations == {} and graph.relation_labels == {} and len(graph.notes) == 3
        trace = Trace()
        bound = graph.for_question(trace)
        bound.next_steps(_from(f"{WD}Q17"))
        assert graph.relation_labels == {f"{PROP}direct/P36": "capital", f"{PROP}P39": "position held"}
        spent = trace.usage().queries
        bound.next_steps(_from(f"{WD}Q17"))
        assert trace.usage().queries == spent + 1
        german = KnowledgeGraph(store, bundled_schema("wikidata"), languages=("de",))
        german.next_steps(_from(f"{WD}Q17"))
        assert german.relation_labels[f"{PROP}direct/P36"] == "Hauptstadt"

    def test_no_scan_is_tried_where_none_is_wanted(self, opened):
        store = Large(opened(WIKIDATA_LINES), ALL_TRIPLES)
        graph = KnowledgeGraph(store, bundled_schema("wikidata"), scan=False)
        graph.prepare()
        assert store.refused == [] and len(graph.relations) == 12 and len(graph.notes) == 1

    def test_what_was_too_much_is_not_tried_in_the_next_process(self, opened, tmp_path, monkeypatch):
        monkeypatch.setattr(whole_graph, "SLOW_SECONDS", 0.0)
        inner, cache = opened(WIKIDATA_LINES), Cache(tmp_path / "c")
        KnowledgeGraph(Large(inner, ALL_TRIPLES), bundled_schema("wikidata"), cache=cache).prepare()
        again = Large(inner, ALL_TRIPLES)
        graph = KnowledgeGraph(again, bundled_schema("wikidata"), cache=cache)
        graph.prepare()
        assert again.refused == [] and len(graph.notes) == 1 and len(graph.relations) == 12
        (sign,) = tmp_path.rglob("too-large")
        day_before_yesterday = time.time() - 2 * 24 * 3600
        os.utime(sign, (day_before_yesterday, day_before_yesterday))
        later = KnowledgeGraph(inner, bundled_schema("wikidata"), cache=cache)
        assert later.notes == () and sum(later.relations.values()) == 11

    @pytest.mark.parametrize(("most", "scans"), [(None, True), (11, True), (10, False)])
    def test_no_scan_is_tried_of_more_triples_than_wanted(self, opened, most, scans):
        store = Large(opened(WIKIDATA_LINES), ALL_TRIPLES)
        graph = KnowledgeGraph(store, bundled_schema("wikidata"), most_scanned=most)
        graph.prepare()
        assert bool(store.refused) == scans and len(graph.relations) == 12

    def test_freebase_by_ranges_and_names(self, opened, tmp_path):
        def of(subject, predicate, value):
            value = value if value.startswith('"') else f"<{FREEBASE_NS}{value}>"
            return f"<{FREEBASE_NS}{subject}> <{FREEBASE_NS}{predicate}> {value} ."

        lines = [
            of("people.marriage", "freebase.type_hints.mediator", '"true"'),
            of("people.person.spouse_s", "type.property.expected_type", "people.marriage"),
            of("m.ann", "people.person.spouse_s", "m.wedding"),
            of("m.wedding", "people.marriage.spouse", "m.bob"),
            of("m.ann", "base.odd.relation", "m.wedding"),
            of("m.wedding", "type.object.type", "people.marriage"),
            *(
                of(name, "type.object.type", "type.property")
                for name in ("people.person.spouse_s", "people.marriage.spouse", "base.odd.relation")
            ),
        ]
        store, cache = opened(lines), Cache(tmp_path / "c")
        whole = KnowledgeGraph(store, bundled_schema("freebase"))
        large = Large(store, ALL_TRIPLES)
        graph = KnowledgeGraph(large, bundled_schema("freebase"), cache=cache)
        graph.prepare()
        odd = Step(f"{FREEBASE_NS}base.odd.relation")
        for step in (Step(f"{FREEBASE_NS}people.person.spouse_s"), Step(f"{FREEBASE_NS}people.marriage.spouse", "in")):
            assert graph.leads_to_mediator(step) and whole.leads_to_mediator(step)
        assert whole.leads_to_mediator(odd) and not graph.leads_to_mediator(odd)
        assert set(graph.relations) < set(whole.relations) and whole.notes == ()
        assert len(graph.notes) == 2 and len(large.refused) == 1, "after one scan that failed no other is tried"
        assert not list((tmp_path / "c").rglob("*.json"))

    def test_counted_but_too_large_for_mediators(self, opened, tmp_path):
        schema = parse_schema('name = "own"\n[mediators]\niri_prefixes = ["http://e/statement/"]\n')
        store = Large(opened(["<http://e/a> <http://e/r> <http://e/statement/1> ."]), r"COUNT\(DISTINCT \?mediator\)")
        graph = KnowledgeGraph(store, schema, cache=Cache(tmp_path / "c"))
        graph.prepare()
        assert graph.relations == {"http://e/r": 1} and graph.derived.counted
        assert not graph.leads_to_mediator(Step("http://e/r")) and "mediators" in graph.notes[0]
        assert {file.name for file in (tmp_path / "c").rglob("*.json")} == {"relations.json", "noise.json"}

    @pytest.mark.parametrize("predicate", [INVERSE, RANGE])
    def test_a_predicate_with_too_many_triples(self, opened, predicate):
        graph = KnowledgeGraph(Large(opened(LINES), f"\\?subject {predicate} \\?object"), SCHEMA)
        graph.prepare()
        assert graph.inverses == (
            {} if predicate == INVERSE else {"http://e/knows": "http://e/known", "http://e/known": "http://e/knows"}
        )
        assert graph.derived.types["out"] == ({} if predicate == RANGE else {"http://e/knows": "http://e/Person"})
        (note,) = graph.notes
        assert ("owl:inverseOf" if predicate == INVERSE else "rdfs:range") in note

    def test_ends_of_relations(self, opened):
        schema = parse_schema('name = "own"\n[mediators]\niri_prefixes = ["http://e/statement/"]\n')
        store = Large(opened(["<http://e/a> <http://e/r> <http://e/statement/1> ."]), r"COUNT\(DISTINCT \?node\)")
        graph = KnowledgeGraph(store, schema)
        assert not graph.leads_to_mediator(Step("http://e/r")) and len(graph.notes) == 1

    def test_a_real_store_out_of_time(self, opened, tmp_path):
        """Every query takes longer than it may: nothing is known, nothing is kept, and nothing fails."""
        lines = [f"<{WD}Q{n}> <{PROP}direct/P{n % 900}> <{WD}Q{n * 7 % 5000}> ." for n in range(40_000)]
        derived = Derived(
            opened(lines),
            bundled_schema("wikidata"),
            (),
            find_labels=lambda nodes: {},
            cache=Cache(tmp_path / "c"),
            timeout=0.0005,
        )
        derived.prepare()
        assert derived.relations == {} and not derived.counted and len(derived.notes) >= 4
        assert not list((tmp_path / "c").rglob("*.json"))
        assert derived.mediators.extent(Step(f"{PROP}P39")) == "all"

    def test_notes_end_with_the_version_they_were_made_for(self, load):
        with EmbeddedStore(load(LINES), writable=True) as store:
            large = Large(store, ALL_TRIPLES)
            graph = KnowledgeGraph(large, SCHEMA)
            assert graph.relations == {} and graph.notes
            large.too_much = re.compile("(?!)")
            store.update("INSERT DATA { " + " ".join(MORE) + " }")
            assert "http://e/likes" in graph.relations and graph.notes == ()


def test_what_is_kept_of_one_server_is_not_taken_for_another(opened, tmp_path):
    def on(identity: str) -> Derived:
        store = Large(opened(LINES), "no such query")
        store.identity = identity
        return KnowledgeGraph(store, SCHEMA, cache=Cache(tmp_path / "c")).derived

    assert on("-1").folder != on("-2").folder and on("-1").folder == on("-1").folder


def test_a_broken_connection_does_not_make_a_graph_large(opened):
    store = Large(opened(WIKIDATA_LINES), ALL_TRIPLES, error=BrokenOff)
    graph = KnowledgeGraph(store, bundled_schema("wikidata"))
    with pytest.raises(BrokenOff):
        graph.prepare()
    store.too_much = re.compile("no such query")
    graph.prepare()
    assert graph.notes == () and sum(graph.relations.values()) == 11
