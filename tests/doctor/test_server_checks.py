"""Checks of faulty servers on the loopback, and of a Virtuoso server at its limits."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pyoxigraph as ox
import pytest

from kgqa.doctor.subject import REASONS
from kgqa.graph.endpoint.options import Access
from kgqa.model import Entity
from kgqa.testing import sparql_server as scripted
from kgqa.testing.loopback import LoopbackServer, Response
from kgqa.testing.sparql_server import SparqlReply, table, truth
from tests.doctor.subjects import examined, finding_of, server_subject
from tests.sparql_server import RESULTS, TRIPLES, SparqlServer
from tests.virtuoso_server import needs_virtuoso, running_server


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch):
    """Measure for a fraction of a second instead of seconds."""
    monkeypatch.setattr("kgqa.doctor.graph_checks.EXPLORING_SECONDS", 0.3)


@pytest.fixture
def serve():
    """`serve(**options)` starts a server on the loopback."""
    with ExitStack() as opened:

        def serve(**options):
            server = SparqlServer(**options)
            opened.callback(server.close)
            return server

        yield serve


def check(name: str, url: str, **options):
    with server_subject(url, **options) as subject:
        return finding_of(name, subject)


class TestRowCap:
    @pytest.mark.parametrize(
        "cap, known, verdict, word",
        [
            (1_000, None, "failed", "silently truncates results at 1,000 rows"),
            (0, None, "ok", "No cap reached: 14,400 rows arrived."),
        ],
    )
    def test_row_cap(self, serve, cap, known, verdict, word):
        finding = check("row cap", serve(cap=cap).url, triples=TRIPLES, row_cap=known)
        assert finding.verdict == verdict and word in finding.found
        assert verdict != "failed" or finding.remedy == "Set endpoint.row_cap = 1000."

    def test_late_rows(self, serve, monkeypatch):
        monkeypatch.setattr("kgqa.doctor.server_checks.MEASURED_SECONDS", 0.2)
        server = serve(busy=lambda query: 60.0 if "LIMIT 10" in query else 0.0)
        finding = check("row cap", server.url, triples=400)
        assert finding.verdict == "warning" and "keeps the server busy" in finding.remedy


@pytest.mark.parametrize("triples, verdict", [(TRIPLES, "ok"), (None, "ok"), (99, "skipped")])
def test_time_limit(serve, monkeypatch, triples, verdict):
    monkeypatch.setattr("kgqa.doctor.server_checks.SLOW_SECONDS", 0.2)
    assert check("time limit", serve().url, triples=triples).verdict == verdict
    finding = check("time limit", serve(slow="finished").url, triples=TRIPLES)  # a partial count, given as finished
    assert finding.verdict == "failed" and "returned 4711. That is too few" in finding.found and finding.remedy


class TestUpdates:
    @pytest.mark.parametrize("view", [(), (Entity("http://e/graph"),)])
    def test_updates_without_login_are_accepted(self, serve, view):
        server = serve(writable=True)
        before = set(server.store)
        finding = check("update rights", server.url, view=view)
        assert finding.verdict == "warning" and "Anybody" in finding.found and finding.remedy
        assert set(server.store) == before and len(server.updates) == 1
        assert all(graph.iri in server.updates[0] for graph in view)

    @pytest.mark.parametrize(
        "reply, verdict",
        [
            (SparqlReply(400, b"No such thing.", "text/plain"), "ok"),
            (SparqlReply(500, b"SR186: No permission to execute SPARQL UPDATE", "text/plain"), "ok"),
            (SparqlReply(503), "skipped"),
            (SparqlReply(0), "skipped"),
        ],
    )
    def test_refused_and_failed_updates(self, reply, verdict):
        with scripted.SparqlServer(lambda request: reply if request.update else truth(True)) as server:
            finding = check("update rights", server.url)
        assert finding.verdict == verdict
        assert finding.found.startswith("An update could not be tried: ") == (verdict == "skipped")


@pytest.mark.parametrize("every, verdict", [(10_000, "ok"), (2, "warning"), (1, "failed")])
def test_concurrency(every, verdict):
    count = iter(range(1, 10_000))
    reply = lambda request: SparqlReply(503) if next(count) % every == 0 else truth(True)  # noqa: E731
    with scripted.SparqlServer(reply) as server:
        access = Access(concurrency=3, patience=0.0)
        finding = check("concurrency", server.url, profile="generic", access=access)
    assert finding.verdict == verdict and finding.found.startswith("3 threads got ")
    assert (" errors. One of them: " in finding.found) == bool(finding.remedy) == (verdict != "ok")


class TestUnreachable:
    @pytest.mark.parametrize(
        "response, found, remedy",
        [
            (Response(200, b"<html>Hello</html>", "text/html"), "web page", "Check the address"),
            (Response(401, b"", "text/plain"), "401", "KGQA_ENDPOINT_PASSWORD"),
            (Response(404, b"", "text/html"), "404", "/sparql"),
            (Response(301, b"", "text/html", headers=(("Location", "http://new.example/"),)), "new.example", "address"),
            (Response(500, b"no\x1b[31m way", "text/plain"), "500", "SPARQL"),
            (Response(dropped=True), "", "."),
            (Response(200, b'{"boolean": tr', RESULTS), "truncated or damaged", "."),
        ],
    )
    def test_faulty_replies_of_the_address(self, tmp_path, response, found, remedy):
        server = LoopbackServer(lambda method, path, headers, body: response)
        health, findings = examined(tmp_path, f"http://127.0.0.1:{server.port}/sparql")
        server.close()
        reachable = findings.pop("reachable")
        assert reachable.verdict == "failed" and found in reachable.found and remedy in reachable.remedy
        assert {finding.verdict for finding in findings.values()} == {"skipped"}
        assert findings["latency"].found == REASONS["store"] and health.graph is None and not health.trusted

    def test_no_server_no_answer_and_no_folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr("kgqa.doctor.server_checks.MEASURED_SECONDS", 0.1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            found = [examined(tmp_path, f"http://127.0.0.1:{free.getsockname()[1]}/sparql")[1]["reachable"]]
        server = LoopbackServer(lambda *request: server.wait(20) or Response())
        found += [examined(tmp_path, place)[1]["reachable"] for place in (f"http://127.0.0.1:{server.port}/", "no")]
        server.close()
        assert [finding.verdict for finding in found] == ["failed"] * 3 and found[0].found.startswith("Nothing answers")
        for word, finding in zip(("running", "keeps the server busy", "load_into_folder"), found):
            assert word in finding.remedy


class TestGraphs:
    def test_wrong_graph_iri_and_empty_server(self, tmp_path, serve):
        server = serve()
        for iri, words in (("http://e/typo", "an existing graph"), ("e", "IRI")):
            finding = examined(tmp_path, server.url, **{"graph.iri": iri})[1]["graph"]
            assert finding.verdict == "failed" and iri in finding.found and words in f"{finding.found} {finding.remedy}"
        server.store.clear()
        findings = examined(tmp_path, server.url)[1]
        assert findings["graph"].verdict == "failed" and "load" in findings["graph"].remedy
        assert findings["labels"].verdict == "skipped"

    def test_server_without_labels(self, tmp_path, serve):
        server = serve(slow="finished")
        health, findings = examined(tmp_path, server.url)
        assert health.graph.triples == TRIPLES and health.graph.fingerprint.startswith("remote-")
        assert findings["schema"].verdict == "warning" and findings["labels"].verdict == "failed" and not health.trusted
        assert {findings[name].verdict for name in ("latency", "triples", "graph", "tables", "concurrency")} == {"ok"}
        assert set(server.store) and not server.updates


class TestTooLittleToExamine:
    """An evaluation is not trusted if little or nothing could be examined."""

    def test_tiny_row_cap(self, tmp_path, serve):
        server, graph = serve(cap=2, slow="finished"), ox.NamedNode("http://e/graph")
        server.store.extend([ox.Quad(q.subject, q.predicate, q.object, graph) for q in server.store])
        health, findings = examined(tmp_path, server.url, **{"graph.iri": graph.value, "endpoint.row_cap": 2})
        assert findings["graph"].verdict == "ok" and findings["labels"].verdict == "failed"
        assert "cut" in findings["labels"].found and findings["latency"].found == REASONS["sample"]
        assert not health.trusted

    @pytest.mark.parametrize("iri, graph", [(None, "ok"), ("http://e/graph", "failed")])
    def test_server_that_hangs(self, tmp_path, monkeypatch, iri, graph):
        """It hangs on each query that names an IRI, also that of the graph."""
        monkeypatch.setattr("kgqa.doctor.subject.CONTENT_SECONDS", 1.0)

        def reply(request):
            if "<http" in request.query or "COUNT" in request.query:
                return SparqlReply(seconds=60.0)
            return table(["g"], []) if "SELECT" in request.query else truth(True)

        with scripted.SparqlServer(reply) as server:
            health, findings = examined(tmp_path, server.url, **{"graph.iri": iri})
        assert findings["graph"].verdict == graph and not health.trusted
        if graph == "ok":
            assert findings["triples"].verdict == "warning"
            assert findings["schema"].verdict == "failed" and "again" in findings["schema"].remedy
            assert {findings[name].found for name in ("tables", "labels", "latency")} == {REASONS["graph"]}

    def test_graph_of_labels_only(self, tmp_path, serve):
        server, label = serve(slow="finished"), ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
        server.store.clear()
        server.store.extend([ox.Quad(ox.NamedNode(f"http://e/s{n}"), label, ox.Literal(f"N {n}")) for n in range(50)])
        health, findings = examined(tmp_path, server.url)
        assert findings["schema"].verdict == "ok" and findings["labels"].verdict == "failed"
        assert findings["labels"].found.startswith("There are no edges between entities") and not health.trusted

    @pytest.mark.parametrize("requests", [1, 6, 30])
    def test_server_stops_during_the_examination(self, tmp_path, serve, requests):
        health, findings = examined(tmp_path, serve(requests=requests).url)
        assert "failed" in {finding.verdict for finding in findings.values()} and not health.trusted

    FREEBASE = "http://rdf.freebase.com/ns/"

    @pytest.mark.parametrize("late, trusted", [("", True), ("GROUP BY ?relation", False), ("FILTER(false)", False)])
    def test_tables_that_are_not_read_in_time(self, tmp_path, serve, monkeypatch, late, trusted):
        monkeypatch.setattr("kgqa.doctor.subject.CONTENT_SECONDS", 2.0)
        server = serve(
            slow="finished", busy=lambda query: 60.0 if late and late in query and "SELECT" in query else 0.0
        )
        server.store.clear()
        of = lambda name: ox.NamedNode(self.FREEBASE + name)  # noqa: E731
        facts = [("people.marriage", "freebase.type_hints.mediator", ox.Literal("true"))]
        for n in range(50):
            facts += [
                (f"m.{n}", "people.person.spouse_s", of(f"m.wedding{n}")),
                (f"m.wedding{n}", "people.marriage.spouse", of(f"m.{(n + 1) % 50}")),
                (f"m.wedding{n}", "type.object.type", of("people.marriage")),
                (f"m.{n}", "people.person.parents", of(f"m.{(n + 7) % 50}")),
                (f"m.{n}", "type.object.name", ox.Literal(f"Name {n}", language="en")),
            ]
        server.store.extend([ox.Quad(of(s), of(p), o) for s, p, o in facts])
        findings = examined(tmp_path, server.url, **{"graph.schema": "freebase"})[1]
        # the graph lacks the known entities of Freebase, and its server gives a wrong count
        bad = {f.name for f in findings.values() if f.verdict == "failed"} - {"known entities", "time limit"}
        assert bool(bad) != trusted, findings
        assert ("3 relations lead to mediators" in findings["mediators"].found) == trusted
        assert "0 relations lead to mediators" not in findings["mediators"].found


LOW_CAP = 2_000


@pytest.fixture(scope="module")
def low_cap(tmp_path_factory):
    """A Virtuoso server with a small graph and a row cap of LOW_CAP."""
    needs_virtuoso()
    with running_server(tmp_path_factory.mktemp("low-cap") / "server", row_cap=LOW_CAP) as server:
        file = server.import_folder / "facts.nt"
        file.write_text("".join(f"<http://e/s{n % 97}> <http://e/r{n % 7}> <http://e/o{n}> .\n" for n in range(3_000)))
        server.load([file], "http://e/graph")
        yield server


@pytest.mark.server
class TestVirtuoso:
    def check(self, name, server, access=Access(), **given):
        graph = (Entity("http://e/graph"),)
        return check(name, server.url, view=graph, triples=3_000, access=access, given=given)

    def test_row_cap_and_time_limit(self, low_cap):
        finding = self.check("row cap", low_cap)
        assert finding.verdict == "warning" and f"results at {LOW_CAP:,} rows. kgqa detects this" in finding.found
        assert "--row-cap" in finding.remedy and "ResultSetMaxRows" in finding.remedy
        assert self.check("time limit", low_cap).verdict == "ok"
        finding = self.check("time limit", low_cap, **{"graph.timeout": 86_400.0})
        assert finding.verdict == "warning" and "less than graph.timeout (86400 s)" in finding.found
        assert "--query-seconds" in finding.remedy and "MaxQueryExecutionTime" in finding.remedy

    def test_update_login(self, low_cap):
        right_password = low_cap.allow_updates("doctor").read_text().strip()
        for password, verdict, word in ((right_password, "ok", "are accepted"), ("sesame", "warning", "was rejected")):
            finding = self.check("update rights", low_cap, Access(user="doctor", password=password))
            assert finding.verdict == verdict and word in finding.found and "the login of doctor" in finding.found
            assert password not in str(finding)
            assert ("KGQA_ENDPOINT_PASSWORD" in finding.remedy) == (verdict == "warning")

    def test_update_rights(self, low_cap):
        assert self.check("update rights", low_cap).verdict == "ok"
        low_cap.sql('grant SPARQL_UPDATE to "SPARQL"')
        try:
            finding = self.check("update rights", low_cap)
        finally:
            low_cap.sql('revoke SPARQL_UPDATE from "SPARQL"')
        assert finding.verdict == "warning" and "REVOKE" in finding.remedy
        with server_subject(low_cap.url) as subject:
            query = "SELECT (COUNT(*) AS ?n) FROM <http://e/graph> WHERE { ?s ?p ?o }"
            ((count,),) = subject.store.select(query, fresh=True)
        assert count.value == "3000"
