"""Exploration of a KnowledgeGraph in both stores: steps, ends, walks, hubs, walk rules and views."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kgqa.graph.charged_queries import ChargedQueries
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.store import Rows
from kgqa.graph.tables.labels import LABEL_BATCH
from kgqa.model import Entity, Literal, RelationPath, Step
from kgqa.schema import bundled_schema
from kgqa.storage.cache import Cache
from kgqa.trace.trace import Trace
from tests.graph.facts import NS, RDF, RDFS, ent, path, short, words
from tests.graph.memory_store import MemoryStore


class TestExploration:
    def test_from_a_topic(self, graph):
        found = graph.next_steps(RelationPath(ent("m.ann")))
        assert words(found.steps) == {
            "people.person.spouse_s", "film.actor.film", "award.award_winner.awards_won", "base.mixed.about", "people.person.education",
            "people.person.gender", "people.person.height", "people.person.children", "^people.marriage.spouse",
        }  # fmt: skip
        assert not found.approximate
        assert list(found.steps) == list(dict.fromkeys(found.steps))

    def test_inverse_twins_are_folded_both_ways(self, graph):
        assert "^people.person.parents" not in words(graph.next_steps(RelationPath(ent("m.ann"))).steps)
        from_child = words(graph.next_steps(RelationPath(ent("m.cid"))).steps)
        assert from_child == {"people.person.parents"}
        assert graph.inverse(f"{NS}people.person.parents") == f"{NS}people.person.children"
        assert graph.inverse(f"{NS}people.person.gender") is None

    def test_noise_relations_are_excluded(self, graph):
        for start in ("m.ann", "people.person", "m.role"):
            steps = words(graph.next_steps(RelationPath(ent(start))).steps)
            assert not any(s.lstrip("^").startswith(("type.", "common.", "freebase.", "http")) for s in steps)

    def test_literals_are_ends_without_steps(self, graph):
        assert short(graph.ends(path("m.ann", "people.person.height")).values) == {"1.7"}
        assert graph.next_steps(path("m.ann", "people.person.height")).steps == ()

    def test_missing_topic(self, graph):
        nowhere = RelationPath(ent("m.nowhere"))
        assert graph.next_steps(nowhere).steps == ()
        assert not graph.exists(nowhere.topic) and graph.degree(nowhere.topic) == 0
        assert graph.neighbours(nowhere.topic) == []
        assert graph.ends(path("m.nowhere", "people.person.gender")).values == ()

    def test_relations_and_counts(self, nameless):
        assert nameless.relations[f"{NS}base.mixed.about"] == 4
        assert list(nameless.relations.values()) == sorted(nameless.relations.values(), reverse=True)

    def test_walks_along(self, graph):
        which = path("m.ann", "film.actor.film", "film.performance.film")
        assert graph.walks_along(which) == [(ent("m.ann"), ent("m.role"), ent("m.movie"))]
        assert graph.walks_along(which, ends=[ent("m.prize")]) == []
        mixed = path("m.ann", "base.mixed.about")
        assert graph.walks_along(mixed, ends=[Literal("just text")]) == [(ent("m.ann"), Literal("just text"))]
        assert len(graph.walks_along(mixed, limit=1)) == 1

    def test_walks_have_a_value_per_node_even_if_a_server_leaves_one_unbound(self, graph, monkeypatch):
        which = path("m.ann", "film.actor.film", "film.performance.film")
        monkeypatch.setattr(ChargedQueries, "rows", lambda *_, **__: Rows(("n1", "end"), [(None, ent("m.movie"))]))
        assert graph.walks_along(which) == [(ent("m.ann"), None, ent("m.movie"))]


class TestHub:
    @pytest.fixture(scope="class")
    @staticmethod
    def lines():
        lines = [f"<http://e/hub> <http://e/has> <http://e/n{n}> ." for n in range(40)]
        lines += [f"<http://e/n{n}> <http://e/r{n}> <http://e/x> ." for n in range(40)]
        lines += [f"<http://e/few> <http://e/has> <http://e/m{n}> ." for n in range(3)]
        lines += [f"<http://e/m{n}> <http://e/at> <http://e/{k}> ." for n in range(3) for k in ("few", "p", "q")]
        # many ways to few nodes
        lines += [f"<http://e/top> <http://e/a> <http://e/w{n}> ." for n in range(30)]
        lines += [f"<http://e/w{n}> <http://e/b> <http://e/z{max(0, n - 26)}> ." for n in range(30)]
        lines += [f"<http://e/z{n}> <http://e/from{n}> <http://e/x> ." for n in range(4)]
        return lines + [f"<http://e/x> <http://e/into{n}> <http://e/z{n}> ." for n in range(4)]

    def test_capped_frontier_is_approximate(self, make, lines):
        graph = make(lines, "rdfs", frontier_cap=5)
        found = graph.next_steps(path("http://e/hub", "http://e/has"))
        assert found.approximate and 0 < len(found.steps) <= 6
        few = graph.next_steps(path("http://e/few", "http://e/has"))
        assert not few.approximate
        assert {s.relation for s in few.steps} == {"http://e/at"}
        graph.frontier_cap = 40
        found = graph.next_steps(path("http://e/hub", "http://e/has"))
        assert not found.approximate and len([s for s in found.steps if s.direction == "out"]) == 40
        assert not graph.next_steps(RelationPath(Entity("http://e/hub"))).approximate

    @pytest.mark.parametrize("rule", ["topic-not-end", "no-return", "topic-never", "free"])
    def test_many_walks_to_few_nodes(self, make, lines, rule):
        """The cap counts nodes, so many walks to few nodes lose no step."""
        graph = make(lines, "rdfs", walks=rule)
        which = path("http://e/top", "http://e/a", "http://e/b")
        whole = graph.next_steps(which)
        graph.frontier_cap = 4
        capped = graph.next_steps(which)
        assert capped.steps == whole.steps or capped.approximate
        assert {f"http://e/{way}{n}" for way in ("from", "into") for n in range(4)} <= {s.relation for s in whole.steps}

    def test_ends_with_a_limit(self, make, lines):
        graph = make(lines, "rdfs")
        some = graph.ends(path("http://e/hub", "http://e/has"), limit=10)
        assert some.approximate and len(set(some.values)) == 10
        for limit in (40, 41, None):
            whole = graph.ends(path("http://e/hub", "http://e/has"), limit=limit)
            assert not whole.approximate and len(whole.values) == 40

    def test_labels_in_batches(self, make):
        lines = [f'<http://e/n{n}> <{RDFS}label> "name {n}"@en .' for n in range(3 * LABEL_BATCH + 7) if n % 10]
        graph = make(lines, "rdfs")
        nodes = [Entity(f"http://e/n{n}") for n in range(3 * LABEL_BATCH + 7)]
        for _ in range(2):  # the second call uses the cache
            labels = graph.labels(nodes)
            assert labels == {Entity(f"http://e/n{n}"): f"name {n}" for n in range(len(nodes)) if n % 10}
        assert list(labels) == [e for e in nodes if e in labels]

    def test_neighbours_among_much_noise(self, make):
        lines = [f"<http://e/a> <{RDF}type> <http://e/T{n}> ." for n in range(50)] + [
            "<http://e/a> <http://e/z> <http://e/b> ."
        ]
        graph = make(lines, "rdfs")
        assert graph.neighbours(Entity("http://e/a"), limit=10) == [(Step("http://e/z"), Entity("http://e/b"))]


class TestWalkRules:
    LINES: ClassVar = ["<http://e/a> <http://e/r> <http://e/b> .", "<http://e/c> <http://e/r> <http://e/b> ."]

    @pytest.mark.parametrize(
        "rule, ends",
        [
            ("free", {"http://e/a", "http://e/c"}),
            ("topic-not-end", {"http://e/c"}),
            ("topic-never", {"http://e/c"}),
            ("no-return", {"http://e/c"}),
        ],
    )
    def test_walks_going_back(self, make, rule, ends):
        graph = make(self.LINES, "rdfs", walks=rule)
        assert short(graph.ends(path("http://e/a", "http://e/r", "^http://e/r")).values) == ends

    @pytest.mark.parametrize("walks, ends", [("topic-not-end", {"m.c"}), ("free", {"m.b", "m.c"})])
    def test_last_hop_through_a_mediator_does_not_end_where_it_began(self, make, walks, ends):
        base = "http://rdf.freebase.com/ns/"
        children, married, spouse = (
            f"{base}people.{name}" for name in ("person.children", "person.spouse_s", "marriage.spouse")
        )
        edges = [("m.a", children, "m.b"), ("m.b", married, "m.x"), ("m.x", spouse, "m.b"), ("m.x", spouse, "m.c")]
        graph = make([f"<{base}{s}> <{r}> <{base}{o}> ." for s, r, o in edges], "freebase", walks=walks)
        found = graph.ends(path(f"{base}m.a", children, married, spouse)).values
        assert {value.iri.removeprefix(base) for value in found} == ends

    def test_loop(self, make):
        graph = make(["<http://e/a> <http://e/r> <http://e/a> ."], "rdfs")
        assert graph.ends(path("http://e/a", "http://e/r")).values == ()
        assert graph.next_steps(RelationPath(Entity("http://e/a"))).steps == ()
        free = make(["<http://e/a> <http://e/r> <http://e/a> ."], "rdfs", walks="free")
        assert short(free.ends(path("http://e/a", "http://e/r")).values) == {"http://e/a"}


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
        assert graph.ends(path("http://e/a", "http://e/r")).values == (Entity("http://e/b"),)
        assert graph.neighbours(Entity("http://e/a")) == [(Step("http://e/r"), Entity("http://e/b"))]
        assert graph.degree(Entity("http://e/a")) == 1 and graph.degree(Entity("http://e/b")) == 3
        assert graph.relations["http://e/r"] == 1
        assert graph.walks_along(path("http://e/a", "http://e/r")) == [(Entity("http://e/a"), Entity("http://e/b"))]
        assert graph.run_exported(graph.answer_query(path("http://e/a", "http://e/r"))) == (Entity("http://e/b"),)

    def test_path_over_two_graphs(self, view_of):
        which = path("http://e/a", "http://e/r", "http://e/q")
        assert view_of("g1", "g2").ends(which).values == (Entity("http://e/c"),)
        assert view_of("g1").ends(which).values == ()
        assert view_of("g1").next_steps(path("http://e/a", "http://e/r")).steps == ()

    def test_only_graphs_in_view_are_read(self, view_of):
        assert short(view_of("g3").ends(path("http://e/a", "http://e/r")).values) == {"http://e/hidden"}
        assert view_of("g9").ends(path("http://e/a", "http://e/r")).values == ()
        assert view_of("g1", "g2").labels([Entity("http://e/b")]) == {Entity("http://e/b"): "B one"}
        assert [m.name for m in view_of("g3").search("three")] == ["A three"]
        assert view_of("g1").search("three") == []

    def test_views_do_not_share_derived_tables(self, view_of, tmp_path):
        cache = Cache(tmp_path)
        one, other = (view_of(g, cache=cache) for g in ("g1", "g2"))
        assert one.relations != other.relations
        assert one.tables.folder != other.tables.folder != view_of(cache=cache).tables.folder


def test_only_the_default_graph_is_read_without_view(new_store):
    """This holds for the embedded store only; on a server a view is always named."""
    graph = KnowledgeGraph(new_store(TestViews.LINES), bundled_schema("rdfs"))
    assert short(graph.ends(path("http://e/a", "http://e/r")).values) == {"http://e/default"}


def test_blank_nodes_are_excluded_from_queries():
    with MemoryStore("<http://e/a> <http://e/r> <http://e/b> .\n<http://e/a> <http://e/r> _:b .") as store:
        graph = KnowledgeGraph(store, bundled_schema("rdfs"))
        which = RelationPath(Entity("http://e/a"), (Step("http://e/r"),))
        ends = graph.ends(which).values
        blank = [end for end in ends if end.iri.startswith("_:")]
        assert len(ends) == 2 and len(blank) == 1
        assert graph.walks_along(which, ends=blank) == [] and graph.degrees(blank) == {blank[0]: 0}
        assert len(graph.walks_along(which, ends=ends)) == 1
        assert len(graph.named(ends)) == 2


def test_degrees_of_many_nodes_in_few_queries(make):
    lines = [f"<http://e/n{n}> <http://e/r> <http://e/x{m}> ." for n in range(60) for m in range(n % 7)]
    graph = make(lines, "rdfs")
    graph.prepare()
    trace = Trace()
    found = graph.for_question(trace).degrees([Entity(f"http://e/n{n}") for n in range(60)])
    assert found == {Entity(f"http://e/n{n}"): n % 7 for n in range(60)}
    assert trace.usage().queries == 4
