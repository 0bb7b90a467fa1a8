"""Questions over a SPARQL server that sometimes sends damaged replies."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from importlib.resources import files

import pyoxigraph as ox
import pytest

from kgqa import ask, open_resources
from kgqa.model import Answer, Entity, Question
from kgqa.settings.values import resolve
from kgqa.testing.sparql_server import SparqlReply, SparqlRequest, SparqlServer
from tests.conftest import SOAK

NS = "http://rdf.freebase.com/ns/"
DEMO = files("kgqa") / "demo"
ROWS = [json.loads(line) for line in (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
PARASITE = Question("Who directed the film Parasite?")


class DemoServer:
    """The demo graph behind HTTP; `damage` turns a correct reply into the reply that is sent."""

    def __init__(self) -> None:
        self._store = ox.Store()
        self._store.load((DEMO / "graph.nt").read_bytes(), format=ox.RdfFormat.N_TRIPLES)
        self.damage: Callable[[str, bytes], SparqlReply] = lambda query, body: SparqlReply(body=body)
        self.sent: list[str] = []
        self._server = SparqlServer(self._reply)
        self.url, self.close = self._server.url, self._server.close

    def _reply(self, request: SparqlRequest) -> SparqlReply:
        self.sent.append(request.query)
        body = self._store.query(request.query).serialize(format=ox.QueryResultsFormat.JSON)
        return self.damage(request.query, body)


def truncated(body: bytes) -> SparqlReply:
    return SparqlReply(body=body[: len(body) * 2 // 3])


def broken_gzip(body: bytes) -> SparqlReply:
    packed = bytearray(gzip.compress(body))
    packed[len(packed) // 2 :] = b"\0" * (len(packed) - len(packed) // 2)
    return SparqlReply(body=bytes(packed), headers=(("Content-Encoding", "gzip"),))


@pytest.fixture(scope="module")
def server():
    server = DemoServer()
    yield server
    server.close()


@pytest.fixture
def answers(server, tmp_path):
    """`answers(questions, damage) -> list[Answer]`, with all caches off."""

    def answers(questions, damage=None, **given) -> list[Answer]:
        settings = resolve(
            {
                "graph.path": server.url,
                "rank.embeddings": "off",
                "endpoint.cache": "off",
                "cache.folder": str(tmp_path / "c"),
                "explore.mediator_hop": "free",
                **given,
            }
        )
        with open_resources(settings=settings) as resources:
            resources.graph.tables.prepare()
            resources.graph.names
            if damage:
                server.damage = damage
            try:
                return [ask(question, resources=resources) for question in questions]
            finally:
                server.damage = lambda query, body: SparqlReply(body=body)

    return answers


def reports_damage(answer: Answer) -> bool:
    """Whether the answer reports that something went wrong."""
    notes = " ".join(answer.notes)
    return answer.status == "failed" or (
        answer.approximate and ("may be missing" in notes or "Skipped a better path" in notes)
    )


def values(answer: Answer) -> set:
    return {item.value for item in answer.answers}


def test_path_with_damaged_answers_is_reported_as_skipped(answers):
    (whole,) = answers([PARASITE])

    def best_path(query: str, body: bytes) -> SparqlReply:
        is_best_path = "?answer" in query and "film.film.directed_by" in query
        return truncated(body) if is_best_path else SparqlReply(body=body)

    (found,) = answers([PARASITE], best_path)
    assert found.status == "answered" and values(found) != values(whole)
    assert found.approximate and any(
        "Skipped a better path" in note and "truncated or damaged" in note for note in found.notes
    )


@pytest.mark.parametrize("count", ["many", "-1", "7.5", "", "9" * 400])
def test_count_that_is_not_a_whole_number(answers, count):
    def damage(query: str, body: bytes) -> SparqlReply:
        return SparqlReply(body=re.sub(rb'"value":"[0-9]+"', f'"value":"{count}"'.encode(), body))

    (found,) = answers([PARASITE], damage)
    assert found.status == "failed" and "not a whole number" in found.reason and len(found.reason) < 300


@pytest.mark.soak
def test_occasional_damage_is_retried_or_reported(answers):
    """Fewer questions are asked with a larger share of damage, unless there is time for all of them."""
    share, rows = (0.02, ROWS) if SOAK else (0.2, ROWS[:6])
    questions = [
        Question(row["question"], topics=tuple(Entity(NS + topic["id"]) for topic in row["topic_entities"]))
        for row in rows
    ]
    chance = random.Random(14)

    def sometimes(query: str, body: bytes) -> SparqlReply:
        if chance.random() >= share:
            return SparqlReply(body=body)
        return chance.choice([truncated, broken_gzip])(body)

    right = answers(questions)
    for before, after in zip(right, answers(questions, sometimes)):
        assert (values(after) == values(before) and after.status == before.status) or reports_damage(after), after
