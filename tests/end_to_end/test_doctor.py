"""`kgqa doctor` on the demo graph, on servers and with a model."""

from __future__ import annotations

import gzip
import json
import signal
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kgqa.testing.loopback import LoopbackServer
from kgqa.testing.server import ScriptedServer
from tests.doctor.subjects import NAMES
from tests.virtuoso_server import needs_virtuoso, running_server

QUICK = {"KGQA_RANK_EMBEDDINGS": "off"}
GRAPH = "urn:test:doctor"


def verdicts(out: str) -> tuple[dict, dict[str, dict]]:
    """Return the JSON object and its checks by name."""
    found = json.loads(out)
    checks = {check["name"]: check for check in found["checks"]}
    assert list(checks) == list(NAMES)
    return found, checks


@pytest.fixture(scope="module")
def freebase(tmp_path_factory, data_folder):
    """The URL of a Virtuoso server with the fast slice of Freebase in a graph."""
    needs_virtuoso()
    with running_server(tmp_path_factory.mktemp("doctor") / "server") as server:
        with gzip.open(data_folder / "freebase_fast" / "kg.nt.gz") as source:
            file = server.import_folder / "kg.nt"
            file.write_bytes(source.read())
        server.load([file], GRAPH)
        yield server.url


@pytest.mark.parametrize(("relation", "known"), [("people.person.spouse_s", True), ("own.married", False)])
def test_load_and_doctor_say_whether_mediators_are_recognised(kgqa, tmp_path, relation, known):
    ns, folder = "http://rdf.freebase.com/ns/", tmp_path / "graph"
    facts = [f"<{ns}m.ann> <{ns}{relation}> <{ns}m.wedding> .", f'<{ns}m.ann> <{ns}type.object.name> "Ann"@en .']
    (tmp_path / "slice.nt").write_text("\n".join(facts) + "\n")
    done = kgqa("graph", "load", tmp_path / "slice.nt", "--into", folder)
    assert done.returncode == 0, done.err
    assert ("Warning: Mediators cannot be recognised: " in done.out) != known
    again = json.loads(kgqa("graph", "load", tmp_path / "slice.nt", "--into", folder, "--json").out)
    assert len(again["warnings"]) == (not known)
    _, checks = verdicts(kgqa("doctor", "--graph", folder, "--json", **QUICK).out)
    check = checks["mediators"]
    assert check["verdict"] == ("ok" if known else "warning")
    assert ("its list of mediators" in check["found"]) == known
    assert ("schema file" in check["remedy"]) != known


