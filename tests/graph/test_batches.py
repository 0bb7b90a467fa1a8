"""Many paths in one query: a batch gives what single queries give, and one path never costs the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.errors import QueryRejected, RowCapMet, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Ends
from kgqa.graph.store import Rows
from kgqa.model import Candidate, Entity, Join, RelationPath, Step, Triple
from kgqa.settings.table import WALK_RULES
from kgqa.trace.trace import Trace
from tests.conftest import SOAK
from tests.graph.memory_store import MemoryStore
from tests.graph.test_both_stores import MANY, PHASES
from tests.graph.test_conditions import NODES, RANDOM_FACTS, SCHEMA, condition, questions

GRAPHS = {"embedded": 40 if SOAK else 6, "rdflib": 8 if SOAK else 2, "virtuoso": 20 if SOAK else 3}
A, A_WITH_CAPITAL = Entity("http://e/a"), Entity("http://E/a")
RELATIONS = [f"http://e/r{n}" for n in range(3)]


@st.composite
def candidates(draw) -> Candidate:
    path = draw(questions().filter(lambda asked: len(asked[0]) > 0))[0]
    places = st.integers(1, len(path))
    other = st.builds(
        lambda topic, name: RelationPath(topic, (Step(name),)), st.sampled_from(NODES), st.sampled_from(RELATIONS)
    )
    chosen = st.tuples(places, st.lists(st.sampled_from(NODES), min_size=1, max_size=3, unique=True).map(tuple))
    return Candidate(
        path,
        "",
        joins=draw(st.lists(st.builds(Join, places, other), max_size=1).map(tuple)),
        restricted=draw(st.lists(chosen, max_size=1).map(tuple)),
        conditions=draw(st.lists(condition(len(path)), max_size=1).map(tuple)),
    )


@pytest.mark.soak
def test_batches_give_the_ends_of_single_queries(graphs):
    @settings(max_examples=GRAPHS[graphs.kind], phases=PHASES, deadline=None)
    @given(RANDOM_FACTS, st.lists(candidates(), min_size=2, max_size=25), st.sampled_from([None, 1, 3]))
    def check(facts, every, limit):
        store, name = graphs.write_facts(facts)
        graph = KnowledgeGraph(store, SCHEMA, view=[name], walks="free")
        for each, found in zip(every, graph.paths.ends(every, limit=limit)):
            alone = graph.paths.ends([each], limit=limit)[0]
            assert found.approximate == alone.approximate and len(found.values) == len(alone.values)
            assert set(found.values) <= set(graph.paths.ends([each])[0].values)
            assert len(set(found.values)) == len(found.values)
        if limit is None:
            for each, walks in zip(every, graph.paths.walks(every, limit=MANY)):
                assert set(walks) == set(graph.paths.walks([each], limit=MANY)[0])
        graph.tables.close()

    check()


@pytest.mark.soak
@pytest.mark.parametrize("rule", WALK_RULES)
def test_batches_give_the_steps_of_single_queries(graphs, rule):
    @settings(max_examples=max(2, GRAPHS[graphs.kind] // 2), phases=PHASES, deadline=None)
    @given(RANDOM_FACTS, st.lists(candidates(), min_size=2, max_size=25), st.sampled_from([2, 1000]))
    def check(facts, every, cap):
        store, name = graphs.write_facts(facts)
        graph = KnowledgeGraph(store, SCHEMA, view=[name], walks=rule, frontier_cap=cap)
        shorter = [replace(each, path=RelationPath(each.path.topic, each.path.steps[:-1])) for each in every]
        asked = [replace(c, restricted=c.restricted if len(c.path) else ()) for c in [*every, *shorter]]
        for each, found in zip(asked, graph.paths.steps(asked)):
            alone = graph.paths.steps([Candidate(each.path, restricted=each.restricted)])[0]
            assert found.approximate == alone.approximate
            # the engine chooses the nodes within a cap
            assert found.approximate or found == alone
        graph.tables.close()

    check()


class FaultyStore(MemoryStore):
    """A store that counts its queries and fails on some of them."""

    def __init__(self, content):
        super().__init__(content)
        self.fault = lambda query: None
        self.asked = []

    def select(self, query, **options):
        self.asked.append(query)
        if error := self.fault(query):
            raise error
        return super().select(query, **options)


@pytest.fixture
def store():
    return FaultyStore(f"<http://e/a> <http://e/r{n}> <http://e/b{n}-{m}> ." for n in range(30) for m in range(3))


def paths(count: int) -> list[Candidate]:
    return [Candidate(RelationPath(Entity("http://e/a"), (Step(f"http://e/r{n}"),)), "") for n in range(count)]


def fresh(store: FaultyStore, trace: Trace | None = None) -> KnowledgeGraph:
    graph = KnowledgeGraph(store, SCHEMA)
    graph.tables.prepare()
    store.asked.clear()
    return graph.for_question(trace) if trace else graph


def test_a_batch_that_meets_the_row_cap_is_halved(store):
    def capped(query, **options):
        rows = FaultyStore.select(store, query, **options)
        if len(rows) >= 40:
            raise RowCapMet("cut", cap=40)
        return rows

    graph = fresh(store)
    store.select = capped
    assert [len(ends.values) for ends in graph.paths.ends(paths(20), limit=2)] == [2] * 20
    assert len(store.asked) == 1 + 2


def test_the_rows_of_a_batch_stay_below_a_known_row_cap(store):
    graph = fresh(store)
    store.capabilities = replace(store.capabilities, row_cap=40)
    assert [len(ends.values) for ends in graph.paths.ends(paths(26), limit=2)] == [2] * 26
    assert len(store.asked) == 2 and graph.paths.ends(paths(26), limit=30)[0].values
    assert len(store.asked) == 2 + 26


@pytest.mark.parametrize("error", [StoreTimeout("late"), QueryRejected("too long")])
def test_one_hopeless_path_does_not_cost_the_others(store, error):
    store.fault = lambda query: error if "/r3>" in query else None
    trace = Trace()
    found = fresh(store, trace).paths.ends(paths(6), tolerated=(type(error),))
    assert [len(each.values) if each is not error else 0 for each in found] == [3, 3, 3, 0, 3, 3]
    late = [event for event in trace.events() if event.kind == "timeout"]
    assert len(late) == isinstance(error, StoreTimeout)


def test_a_question_asks_for_the_ends_of_a_path_once(store):
    graph = fresh(store, trace := Trace())
    assert graph.for_question(trace) is graph, "linking and the search share what is known"
    first, _ = graph.paths.ends(paths(2), limit=5)
    assert graph.paths.ends([Candidate(paths(1)[0].path)])[0] == first
    assert graph.paths.ends([Candidate(paths(1)[0].path)], limit=1)[0] == Ends(first.values[:1], approximate=True)
    assert len(store.asked) == 1
    some = graph.paths.ends([Candidate(paths(3)[2].path)], limit=1)[0]
    assert len(some.values) == 1 and len(graph.paths.ends([Candidate(paths(3)[2].path)], limit=2)[0].values) == 2
    assert len(store.asked) == 3
    topic = Candidate(RelationPath(Entity("http://e/a")))
    assert graph.paths.steps([topic]) == graph.paths.steps([topic]) and len(store.asked) == 4


def test_a_batch_that_fails_is_halved(store):
    store.fault = lambda query: StoreTimeout("late") if "/r3>" in query else None
    found = fresh(store).paths.ends(paths(16), tolerated=(StoreTimeout,))
    assert sum(isinstance(each, StoreTimeout) for each in found) == 1
    assert len(store.asked) == 1 + 2 * 4


def test_an_edit_during_a_question_is_seen(store):
    graph = fresh(store, Trace())
    (before,) = graph.paths.ends(paths(1))
    store.edit("", [Triple(Entity("http://e/a"), "http://e/r0", Entity("http://e/new"))])
    (after,) = graph.paths.ends(paths(1))
    assert {*after.values} - {*before.values} == {Entity("http://e/new")}


def test_a_node_that_the_server_writes_in_another_way_keeps_its_edges(store):
    store.select = lambda query, **options: Rows(
        (),
        [tuple(A_WITH_CAPITAL if value == A else value for value in row) for row in MemoryStore.select(store, query)],
    )
    graph = KnowledgeGraph(store, SCHEMA)
    assert len(graph.paths.edges([A, Entity("http://e/b0-0")])) == 90
