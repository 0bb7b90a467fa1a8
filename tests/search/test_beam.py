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


def test_ends_in_words(small):
    typed, _ = run(small(*CHAIN, "r.r.one type.property.expected_type people.person"), "m.a", depth=1)
    assert [c.leads_to for c in typed[0].pool] == ["person"]
    bare, _ = run(small("m.a r.r.one m.b", "m.b r.r.two m.c"), "m.b", depth=1)
    found = {c.path.steps[0].direction: c.leads_to for c in bare[0].pool}
    assert found == {"out": "r two", "in": "r one"}


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


class WatchedStore:
    """A store that notes queries, and times out on those with a given text."""

    def __init__(self, store, late):
        self._store, self._late, self.sent = store, late, []

    def select(self, query, **options):
        self.sent.append(query)
        if self._late in query:
            raise StoreTimeout("too late")
        return self._store.select(query, **options)

    def __getattr__(self, name):
        return getattr(self._store, name)


def watched(graph, late):
    graph.tables.prepare()
    graph.queries.store = WatchedStore(graph.store, late)
    return graph.queries.store


def test_hop_needs_few_queries(small):
    graph = small(*(f"{s} r.r.{p}{n} m.{o}{n}" for n in range(10) for s, p, o in (("m.a", "first", "b"),
                                                                                   (f"m.b{n}", "second", "c"))))  # fmt: skip
    store = watched(graph, "nothing")
    hops, _ = run(graph, "m.a")
    assert len(hops[1].pool) == 20 and len(store.sent) <= 4


def test_timed_out_hop_keeps_earlier_paths(small):
    graph = small(*CHAIN)
    watched(graph, "?frontier")
    hops, trace = run(graph, "m.a")
    assert len(hops) == 1 and [c.path for c in hops[0].kept] == [path("m.a", "r.r.one")]
    assert all(candidate.approximate for candidate in hops[0].kept)
    assert "gave_up" in {event.kind for event in trace.events()}