class TestDemo:
    def test_text_output(self, kgqa):
        done = kgqa("doctor", COLUMNS="100", **QUICK)
        assert done.returncode == 0 and done.err == ""
        assert "\ntriples            ok       9,064 triples, fingerprint e6fae73a339448b5.\n" in done.out
        assert "An evaluation on this graph can be trusted: " in done.out and "FAILED" not in done.out
        assert all(len(line) <= 100 for line in done.out.splitlines() if "/" not in line)

    def test_json_output(self, kgqa):
        done = kgqa("doctor", "--json", **QUICK)
        found, checks = verdicts(done.out)
        assert (done.returncode, found["trusted"], found["complete"]) == (0, True, True)
        assert found["graph"]["fingerprint"] == "e6fae73a339448b5" and found["graph"]["triples"] == 9064
        assert found["graph"]["schema"] == "freebase" and found["graph"]["iris"] == []
        for name in ("reachable", "schema", "labels", "mediators", "full-text search", "latency", "time limit"):
            assert checks[name]["verdict"] == "ok", checks[name]
        assert checks["known entities"]["verdict"] == checks["model"]["verdict"] == "skipped"
        assert set(checks["latency"]) == {"name", "verdict", "found", "remedy"}
        answer = json.loads(kgqa("ask", "Who directed the film Parasite?", "--json", **QUICK).out)
        assert answer["graph"] == found["graph"]

    def test_schema_that_does_not_fit(self, kgqa):
        done = kgqa("doctor", "--schema", "wikidata", "--json", **QUICK)
        found, checks = verdicts(done.out)
        assert (done.returncode, found["trusted"], checks["schema"]["verdict"]) == (1, False, "failed")
        assert checks["schema"]["remedy"] == "If the graph is Freebase, add --schema freebase."
        assert checks["labels"]["verdict"] == "skipped"

    @pytest.mark.parametrize(
        "arguments, message",
        [
            (["--graph", "http://me:secret@h.example/sparql"], "must not contain a user, password"),
            (["--graph", "http:///sparql"], "and name a host"),
            (["--profile", "nothing"], "--profile"),
            (["--graph", ""], "--graph is empty"),
            (["--graph", " "], "--graph is empty"),
            (["--nothing"], "--nothing"),
        ],
    )
    def test_usage_errors(self, kgqa, arguments, message):
        done = kgqa("doctor", *arguments, **QUICK)
        assert done.returncode == 2 and message in done.err and "secret" not in done.err

    def test_ctrl_c_prints_what_is_known(self, started):
        requested = threading.Event()
        server = LoopbackServer(lambda *request: requested.set() or server.wait(60))
        process = started("doctor", "--json", "--graph", f"http://127.0.0.1:{server.port}/sparql")
        assert requested.wait(30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        server.close()
        found, checks = verdicts(out.decode())
        assert process.returncode == 130 and b"Stopped" in err and b"Traceback" not in err
        assert (found["trusted"], found["complete"]) == (False, False)
        assert {check["found"] for check in checks.values()} == {"Stopped before this check."}


class TestModel:
    """The model is checked next to a missing graph, which is fast."""

    GRAPH = ("--graph", "nowhere")

    def test_model_checks(self, kgqa):
        with ScriptedServer(lambda messages: "B", constrains="structured_outputs") as server:
            done = kgqa("doctor", *self.GRAPH, "--llm", server.url, "--json", **QUICK)
            assert server.calls == 5
        _, checks = verdicts(done.out)
        assert done.returncode == 1 and checks["reachable"]["verdict"] == "failed"
        assert checks["model"]["found"].startswith("scripted answered 5 of 5 calls.")
        assert checks["choice mode"]["found"].startswith("structured_outputs")
        assert "5 calls" in checks["model concurrency"]["found"]

    def test_no_model_sends_no_request(self, kgqa):
        with ScriptedServer(lambda messages: "B") as server:
            done = kgqa("doctor", *self.GRAPH, "--llm", server.url, "--no-model", "--json", **QUICK)
            assert server.calls == server.listings == 0
        assert verdicts(done.out)[1]["model"] == {
            "name": "model",
            "verdict": "skipped",
            "found": "Left out on request.",
            "remedy": "",
        }

    @pytest.mark.slow
    def test_summary_names_unchecked_model(self, kgqa):
        done = kgqa("doctor", "--llm", "http://127.0.0.1:9/v1", "--no-model", **QUICK)
        assert done.returncode == 0
        assert "\nAn evaluation on this graph can be trusted, but the language model was not checked: " in done.out
        assert "can be trusted: " in kgqa("doctor", "--no-model", **QUICK).out

    def test_method_without_its_model(self, kgqa):
        done = kgqa("doctor", *self.GRAPH, "--method", "tog", COLUMNS="120", **QUICK)
        assert done.returncode == 1 and "FAILED   The method tog needs a language model" in done.out


@pytest.mark.server
class TestVirtuoso:
    def test_working_server(self, kgqa, freebase):
        done = kgqa("doctor", "--graph", freebase, "--graph-iri", GRAPH, "--json", **QUICK)
        found, checks = verdicts(done.out)
        assert done.returncode == 0, done.out
        assert found["trusted"]
        assert found["graph"]["place"] == freebase and found["graph"]["iris"] == [GRAPH]
        assert found["graph"]["triples"] > 200_000 and found["graph"]["fingerprint"].startswith("remote-")
        assert checks["server"]["found"].startswith("Virtuoso/"), checks["server"]
        for name in ("reachable", "graph", "schema", "full-text search", "time limit", "update rights"):
            assert checks[name]["verdict"] == "ok", checks[name]
        assert checks["known entities"]["found"].startswith("Found ")
        assert "p50/p95 over" in checks["latency"]["found"]

    def test_wrong_graph_iri(self, kgqa, freebase):
        done = kgqa("doctor", "--graph", freebase, "--graph-iri", "urn:test:no-such-graph", COLUMNS="200", **QUICK)
        assert done.returncode == 1
        assert "graph              FAILED   No triples in <urn:test:no-such-graph>." in done.out
        assert f"<{GRAPH}>" in done.out and "--graph-iri IRI" in done.out

    def test_server_that_requires_a_login(self, kgqa, freebase):
        done = kgqa("doctor", "--graph", freebase.replace("/sparql", "/sparql-auth"), COLUMNS="200", **QUICK)
        assert done.returncode == 1 and "reachable          FAILED" in done.out
        assert "401" in done.out and "KGQA_ENDPOINT_PASSWORD" in done.out


def test_web_server_without_sparql(kgqa, tmp_path):
    class QuietHandler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    (tmp_path / "index.html").write_text("<h1>Welcome</h1>")
    with ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: QuietHandler(*a, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        found, checks = verdicts(kgqa("doctor", "--graph", url, "--json", **QUICK).out)
        server.shutdown()
    assert not found["trusted"] and found["graph"] is None
    assert checks["reachable"]["verdict"] == "failed" and "web page" in checks["reachable"]["found"]
    assert {check["verdict"] for name, check in checks.items() if name in NAMES[1:17]} == {"skipped"}
