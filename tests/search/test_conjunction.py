"""Joins of paths from several topics: at the answer, at a mediator, or empty."""

from __future__ import annotations

import pytest

from kgqa.errors import StoreTimeout
from kgqa.graph.queries import Queries
from kgqa.model import Candidate, Join
from kgqa.search.conjunction import JoinFinder
from kgqa.trace.trace import Trace

from .conftest import ent, path

PARTS = (("p1", "film", "ann", "queen"), ("p2", "film", "bob", "king"), ("p3", "other", "bob", "queen"))
CAST = ("film.film.starring", "film.performance.actor")
FRENCH = path("m.france", "^people.person.nationality")


@pytest.fixture
def films(small):
    lines = ["m.ann people.person.nationality m.france", "m.bob people.person.nationality m.spain"]
    for part, film, actor, character in PARTS:
        lines += [f"m.{film} film.film.starring m.{part}", f"m.{part} type.object.type film.performance"]
        lines += [f"m.{part} film.performance.actor m.{actor}", f"m.{part} film.performance.character m.{character}"]
    return small(*lines)


def joined(films, *candidates):
    """Join the first path with the others; return what is found, and the trace."""
    trace = Trace()
    partners = {each.path.topic: [each] for each in candidates}
    return JoinFinder(films).join_topics(candidates[:1], partners, trace), trace


def test_meet_at_the_answer(films):
    found, trace = joined(films, Candidate(path("m.film", *CAST)), Candidate(FRENCH))
    assert found[0].joins == (Join(2, FRENCH),)
    assert films.paths.ends([found[0]])[0].values == (ent("m.ann"),)
    assert [event.kind for event in trace.events()] == ["joined"]


def test_meet_at_the_mediator_before_the_answer(films):
    """Two actors played the queen, but only one of them in the film."""
    queen = path("m.queen", "^film.performance.character", "film.performance.actor")
    found, _ = joined(films, Candidate(path("m.film", *CAST)), Candidate(queen))
    assert found[0].joins == (Join(1, path("m.queen", "^film.performance.character")),)
    assert films.paths.ends([found[0]])[0].values == (ent("m.ann"),)


def test_timeouts_are_recorded(films, monkeypatch):
    monkeypatch.setattr(Queries, "look_up", lambda self, every, **options: [StoreTimeout("too late") for _ in every])
    found, trace = joined(films, Candidate(path("m.film", *CAST)), Candidate(FRENCH))
    assert found == [] and "gave_up" in {event.kind for event in trace.events()}


def test_join_respects_selected_entities(films):
    """If only m.other was selected, Ann, who joins the other topic, is excluded."""
    there = path("m.bob", "^film.performance.actor", "^film.film.starring", *CAST)
    restricted = Candidate(there, restricted=((2, (ent("m.other"),)),))
    assert joined(films, Candidate(there), Candidate(FRENCH))[0]
    assert not joined(films, restricted, Candidate(FRENCH))[0]
