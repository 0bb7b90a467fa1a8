"""Questions over a Virtuoso server that caps results at a few rows."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files

import pytest

from kgqa import ask, open_resources
from kgqa.model import Entity, Question
from kgqa.settings.values import resolve
from tests.conftest import SOAK
from tests.virtuoso_server import copied, running_server

CAP = 50
IRI = "http://e/demo"
NS = "http://rdf.freebase.com/ns/"
DEMO = files("kgqa") / "demo"
ROWS = [json.loads(line) for line in (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
QUESTIONS = [
    Question(row["question"], topics=tuple(Entity(NS + topic["id"]) for topic in row["topic_entities"])) for row in ROWS
]


@pytest.fixture(scope="module")
def capped(prepared_folder, tmp_path_factory):
    """The URL of a server with the demo graph and a row cap."""
    folder = tmp_path_factory.mktemp("capped") / "server"
    with running_server(copied(prepared_folder, folder), row_cap=CAP) as server:
        file = server.import_folder / "demo.nt"
        shutil.copyfile(DEMO / "graph.nt", file)
        server.load([file], IRI)
        yield server.url


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """`opened(place) -> Resources` with an empty cache."""
    monkeypatch.setattr("kgqa.graph.names.reading.MIN_PAGE_ROWS", CAP)
    monkeypatch.setattr("kgqa.graph.names.reading.PAGE_ROWS", CAP)
    opened_resources = []

    def opened(place: str | None):
        given = {"rank.embeddings": "off", "explore.mediator_hop": "free", "cache.folder": str(tmp_path / "c")}
        if place:
            given |= {"graph.path": place, "graph.iri": IRI}
        opened_resources.append(open_resources(settings=resolve(given)))
        return opened_resources[-1]

    yield opened
    for resources in opened_resources:
        resources.close()


@pytest.mark.soak
def test_row_cap_gives_the_same_answers_or_an_error_that_names_it(capped, opened):
    whole, cut = opened(None), opened(capped)
    assert cut.graph.tables.relations == whole.graph.tables.relations and len(cut.graph.tables.relations) > CAP
    assert cut.graph.tables.mediators.leads == whole.graph.tables.mediators.leads
    assert (
        cut.graph.tables.inverses == whole.graph.tables.inverses and cut.graph.tables.types == whole.graph.tables.types
    )
    assert not cut.graph.tables.notes
    same = 0
    for question in QUESTIONS if SOAK else QUESTIONS[:8]:
        right, found = ask(question, resources=whole), ask(question, resources=cut)
        if found.status == "failed":
            assert f"row cap of {CAP} rows" in found.reason and "--row-cap" in found.reason
        else:
            assert (found.status, found.answers, found.query_class) == (right.status, right.answers, right.query_class)
            same += 1
    assert same
