"""Exploration of a KnowledgeGraph in both stores: steps, ends, walks, hubs, walk rules and views."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step
from kgqa.schema import bundled_schema
from kgqa.storage.cache import Cache
from kgqa.trace.trace import Trace
from tests.graph.facts import RDF, RDFS, ent, path, short, words
from tests.graph.memory_store import MemoryStore


class TestExploration:
    def test_from_a_topic(self, graph):
        found = graph.paths.steps([Candidate(RelationPath(ent("m.ann")))])[0]
        assert words(found.steps) == {
            "people.person.spouse_s", "film.actor.film", "award.award_winner.awards_won", "base.mixed.about", "people.person.education",
            "people.person.gender", "people.person.height", "people.person.children", "^people.marriage.spouse",
        }  # fmt: skip
        assert not found.approximate
        assert list(found.steps) == list(dict.fromkeys(found.steps))

    def test_noise_relations_are_excluded(self, graph):
        for start in ("m.ann", "people.person", "m.role"):
            steps = words(graph.paths.steps([Candidate(RelationPath(ent(start)))])[0].steps)
            assert not any(s.lstrip("^").startswith(("type.", "common.", "freebase.", "http")) for s in steps)

    def test_literals_are_ends_without_steps(self, graph):
        assert short(graph.paths.ends([Candidate(path("m.ann", "people.person.height"))])[0].values) == {"1.7"}
        assert graph.paths.steps([Candidate(path("m.ann", "people.person.height"))])[0].steps == ()

    def test_missing_topic(self, graph):
        nowhere = RelationPath(ent("m.nowhere"))
        assert graph.paths.steps([Candidate(nowhere)])[0].steps == ()
        assert (
            nowhere.topic not in graph.paths.present([nowhere.topic])
            and graph.paths.degrees([nowhere.topic])[nowhere.topic] == 0
        )
        assert graph.paths.neighbours(nowhere.topic) == []
        assert graph.paths.ends([Candidate(path("m.nowhere", "people.person.gender"))])[0].values == ()

    def test_walks_along(self, graph):
        which = path("m.ann", "film.actor.film", "film.performance.film")
        assert graph.paths.walks([Candidate(which)])[0] == [(ent("m.ann"), ent("m.role"), ent("m.movie"))]
        assert graph.paths.walks([Candidate(which)], ends=[ent("m.prize")])[0] == []
        mixed = path("m.ann", "base.mixed.about")
        assert graph.paths.walks([Candidate(mixed)], ends=[Literal("just text")])[0] == [
            (ent("m.ann"), Literal("just text"))
        ]
        assert len(graph.paths.walks([Candidate(mixed)], limit=1)[0]) == 1


class TestHub:
    @pytest.fixture(scope="class")
    @staticmethod
    def lines():
        lines = [f"<http://e/hub> <http://e/has> <http://e/n{n}> ." for n in range(40)]
        lines += [f"<http://e/n{n}> <http://e/r{n}> <http://e/x> ." for n in range(40)]
        lines += [f"<http://e/few> <http://e/has> <http://e/m{n}> ." for n in range(3)]
        lines += [f"<http://e/m{n}> <http://e/at> <http://e/{k}> ." for n in range(3) for k in ("few", "p", "q")]
        return lines

    def test_capped_frontier_is_approximate(self, make, lines):
        graph = make(lines, "rdfs", frontier_cap=5)
        found = graph.paths.steps([Candidate(path("http://e/hub", "http://e/has"))])[0]
        assert found.approximate and 0 < len(found.steps) <= 6
        few = graph.paths.steps([Candidate(path("http://e/few", "http://e/has"))])[0]
        assert not few.approximate
        assert {s.relation for s in few.steps} == {"http://e/at"}
        graph = make(lines, "rdfs", frontier_cap=40)
        found = graph.paths.steps([Candidate(path("http://e/hub", "http://e/has"))])[0]
        assert not found.approximate and len([s for s in found.steps if s.direction == "out"]) == 40
        assert not graph.paths.steps([Candidate(RelationPath(Entity("http://e/hub")))])[0].approximate

    def test_ends_with_a_limit(self, make, lines):
        graph = make(lines, "rdfs")
        some = graph.paths.ends([Candidate(path("http://e/hub", "http://e/has"))], limit=10)[0]
        assert some.approximate and len(set(some.values)) == 10
        for limit in (40, 41, None):
            whole = graph.paths.ends([Candidate(path("http://e/hub", "http://e/has"))], limit=limit)[0]
            assert not whole.approximate and len(whole.values) == 40

    def test_neighbours_among_much_noise(self, make):
        lines = [f"<http://e/a> <{RDF}type> <http://e/T{n}> ." for n in range(50)] + [
            "<http://e/a> <http://e/z> <http://e/b> ."
        ]
        graph = make(lines, "rdfs")
        assert graph.paths.neighbours(Entity("http://e/a"), limit=10) == [(Step("http://e/z"), Entity("http://e/b"))]


class TestWalkRules:
    @pytest.mark.parametrize("walks, ends", [("topic-not-end", {"m.c"}), ("free", {"m.b", "m.c"})])
    def test_last_hop_through_a_mediator_does_not_end_where_it_began(self, make, walks, ends):
        base = "http://rdf.freebase.com/ns/"
        children, married, spouse = (
            f"{base}people.{name}" for name in ("person.children", "person.spouse_s", "marriage.spouse")
        )
        edges = [("m.a", children, "m.b"), ("m.b", married, "m.x"), ("m.x", spouse, "m.b"), ("m.x", spouse, "m.c")]
        graph = make([f"<{base}{s}> <{r}> <{base}{o}> ." for s, r, o in edges], "freebase", walks=walks)
        found = graph.paths.ends([Candidate(path(f"{base}m.a", children, married, spouse))])[0].values
        assert {value.iri.removeprefix(base) for value in found} == ends


class TestViews:
    LINES: ClassVar = [
        "<http://e/a> <http://e/r> <http://e/b> <http://e/g1> .",
        "<http://e/a> <http://e/r> <http://e/b> <http://e/g2> .",
        "<http://e/b> <http://e/q> <http://e/c> <http://e/g2> .",
        "<http://e/a> <http://e/r> <http://e/hidden> <http://e/g3> .",
        "<http://e/a> <http://e/r> <http://e/default> .",
        f'<http://e/b> <{RDFS}label> "B one" <http://e/g1> .',
        f'<http://e/b> <{RDFS}label> "A three" <http://e/g3> .',
    ]

    @pytest.fixture(scope="class")
    @staticmethod
    def view_of(graphs):
        """Return `view_of("g1", "g2", ...)`, which opens the graph through a view."""
        whole = graphs.make(TestViews.LINES, "rdfs")
        return lambda *names, **options: graphs.reopen(whole, view=[f"http://e/{name}" for name in names], **options)

    def test_triple_in_two_graphs_counts_once(self, view_of):
        graph = view_of("g1", "g2")
        assert graph.paths.ends([Candidate(path("http://e/a", "http://e/r"))])[0].values == (Entity("http://e/b"),)
        assert graph.paths.neighbours(Entity("http://e/a")) == [(Step("http://e/r"), Entity("http://e/b"))]
        assert (
            graph.paths.degrees([Entity("http://e/a")])[Entity("http://e/a")] == 1
            and graph.paths.degrees([Entity("http://e/b")])[Entity("http://e/b")] == 3
        )
        assert graph.tables.relations["http://e/r"] == 1
        assert graph.paths.walks([Candidate(path("http://e/a", "http://e/r"))])[0] == [
            (Entity("http://e/a"), Entity("http://e/b"))
        ]
        assert graph.run_exported(graph.answer_query(path("http://e/a", "http://e/r"))) == (Entity("http://e/b"),)

    def test_path_over_two_graphs(self, view_of):
        which = path("http://e/a", "http://e/r", "http://e/q")
        assert view_of("g1", "g2").paths.ends([Candidate(which)])[0].values == (Entity("http://e/c"),)
        assert view_of("g1").paths.ends([Candidate(which)])[0].values == ()
        assert view_of("g1").paths.steps([Candidate(path("http://e/a", "http://e/r"))])[0].steps == ()

    def test_only_graphs_in_view_are_read(self, view_of):
        assert short(view_of("g3").paths.ends([Candidate(path("http://e/a", "http://e/r"))])[0].values) == {
            "http://e/hidden"
        }
        assert view_of("g9").paths.ends([Candidate(path("http://e/a", "http://e/r"))])[0].values == ()
        assert view_of("g1", "g2").labels([Entity("http://e/b")]) == {Entity("http://e/b"): "B one"}
        assert [m.name for m in view_of("g3").search("three")] == ["A three"]
        assert view_of("g1").search("three") == []

    def test_views_do_not_share_derived_tables(self, view_of, tmp_path):
        cache = Cache(tmp_path)
        one, other = (view_of(g, cache=cache) for g in ("g1", "g2"))
        assert one.tables.relations != other.tables.relations
        assert one.tables.folder != other.tables.folder != view_of(cache=cache).tables.folder


def test_only_the_default_graph_is_read_without_view(new_store):
    """This holds for the embedded store only; on a server a view is always named."""
    graph = KnowledgeGraph(new_store(TestViews.LINES), bundled_schema("rdfs"))
    assert short(graph.paths.ends([Candidate(path("http://e/a", "http://e/r"))])[0].values) == {"http://e/default"}


def test_blank_nodes_are_excluded_from_queries():
    with MemoryStore("<http://e/a> <http://e/r> <http://e/b> .\n<http://e/a> <http://e/r> _:b .") as store:
        graph = KnowledgeGraph(store, bundled_schema("rdfs"))
        which = RelationPath(Entity("http://e/a"), (Step("http://e/r"),))
        ends = graph.paths.ends([Candidate(which)])[0].values
        blank = [end for end in ends if end.iri.startswith("_:")]
        assert len(ends) == 2 and len(blank) == 1
        assert graph.paths.walks([Candidate(which)], ends=blank)[0] == [] and graph.paths.degrees(blank) == {
            blank[0]: 0
        }
        assert len(graph.paths.walks([Candidate(which)], ends=ends)[0]) == 1
        assert len(graph.named(ends)) == 2


def test_degrees_of_many_nodes_in_few_queries(make):
    lines = [f"<http://e/n{n}> <http://e/r> <http://e/x{m}> ." for n in range(60) for m in range(n % 7)]
    graph = make(lines, "rdfs")
    graph.tables.prepare()
    trace = Trace()
    found = graph.for_question(trace).paths.degrees([Entity(f"http://e/n{n}") for n in range(60)])
    assert found == {Entity(f"http://e/n{n}"): n % 7 for n in range(60)}
    assert trace.usage().queries == 4
