"""A graph of films, and runs of Think-on-Graph with scripted replies."""

from __future__ import annotations

import re

import pytest

from kgqa import ask, open_resources
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.opening import open_graph
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing.server import ScriptedServer

NS = "http://rdf.freebase.com/ns/"
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
    place = tmp_path_factory.mktemp("films")
    lines = [" ".join(f'"{p}"' if p.isdigit() else f"<{NS}{p}>" for p in fact.split()) + " ." for fact in FACTS]
    lines += [f'<{NS}{ident}> <{NS}type.object.name> "{name}"@en .' for ident, name in NAMES.items()]
    (place / "films.nt").write_text("\n".join(lines) + "\n")
    load_graph(place / "graph", [place / "films.nt"], schema="freebase")
    with open_graph(place / "graph", cache=Cache(session_cache)) as graph:
        yield graph


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("kgqa.llm.backends.exchange.FIRST_PAUSE", 0.01)


def prompt_kind(messages):
    system, asked = messages[0]["content"], messages[1]["content"]
    if "\nRelations:" in asked:
        return "relations"
    if "\nEntities:" in asked:
        return "entities"
    if "\nTriples:" in asked:
        return "sufficient" if "{No}" in system else "answer"
    return "cot"


class Run:
    def __init__(self, answer, requests):
        self.answer, self.requests = answer, requests
        self.kinds = [prompt_kind(request.messages) for request in requests]
        self.ids = [item.id for item in answer.answers]

    def prompts(self, kind):
        return [r.messages[1]["content"] for r in self.requests if prompt_kind(r.messages) == kind]

    def triples(self, number=-1):
        """Return the triples in one of the prompts that list triples."""
        shown = [prompt for prompt in (r.messages[1]["content"] for r in self.requests) if "\nTriples:" in prompt]
        return shown[number].split("Triples:\n", 1)[1].splitlines() if "Triples:\n" in shown[number] else []

    def listed(self, number=0):
        """Return the entities that one prompt lists for scoring."""
        return re.search(r"^Entities: (.*)$", self.prompts("entities")[number], re.MULTILINE)[1].split("; ")


@pytest.fixture
def preset():
    """The preset that `run` uses; a module may override it."""
    return "as-published"


@pytest.fixture
def run(films, preset):
    """Return `run(question=BORN, relations=..., entities=..., sufficient=..., answer=..., cot=..., **settings) -> Run`.

    A reply is a text, a list whose last item is repeated, or a function of the prompt.
    """

    def run(question=BORN, topics=(), relations=DIRECTOR, entities="Score: 0.9, 0.1", sufficient="{No}. Not yet.",
            answer="I say {nobody}.", cot='{"answers": ["memory"]}', **given):  # fmt: skip
        replies = {
            "relations": relations, "entities": entities, "sufficient": sufficient, "answer": answer, "cot": cot
        }  # fmt: skip

        def respond(messages):
            reply = replies[prompt_kind(messages)]
            if isinstance(reply, list):
                reply = reply.pop(0) if len(reply) > 1 else reply[0]
            return reply(messages[1]["content"]) if callable(reply) else reply

        with ScriptedServer(respond) as server:
            settings = {name.replace("__", "."): value for name, value in given.items()}
            settings = {"ask.method": "tog", "ask.preset": preset, "rank.embeddings": "off", **settings}
            settings["llm.model"] = f"{server.url}#name"
            resources = open_resources(films, settings=resolve(settings))
            try:
                found = ask(question, topics=topics, resources=resources)
            finally:
                resources.models.close()
            assert not server.errors
            return Run(found, list(server.requests))

    return run
