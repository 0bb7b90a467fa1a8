"""Beam exploration: the pool of a hop, paths through mediators, and hops that time out."""

from __future__ import annotations

from kgqa.errors import StoreTimeout
from kgqa.model import Candidate, RelationPath
from kgqa.search.beam import BeamSettings, explore
from kgqa.trace.trace import Trace

from .conftest import ent, path

CHAIN = ("m.a r.r.one m.b", "m.b r.r.two m.c", "m.x r.r.three m.y")


def run(graph, *topics, depth=2, completed=0, kept=()):
    trace = Trace()
    settings = BeamSettings(depth, completed=completed)
    start = [Candidate(RelationPath(ent(topic))) for topic in topics]
    return explore(graph, start, settings, prefilter=list, tournament=list, trace=trace, kept=kept), trace


def paths(hop):
    return {candidate.path for candidate in hop.pool}


def test_pool_contains_survivors_and_their_extensions(small):
    first, second = run(small(*CHAIN), "m.a", "m.x")[0]
    assert paths(first) == {path("m.a", "r.r.one"), path("m.x", "r.r.three")}
    assert paths(second) == paths(first) | {path("m.a", "r.r.one", "r.r.two")}


def test_kept_paths_compete_with_those_found(small):
    known = Candidate(path("m.x", "r.r.three"))
    (first,), _ = run(small(*CHAIN), "m.a", depth=1, kept=[known])
    assert paths(first) == {path("m.a", "r.r.one"), known.path}
    (first,), _ = run(small(*CHAIN), "m.a", depth=1)
    assert paths(first) == {path("m.a", "r.r.one")}


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
    assert paths(run(graph, "m.a")[0][1]) == {one, two}
    assert paths(run(graph, "m.a", completed=1)[0][1]) >= {one, two, film}
    assert paths(run(graph, "m.a", depth=3)[0][1]) >= {one, two, film}


def watched(graph, late="nothing"):
    """Return the list of the queries that a graph sends from now on; those with a given text time out."""
    graph.tables.prepare()
    sent, select = [], graph.store.select

    def watching(query, **options):
        sent.append(query)
        if late in query:
            raise StoreTimeout("too late")
        return select(query, **options)

    graph.store.select = watching
    return sent


def test_hop_needs_few_queries(small):
    graph = small(*(f"{s} r.r.{p}{n} m.{o}{n}" for n in range(10) for s, p, o in (("m.a", "first", "b"),
                                                                                   (f"m.b{n}", "second", "c"))))  # fmt: skip
    sent = watched(graph)
    assert len(run(graph, "m.a")[0][1].pool) == 20 and len(sent) <= 4


def test_timed_out_hop_keeps_earlier_paths(small):
    graph = small(*CHAIN)
    watched(graph, "?frontier")
    hops, trace = run(graph, "m.a")
    assert [(c.path, c.approximate) for hop in hops for c in hop.kept] == [(path("m.a", "r.r.one"), True)]
    assert "gave_up" in {event.kind for event in trace.events()}
