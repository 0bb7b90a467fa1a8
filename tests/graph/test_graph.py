"""Exploration of a KnowledgeGraph in both stores: steps, ends, walks, hubs, walk rules and views."""

from __future__ import annotations

import pytest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step
from kgqa.schema import bundled_schema
from kgqa.trace.trace import Trace
from tests.graph.facts import NS, RDF, RDFS, ends, ent, expansion, path, short, walks, words
from tests.graph.memory_store import MemoryStore


def e(name: str) -> Entity:
    return Entity(f"http://e/{name}")


def along(topic: str, *names: str) -> RelationPath:
    return path(*(f"http://e/{name}" for name in (topic, *names)))


class TestExploration:
    def test_from_a_topic(self, graph):
        found = expansion(graph, path("m.ann"))
        assert words(found.steps) == {
            "people.person.spouse_s", "film.actor.film", "award.award_winner.awards_won", "base.mixed.about", "people.person.education",
            "people.person.gender", "people.person.height", "people.person.children", "^people.marriage.spouse",
        }  # fmt: skip
        assert not found.approximate and len(found.steps) == len(set(found.steps))

    def test_noise_relations_are_excluded(self, graph):
        for start in ("m.ann", "people.person", "m.role"):
            steps = words(expansion(graph, path(start)).steps)
            assert not any(s.lstrip("^").startswith(("type.", "common.", "freebase.", "http")) for s in steps)

    def test_literals_are_ends_without_steps(self, graph):
        height = path("m.ann", "people.person.height")
        assert short(ends(graph, height)) == {"1.7"} and expansion(graph, height).steps == ()

    def test_walks_along(self, graph):
        which = path("m.ann", "film.actor.film", "film.performance.film")
        assert walks(graph, which) == [(ent("m.ann"), ent("m.role"), ent("m.movie"))]
        assert walks(graph, which, ends=[ent("m.prize")]) == []
        mixed, text = path("m.ann", "base.mixed.about"), Literal("just text")
        assert walks(graph, mixed, ends=[text]) == [(ent("m.ann"), text)] and len(walks(graph, mixed, limit=1)) == 1


class TestHub:
    LINES = (
        *(f"<http://e/hub> <http://e/has> <http://e/n{n}> ." for n in range(40)),
        *(f"<http://e/n{n}> <http://e/r{n}> <http://e/x> ." for n in range(40)),
        *(f"<http://e/few> <http://e/has> <http://e/m{n}> ." for n in range(3)),
        *(f"<http://e/m{n}> <http://e/at> <http://e/{k}> ." for n in range(3) for k in ("few", "p", "q")),
    )

    def test_capped_frontier_is_approximate(self, make):
        graph = make(self.LINES, "rdfs", frontier_cap=5)
        found, few = expansion(graph, along("hub", "has")), expansion(graph, along("few", "has"))
        assert found.approximate and 0 < len(found.steps) <= 6
        assert not few.approximate and {s.relation for s in few.steps} == {"http://e/at"}
        found = expansion(make(self.LINES, "rdfs", frontier_cap=40), along("hub", "has"))
        assert not found.approximate and len([s for s in found.steps if s.direction == "out"]) == 40

    def test_ends_with_a_limit(self, make):
        graph = make(self.LINES, "rdfs")
        for limit, number in ((10, 10), (40, 40), (41, 40), (None, 40)):
            found = graph.paths.ends([Candidate(along("hub", "has"))], limit=limit)[0]
            assert found.approximate == (limit == 10) and len(set(found.values)) == number

    def test_neighbours_among_much_noise(self, make):
        noise = [f"<http://e/a> <{RDF}type> <http://e/T{n}> ." for n in range(50)]
        graph = make([*noise, "<http://e/a> <http://e/z> <http://e/b> ."], "rdfs")
        assert graph.paths.neighbours(e("a"), limit=10) == [(Step("http://e/z"), e("b"))]


@pytest.mark.parametrize("rule, expected", [("topic-not-end", {"m.c"}), ("free", {"m.b", "m.c"})])
def test_last_hop_through_a_mediator_does_not_end_where_it_began(make, rule, expected):
    children, married, spouse = "people.person.children", "people.person.spouse_s", "people.marriage.spouse"
    edges = [("m.a", children, "m.b"), ("m.b", married, "m.x"), ("m.x", spouse, "m.b"), ("m.x", spouse, "m.c")]
    graph = make([f"<{NS}{s}> <{NS}{r}> <{NS}{o}> ." for s, r, o in edges], "freebase", walks=rule)
    assert short(ends(graph, path("m.a", children, married, spouse))) == expected


class TestViews:
    LINES = (
        "<http://e/a> <http://e/r> <http://e/b> <http://e/g1> .",
        "<http://e/a> <http://e/r> <http://e/b> <http://e/g2> .",
        "<http://e/b> <http://e/q> <http://e/c> <http://e/g2> .",
        "<http://e/a> <http://e/r> <http://e/hidden> <http://e/g3> .",
        "<http://e/a> <http://e/r> <http://e/default> .",
        f'<http://e/b> <{RDFS}label> "B one" <http://e/g1> .',
        f'<http://e/b> <{RDFS}label> "A three" <http://e/g3> .',
    )
    HOP = along("a", "r")

    @pytest.fixture(scope="class")
    @staticmethod
    def view_of(graphs):
        """Return `view_of("g1", "g2", ...)`, which opens the graph through a view."""
        whole = graphs.make(TestViews.LINES, "rdfs")
        return lambda *names, **options: graphs.reopen(whole, view=[f"http://e/{name}" for name in names], **options)

    def test_triple_in_two_graphs_counts_once(self, view_of):
        graph = view_of("g1", "g2")
        assert ends(graph, self.HOP) == graph.run_exported(graph.answer_query(self.HOP)) == (e("b"),)
        assert graph.paths.neighbours(e("a")) == [(Step("http://e/r"), e("b"))]
        assert graph.paths.degrees([e("a"), e("b")]) == {e("a"): 1, e("b"): 3}
        assert graph.tables.relations["http://e/r"] == 1
        assert walks(graph, self.HOP) == [(e("a"), e("b"))]


def test_blank_nodes_are_excluded_from_queries():
    with MemoryStore("<http://e/a> <http://e/r> <http://e/b> .\n<http://e/a> <http://e/r> _:b .") as store:
        graph, which = KnowledgeGraph(store, bundled_schema("rdfs")), along("a", "r")
        both = ends(graph, which)
        (blank,) = (end for end in both if end.iri.startswith("_:"))
        assert walks(graph, which, ends=[blank]) == [] and graph.paths.degrees([blank]) == {blank: 0}
        assert len(walks(graph, which, ends=both)) == 1 and len(graph.named(both)) == 2


def test_degrees_of_many_nodes_in_few_queries(make):
    lines = [f"<http://e/n{n}> <http://e/r> <http://e/x{m}> ." for n in range(60) for m in range(n % 7)]
    trace = Trace()
    graph = make(lines, "rdfs").for_question(trace)
    assert graph.paths.degrees([e(f"n{n}") for n in range(60)]) == {e(f"n{n}"): n % 7 for n in range(60)}
    assert trace.usage().queries == 4
