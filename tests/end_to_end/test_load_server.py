"""`kgqa graph load --into URL`: in bulk into a managed server, by updates into any other."""

from __future__ import annotations

import itertools
import json
import signal
import time
from pathlib import Path

import pytest

from tests.rdf_samples import TURTLE

RDFS = "http://www.w3.org/2000/01/rdf-schema#label"
LINES = [
    f'<http://e/{n}> <http://e/p> <http://e/{n + 1}> .\n<http://e/{n}> <{RDFS}> "Thing {n}"@en .' for n in range(20)
]
_graphs = itertools.count()


@pytest.fixture
def graph() -> str:
    return f"urn:cli:{next(_graphs)}"


@pytest.fixture
def bulk(kgqa, virtuoso_server):
    """Run `kgqa` with the server as the one it manages."""
    folder = str(virtuoso_server.folder.path)
    return lambda *arguments, **more: kgqa(*arguments, **{"KGQA_VIRTUOSO_FOLDER": folder, **more})


@pytest.fixture
def elsewhere(kgqa, virtuoso_server, tmp_path):
    """Run `kgqa` with the server as one it does not manage, with update rights."""
    password = virtuoso_server.allow_updates("writer").read_text().strip()
    settings = {"KGQA_VIRTUOSO_FOLDER": str(tmp_path / "none"), "KGQA_ENDPOINT_USER": "writer"}

    def run(*arguments, password=password, **more):
        return kgqa(*arguments, **{**settings, "KGQA_ENDPOINT_PASSWORD": password, **more})

    return run


@pytest.fixture
def data(tmp_path) -> Path:
    (tmp_path / "data.nt").write_text("\n".join(LINES) + "\n")
    return tmp_path / "data.nt"


@pytest.mark.parametrize("fixture_name", ["bulk", "elsewhere"])
def test_load_info_search_and_load_again(fixture_name, request, data, graph, virtuoso_server, tmp_path):
    run, url = request.getfixturevalue(fixture_name), virtuoso_server.url
    done = run("graph", "load", data, "--into", url, "--graph-iri", graph)
    assert done.returncode == 0, done.err
    first, second, names_line, third = done.out.splitlines()
    assert first.startswith("40 triples added from 40 lines in ") and first.endswith(f"; <{graph}> now has 40.")
    names = " Names indexed: 20." if fixture_name == "bulk" else ""
    assert "subjects have a name (100%)" in names_line
    assert second.startswith(f"Schema: RDF with labels.{names} Fingerprint: remote-")
    assert third == f'Ask it: kgqa ask "..." --graph {url} --graph-iri {graph}'
    again = json.loads(run("graph", "load", data, "--into", url, "--graph-iri", graph, "--json").out)
    assert (again["added"], again["triples"], again["graph_iri"], again["bulk"]) == (
        0,
        40,
        graph,
        fixture_name == "bulk",
    )
    info = json.loads(run("graph", "info", url, "--graph-iri", graph, "--json").out)
    assert (info["triples"], info["fingerprint"]) == (40, again["fingerprint"])
    found = run("graph", "search", "thing 7", "--graph", url, "--graph-iri", graph)
    assert "Thing 7" in found.out, found.err
    # cached results of the earlier graph are not used
    (tmp_path / "more.ttl").write_text(TURTLE)
    assert run("graph", "load", tmp_path / "more.ttl", "--into", url, "--graph-iri", graph).returncode == 0
    after = json.loads(run("graph", "info", url, "--graph-iri", graph, "--json").out)
    assert after["triples"] > info["triples"] and after["relations"] > info["relations"]
    assert after["fingerprint"] != info["fingerprint"]


@pytest.mark.parametrize("fixture_name", ["bulk", "elsewhere"])
def test_malformed_lines(fixture_name, request, data, graph, virtuoso_server):
    run, url = request.getfixturevalue(fixture_name), virtuoso_server.url
    with open(data, "a") as file:
        file.write("non\x1bsense\n")
    done = run("graph", "load", data, "--into", url, "--graph-iri", graph)
    assert done.returncode == 1 and "data.nt, line 41: " in done.err and "--on-error skip" in done.err
    assert virtuoso_server.sql(f"sparql select count(*) from <{graph}> where {{ ?s ?p ?o }}") == [("0",)]
    done = run("graph", "load", data, "--into", url, "--graph-iri", graph, "--on-error", "skip")
    assert done.returncode == 0 and "1 malformed line left out:\n  data.nt, line 41: " in done.out
    assert "\x1b" not in done.out + done.err


