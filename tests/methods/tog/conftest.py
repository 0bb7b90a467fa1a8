"""A graph of films, and runs of Think-on-Graph with scripted replies."""

from __future__ import annotations

import pytest

from kgqa.graph.opening import open_graph
from kgqa.storage.cache import Cache

from ..scripted import loaded, replies_by_kind, run_scripted

NAMES = {
    "m.zor": "Zorblax",
    "m.ann": "Ann Arkin",
    "m.bob": "Bob Bream",
    "m.carl": "Carl Crumb",
    "m.fre": "Freedonia",
    "m.alpha": "Alphaville",
    "m.beta": "Betaville",
    "m.ulm": "Ulmen",
    "m.twin1": "Twinton",
    "m.twin2": "Twinton",
    "m.big": "Bigfilm",
    "m.mid": "Midfilm",
    "m.song": "Hymn of Ulmen",
    "m.rovers": "Ulmen Rovers",
    **{f"m.actor{n:02}": f"Actor {n:02}" for n in range(25)},
}
FACTS = (
    "m.zor film.film.directed_by m.ann",
    "m.zor film.film.directed_by m.bob",
    "m.zor film.film.produced_by m.carl",
    "m.zor film.film.country m.fre",
    "m.ann people.person.place_of_birth m.alpha",
    "m.bob people.person.place_of_birth m.beta",
    "m.carl people.person.lived_in m.twin1",
    "m.carl people.person.lived_in m.twin2",
    *(f"m.big film.film.actor m.actor{n:02}" for n in range(25)),
    *(f"m.mid film.film.actor m.actor{n:02}" for n in range(19)),
    "m.song music.anthem.use g.x1",
    "g.x1 music.anthem_use.country m.fre",
    "m.rovers sports.team.captains m.cap1",
    "m.rovers sports.team.captains m.cap2",
    "m.cap1 sports.captaincy.captain m.bob",
    "m.cap2 sports.captaincy.captain m.ann",
    "m.cap1 sports.captaincy.from 1988",
    "m.ann people.person.spouse_s m.marriage",
    "m.carl people.person.spouse_s m.marriage",
    "m.marriage people.marriage.spouse m.ann",
    "m.marriage people.marriage.spouse m.carl",
    "m.marriage people.marriage.from 1988",
    "m.cap2 sports.captaincy.from 1993",
)
BORN = "Where was the director of Zorblax born?"
DIRECTOR = "1. {film.film.directed_by (Score: 0.6)}: it is.\n2. {film.film.country (Score: 0.3)}: perhaps."
BIRTH = "1. {people.person.place_of_birth (Score: 1.0)}: that is asked."


@pytest.fixture(scope="module")
def films(tmp_path_factory, session_cache):
    folder = loaded(tmp_path_factory.mktemp("films"), FACTS, NAMES)
    with open_graph(folder, cache=Cache(session_cache)) as graph:
        yield graph


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("kgqa.llm.backends.exchange.FIRST_PAUSE", 0.01)


@pytest.fixture
def preset():
    """The preset that `run` uses; a module may override it."""
    return "as-published"


@pytest.fixture
def run(films, preset):
    """`run(question=BORN, relations=..., entities=..., sufficient=..., answer=..., cot=..., **settings) -> Run`."""

    def run(question=BORN, topics=(), relations=DIRECTOR, entities="Score: 0.9, 0.1", sufficient="{No}. Not yet.",
            answer="I say {nobody}.", cot='{"answers": ["memory"]}', **given):  # fmt: skip
        replies = {
            "relations": relations, "entities": entities, "sufficient": sufficient, "answer": answer, "cot": cot
        }  # fmt: skip
        given = {"ask__method": "tog", "ask__preset": preset, **given}
        return run_scripted(replies_by_kind(replies), question, graph=films, topics=topics, **given)

    return run
