"""Corpus folders are opened like graph folders: views by name, schemas, and what a strange folder cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgqa.errors import SettingsError, StoreUnavailable
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.endpoint.options import PASSWORD_VARIABLE, Access, EndpointOptions
from kgqa.graph.opening import open_graph, open_graph_of, open_store
from kgqa.model import Entity
from kgqa.settings.keys import set_key
from kgqa.settings.values import resolve
from kgqa.storage.corpus_file import CorpusFile
from kgqa.testing.sparql_server import SparqlServer
from tests.graph.in_process_loads import in_process_loads

FACTS, HYPER = "urn:kgqa:corpus:facts", "urn:kgqa:corpus:hyper"
LINES = [f"<urn:a> <urn:knows> <urn:b> <{FACTS}> .", f"<urn:h> <urn:kgqa:corpus:party> <urn:b> <{HYPER}> ."]
VIEWS = {"facts": (FACTS,), "hyper": (HYPER,)}
ABROAD = "https://sparql.example.org/sparql"


@pytest.fixture
def folder(tmp_path) -> Path:
    """Make a corpus folder with a graph in two views."""
    made = tmp_path / "corpus"
    made.mkdir()
    (tmp_path / "data.nq").write_text("\n".join(LINES) + "\n")
    with in_process_loads():
        load_graph(made / "graph", [tmp_path / "data.nq"])
    write(made)
    return made


def write(folder: Path, **values) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "corpus.json").write_text(CorpusFile(**{"views": VIEWS, **values}).text())
    return folder


def settings(**given):
    return resolve(given, environment={}, user_file=Path("/nowhere"))


def test_views_by_name(folder):
    for view, graphs in (((), [FACTS]), (["hyper"], [HYPER]), (["hyper", "facts"], [HYPER, FACTS]), ([FACTS], [FACTS])):
        with open_graph(folder, view=view) as graph:
            assert [each.iri for each in graph.view] == graphs and graph.schema.name == "corpus"
    nodes = {Entity("urn:h"), Entity("urn:a")}
    with open_graph_of(settings(view="facts, hyper"), folder) as graph:
        assert graph.paths.present(nodes) == nodes
    with open_graph_of(settings(graph_iri=HYPER, graph_path=folder)) as graph:
        assert graph.paths.present(nodes) == {Entity("urn:h")}
    with open_store(folder) as store:
        assert store.triples_of([FACTS]) == 1
    with pytest.raises(SettingsError, match="has no view 'text'"):
        open_graph(folder, view=["text"])
    with pytest.raises(SettingsError, match="both choose graphs"):
        open_graph_of(settings(view="hyper", graph_iri=HYPER), folder)
    with pytest.raises(SettingsError, match="is not a corpus folder"):
        open_graph_of(settings(view="hyper"), folder / "graph")


def test_schema_of_the_folder(folder):
    (folder / "own.toml").write_text('name = "own"')
    write(folder, schema="own.toml")
    for schema, name in ((None, "own"), ("rdfs", "rdfs")):
        with open_graph(folder, schema=schema) as graph:
            assert graph.schema.name == name


@pytest.mark.parametrize(
    "data",
    [
        b"{", b"\xff", b"[" * 10_000, b" " * (1 << 21), [], {"format": 2}, {"graph": "../elsewhere"}, {"graph": "/etc"}, {"graph": "graph/../.."}, {"graph": "file:///etc"},
        {"schema": "../secret.toml"}, {"schema": "/etc/x.toml"}, {"schema": "own.txt"}, {"views": ["facts"]},
        {"views": {"facts": []}}, {"views": {"facts": ["not an iri"]}}, {"views": {"Facts!": [FACTS]}},
        {"views": {"facts": ["urn:x> <y"]}}, {"views": {"facts": FACTS}}, {"graph": ["graph"]},
        {"folder": "/etc"}, {"beside": {}}, {"vectors": {"uri": "/etc"}}, {"extractor": "rules"}, {"default": "facts"},
    ],
)  # fmt: skip
def test_wrong_files_are_refused(folder, data):
    data = {"format": 1, "views": {"facts": [FACTS]}, **data} if isinstance(data, dict) else data
    (folder / "corpus.json").write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    with pytest.raises(StoreUnavailable, match="corpus.json cannot be read"):
        open_graph(folder)


def test_a_folder_that_names_a_server(tmp_path):
    with SparqlServer(()) as server:
        folder = write(tmp_path / "corpus", graph=server.url)
        options = EndpointOptions(access=Access(user="me", password="secret"), profile="generic", caches=False)
        with open_graph(folder, endpoint=options) as graph:
            assert graph.store.location == server.url and graph.schema.name == "corpus"


def test_a_folder_cannot_have_a_login_sent_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = write(tmp_path / "corpus", graph=ABROAD)
    for access in (Access(user="me"), Access(password="secret")):
        with pytest.raises(SettingsError, match="Your login is not sent to https://sparql.example.org/sparql"):
            open_graph(folder, endpoint=EndpointOptions(access=access))
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    with pytest.raises(SettingsError, match="kgqa keys set"):
        open_graph_of(settings(), folder)
    set_key(ABROAD, "secret")
    with open_graph_of(settings(schema="corpus"), folder) as graph:
        assert graph.store.location == ABROAD
    monkeypatch.delenv(PASSWORD_VARIABLE)
    for host in ("localhost", "127.0.0.1", "[::1]", "127.1.2.3"):
        EndpointOptions(access=Access(user="me")).check_login(CorpusFile(folder, graph=f"http://{host}:8890/sparql"))
    for host in ("localhost.evil.org", "127.0.0.1.evil.org", "10.0.0.1", "sparql.example.org"):
        with pytest.raises(SettingsError, match="not sent"):
            EndpointOptions(access=Access(user="me")).check_login(CorpusFile(folder, graph=f"http://{host}/"))


def test_documents_are_not_written_to_a_server_that_only_the_folder_names(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = write(tmp_path / "corpus", graph=ABROAD)
    with pytest.raises(SettingsError, match="Nothing is written to https://sparql.example.org/sparql"):
        EndpointOptions().check_login(CorpusFile(folder, graph=ABROAD), writing=True)
    set_key(ABROAD, "secret")
    EndpointOptions().check_login(CorpusFile(folder, graph=ABROAD), writing=True)
    EndpointOptions().check_login(CorpusFile(folder, "http://127.0.0.1:8890/sparql"), writing=True)