def test_default_graph_iri(bulk, data, virtuoso_server, prepared_folder, tmp_path):
    from tests.virtuoso_server import copied, running_server

    with running_server(copied(prepared_folder, tmp_path / "own")) as server:
        settings = {"KGQA_VIRTUOSO_FOLDER": str(server.folder.path)}
        done = bulk("graph", "load", data, "--into", server.url, **settings)
        assert "Loading into the graph <urn:kgqa:graph>. To choose another graph, use --graph-iri." in done.err
        assert "<urn:kgqa:graph> now has 40." in done.out
        assert json.loads(bulk("graph", "info", server.url, "--json", **settings).out)["triples"] == 40
        bulk("graph", "load", data, "--into", server.url, "--graph-iri", "urn:other", **settings)
        done = bulk("graph", "load", data, "--into", server.url, **settings)
        assert done.returncode == 1 and "several graphs" in done.err and "urn:kgqa:graph, urn:other" in done.err


def test_ctrl_c_before_a_group_is_loaded(bulk, started, virtuoso_server, graph, tmp_path, monkeypatch):
    """There is nothing to resume, and the files can be loaded again."""
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(virtuoso_server.folder.path))
    count = 60_000
    (tmp_path / "big.nt").write_text(
        "".join(f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> .\n" for n in range(count))
    )
    process = started("graph", "load", "big.nt", "--into", virtuoso_server.url, "--graph-iri", graph)
    chunks = virtuoso_server.import_folder / "graph-load"
    deadline = time.monotonic() + 60
    while not list(chunks.glob("*.nt")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130 and "Traceback" not in message and "Stopped." in message
    done = bulk("graph", "load", "--resume", "--into", virtuoso_server.url)
    assert done.returncode == 1 and "There is no interrupted load to resume" in done.err
    done = bulk("graph", "load", "big.nt", "--into", virtuoso_server.url, "--graph-iri", graph)
    assert done.returncode == 0 and f"now has {count:,}" in done.out, done.err
    done = bulk("graph", "load", "--discard", "--into", virtuoso_server.url)
    assert done.returncode == 0 and "There is no interrupted load" in done.err


class TestErrors:
    def test_wrong_password_is_not_shown(self, elsewhere, data, graph, virtuoso_server):
        done = elsewhere(
            "graph", "load", data, "--into", virtuoso_server.url, "--graph-iri", graph, password="sesame-9"
        )
        assert done.returncode == 1 and "refuses access" in done.err and "KGQA_ENDPOINT_PASSWORD" in done.err
        assert "sesame" not in done.out + done.err

    @pytest.mark.parametrize("option", [("--schema", "rdfs"), ("--walks", "free"), ("--mediator-hop", "free")])
    def test_options_for_folders_only(self, kgqa, data, option):
        done = kgqa("graph", "load", data, "--into", "http://127.0.0.1:1/sparql", *option)
        assert done.returncode == 2 and "cannot be stored on a server" in done.err and option[0] in done.err

    def test_ctrl_c_before_the_load(self, kgqa, data, monkeypatch):
        """An interrupt without a note on what is loaded ends the message after "Stopped."."""

        def interrupt(*_: object, **options: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("kgqa.cli.graph.load.load_into_url", interrupt)
        done = kgqa("graph", "load", data, "--into", "http://127.0.0.1:1/sparql")
        assert done.returncode == 130 and "kgqa: Stopped.\n" in done.err

    def test_updates_cannot_be_resumed(self, elsewhere, virtuoso_server):
        for option_name in ("--resume", "--discard"):
            done = elsewhere("graph", "load", option_name, "--into", virtuoso_server.url)
            assert done.returncode == 1 and "Load the files again; triples already loaded do no harm" in done.err

    @pytest.mark.parametrize("arguments, code, message", [
        (["--into", "http://127.0.0.1:1/sparql", "--graph-iri", "urn:g"], 1, "Nothing answers at http://127.0.0.1:1/sparql"),
        (["--into", "http://127.0.0.1:1/sparql", "--graph-iri", "no iri"], 1, "is not an absolute IRI"),
        (["--into", "http://u:p@127.0.0.1:1/sparql"], 2, "must not contain a user, password"),
        (["--into", "folder", "--graph-iri", "urn:g"], 2, "--graph-iri is only for servers"),
        (["--into", "http://127.0.0.1:1/sparql", "--resume"], 2, "--resume continues with the files of the interrupted load"),
    ])  # fmt: skip
    def test_invalid_arguments(self, kgqa, data, arguments, code, message):
        done = kgqa("graph", "load", data, *arguments)
        assert done.returncode == code and message in done.err
