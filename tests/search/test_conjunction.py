"""Joins of paths from several topics: at the answer, at a mediator, or empty."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgqa.errors import StoreTimeout
from kgqa.graph.queries import Queries
from kgqa.model import Candidate, Join
from kgqa.search.beam import BeamSettings, worded
from kgqa.search.conjunction import JoinFinder
from kgqa.trace.trace import Trace

from .conftest import ent, path

FILMS = (
    # two actors in one film, each with a part
    "m.film film.film.starring m.p1",
    "m.p1 film.performance.actor m.ann",
    "m.p1 film.performance.character m.queen",
    "m.p1 type.object.type film.performance",
    "m.film film.film.starring m.p2",
    "m.p2 film.performance.actor m.bob",
    "m.p2 film.performance.character m.king",
    "m.p2 type.object.type film.performance",
    # the same parts played by others elsewhere
    "m.other film.film.starring m.p3",
    "m.p3 film.performance.actor m.bob",
    "m.p3 film.performance.character m.queen",
    "m.p3 type.object.type film.performance",
    "m.ann people.person.nationality m.france",
    "m.bob people.person.nationality m.spain",
)
CAST = ("film.film.starring", "film.performance.actor")


def candidates(graph, *paths):
    return worded(graph, [Candidate(each) for each in paths], BeamSettings())


@pytest.fixture
def films(small):
    return small(*FILMS)


def test_meet_at_the_answer(films):
    cast = candidates(films, path("m.film", *CAST))
    french = candidates(films, path("m.france", "^people.person.nationality"))
    trace = Trace()
    found = JoinFinder(films).join_topics(cast, {ent("m.film"): cast, ent("m.france"): french}, trace)
    assert found[0].joins == (Join(2, path("m.france", "^people.person.nationality")),)
    assert films.paths.ends([found[0]])[0].values == (ent("m.ann"),)
    assert [event.kind for event in trace.events()] == ["joined"]


def test_meet_at_the_mediator_before_the_answer(films):
    """Two actors played the queen, but only one of them in the film."""
    cast = candidates(films, path("m.film", *CAST))
    queen = candidates(films, path("m.queen", "^film.performance.character", "film.performance.actor"))
    found = JoinFinder(films).join_topics(cast, {ent("m.film"): cast, ent("m.queen"): queen}, Trace())
    assert found[0].joins == (Join(1, path("m.queen", "^film.performance.character")),)
    assert films.paths.ends([found[0]])[0].values == (ent("m.ann"),)


def test_timeouts_are_recorded(films, monkeypatch):
    def timed_out(self, lookups, **options):
        return [StoreTimeout("too late")] * len(list(lookups))

    cast = candidates(films, path("m.film", *CAST))
    french = candidates(films, path("m.france", "^people.person.nationality"))
    monkeypatch.setattr(Queries, "look_up", timed_out)
    finder, trace = JoinFinder(films), Trace()
    assert finder.join_topics(cast, {ent("m.film"): cast, ent("m.france"): french}, trace) == []
    assert finder.timed_out and "gave_up" in {event.kind for event in trace.events()}


def test_join_respects_selected_entities(films):
    """Only m.other was selected, so Ann, who joins the other topic, is excluded."""
    there = path("m.bob", "^film.performance.actor", "^film.film.starring", *CAST)
    restricted = ((2, (ent("m.other"),)),)
    cast = [replace(item, restricted=restricted) for item in candidates(films, there)]
    french = candidates(films, path("m.france", "^people.person.nationality"))
    partners = {ent("m.bob"): cast, ent("m.france"): french}
    assert JoinFinder(films).join_topics(cast, partners, Trace()) == []
    free = [replace(item, restricted=()) for item in cast]
    assert JoinFinder(films).join_topics(free, partners, Trace())
