"""Settings of the endpoint store."""

from __future__ import annotations

import pytest

from kgqa.errors import PartialResult, SettingsError
from kgqa.graph.detection import EDIT_GRAPHS, named_graphs
from kgqa.graph.endpoint.options import PASSWORD_VARIABLE, EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore, open_endpoint
from kgqa.model import Entity
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing.sparql_server import SparqlServer, table, truth
from tests.graph.scripted_endpoint import QUERY, counting_script


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return an empty working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_settings_and_environment_password_are_used(home, monkeypatch):
    for name, value in {
        "ENDPOINT_PROFILE": "qlever", "ENDPOINT_CONCURRENCY": "3", "ENDPOINT_RATE": "2.5", "ENDPOINT_CONTACT": "a@e.org",
        "ENDPOINT_USER": "u", "ENDPOINT_PASSWORD": "geheim", "ENDPOINT_ROW_CAP": "10000", "ENDPOINT_CACHE": "off",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"KGQA_{name}", value)
    options = EndpointOptions.of(resolve())
    access = options.access
    assert (access.user, access.password, access.contact) == ("u", "geheim", "a@e.org")
    assert (access.concurrency, access.rate) == (3, 2.5)
    assert (options.profile, options.row_cap, options.caches) == ("qlever", 10_000, False)
    assert "geheim" not in repr(options)


def test_file_in_the_working_folder_cannot_redirect_the_password(home, monkeypatch):
    (home / "kgqa.toml").write_text('[graph]\npath = "http://evil.example/sparql"\n')
    assert EndpointOptions.of(resolve()).access.password == ""
    monkeypatch.setenv(PASSWORD_VARIABLE, "geheim")
    with pytest.raises(SettingsError, match="evil.example.*graph=") as caught:
        EndpointOptions.of(resolve())
    assert "geheim" not in str(caught.value)
    monkeypatch.setenv("KGQA_GRAPH_PATH", "http://mine.example/sparql")
    assert EndpointOptions.of(resolve()).access.password == "geheim"


@pytest.mark.parametrize(("count", "own", "fits"), [(90, 10, True), (101, 0, False)])
def test_several_named_graphs_must_be_chosen(tmp_path, count, own, fits):
    """Graphs that unfinished edits have left behind do not hide the others."""
    names = [f"{EDIT_GRAPHS}{number}" for number in range(own)] + [f"http://e/{number}" for number in range(count)]

    def script(request):
        if "?graph" not in request.query:
            return truth(False) if request.query.startswith("ASK") else table(["x"], [])
        most = int(request.query.split("LIMIT")[1])
        return table(["graph"], [[Entity(name)] for name in names[:most]])

    with SparqlServer(script) as server, EndpointStore(server.url, profile="generic") as store:
        if fits:
            assert len(named_graphs(store)) == count
        else:
            with pytest.raises(PartialResult, match="graph_iri="):
                named_graphs(store)


@pytest.mark.parametrize(("options", "requests"), [({}, 1), ({"caches": False}, 2)])
def test_result_cache_can_be_disabled(tmp_path, options, requests):
    with SparqlServer(counting_script({})) as server:
        for _ in range(2):
            endpoint = EndpointOptions(profile="generic", **options)
            with open_endpoint(server.url, endpoint, cache=Cache(tmp_path / "cache"), timeout=5) as store:
                store.select(QUERY)
        assert server.queries.count(QUERY) == requests
