"""Beam exploration: the pool of a hop, duplicates, and hops that time out."""

from __future__ import annotations

from kgqa.errors import StoreTimeout
from kgqa.search.beam import BeamSettings, explore
from kgqa.trace.trace import Trace

from .conftest import ent, path


def keep_all(pool):
    return list(pool)


def run(graph, *topics, depth=2, completed=0, prefilter=keep_all, tournament=keep_all, **options):
    trace = Trace()
    hops = explore(
        graph,
        [ent(topic) for topic in topics],
        BeamSettings(depth, completed=completed),
        prefilter=prefilter,
        tournament=tournament,
        trace=trace,
        **options,
    )
    return hops, trace


CHAIN = ("m.a r.r.one m.b", "m.b r.r.two m.c", "m.x r.r.three m.y")


def test_pool_contains_survivors_and_their_extensions(small):
    hops, _ = run(small(*CHAIN), "m.a", "m.x")
    assert {c.path for c in hops[0].pool} == {path("m.a", "r.r.one"), path("m.x", "r.r.three")}
    assert {c.path for c in hops[1].pool} == {
        path("m.a", "r.r.one"),
        path("m.x", "r.r.three"),
        path("m.a", "r.r.one", "r.r.two"),
    }


def test_dropped_path_is_not_extended(small):
    hops, _ = run(small(*CHAIN), "m.a", "m.x", tournament=lambda pool: [c for c in pool if c.path.topic == ent("m.x")])
    assert len(hops) == 1 and [c.path for c in hops[0].kept] == [path("m.x", "r.r.three")]


def test_exploration_stops_when_enough_is_found(small):
    hops, _ = run(small(*CHAIN), "m.a", enough=lambda hops: True)
    assert len(hops) == 1


def test_hops_and_types_in_words(small):
    hops, _ = run(small(*CHAIN, "r.r.one type.property.expected_type people.person"), "m.a")
    assert {c.hops for c in hops[1].pool} == {("r one",), ("r one", "r two")}


def test_ends_in_words(small):
    typed, _ = run(small(*CHAIN, "r.r.one type.property.expected_type people.person"), "m.a", depth=1)
    assert [c.leads_to for c in typed[0].pool] == ["person"]
    bare, _ = run(small("m.a r.r.one m.b", "m.b r.r.two m.c"), "m.b", depth=1)
    found = {c.path.steps[0].direction: c.leads_to for c in bare[0].pool}
    assert found == {"out": "r two", "in": "r one"}


def test_path_through_a_mixed_relation_is_found_once(small):
    graph = small(
        "m.a r.r.about m.p1",
        "m.p1 type.object.type film.performance",
        "m.p1 film.performance.film m.f",
        "m.a r.r.about m.b",
        "m.b r.r.two m.c",
    )
    hops, trace = run(graph, "m.a", depth=3)
    for hop in hops:
        paths = [candidate.path for candidate in hop.pool]
        assert len(paths) == len(set(paths))
    news = [set(event.detail["paths"]) for event in trace.events() if event.kind == "pool"]
    assert len(news) == len(hops) and sum(len(hop.pool) for hop in hops) > 3


def test_path_that_reaches_a_mediator_at_the_maximum_depth_is_completed(small):
    graph = small(
        "m.a r.r.one m.b",
        "m.b r.r.two m.c",
        "m.b film.actor.film m.p",
        "m.p type.object.type film.performance",
        "m.p film.performance.film m.f",
    )
    one, two = path("m.a", "r.r.one"), path("m.a", "r.r.one", "r.r.two")
    film = path("m.a", "r.r.one", "film.actor.film", "film.performance.film")
    assert {c.path for c in run(graph, "m.a")[0][1].pool} == {one, two}
    assert {c.path for c in run(graph, "m.a", completed=1)[0][1].pool} >= {one, two, film}
    assert {c.path for c in run(graph, "m.a", depth=3)[0][1].pool} >= {one, two, film}


class LateStore:
    """A store that times out on queries with a given text and passes on the others."""

    def __init__(self, store, text):
        self._store, self._text = store, text

    def select(self, query, **options):
        if self._text in query:
            raise StoreTimeout("too late")
        return self._store.select(query, **options)

    def __getattr__(self, name):
        return getattr(self._store, name)


def test_timed_out_hop_keeps_earlier_paths(small):
    graph = small(*CHAIN)
    graph.tables.prepare()
    graph.queries.store = LateStore(graph.store, "?frontier")
    hops, trace = run(graph, "m.a")
    assert len(hops) == 1 and [c.path for c in hops[0].kept] == [path("m.a", "r.r.one")]
    assert all(candidate.approximate for candidate in hops[0].kept)
    assert "gave_up" in {event.kind for event in trace.events()}


def test_timed_out_first_hop_is_an_error(small):
    graph = small(*CHAIN)
    graph.tables.prepare()
    graph.queries.store = LateStore(graph.store, "SELECT")
    try:
        run(graph, "m.a")
    except StoreTimeout:
        return
    raise AssertionError("nothing was found, and nobody was told why")
