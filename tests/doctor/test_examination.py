"""Examinations of faulty servers on the loopback and of a Virtuoso server at its limits."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack
from dataclasses import replace

import pyoxigraph as ox
import pytest

from kgqa.doctor.checks import Health
from kgqa.doctor.examination import GRAPH_CHECKS, Examination
from kgqa.doctor.graph_checks import NO_EDGES
from kgqa.doctor.server_checks import check_graph, check_row_cap, check_time_limit, check_update_rights
from kgqa.doctor.speed_checks import check_concurrency, measure_round
from kgqa.doctor.subject import REASONS
from kgqa.graph.endpoint.access import Access
from kgqa.model import Entity
from kgqa.settings.values import resolve
from kgqa.testing import sparql_server as scripted
from kgqa.testing.loopback import LoopbackServer, Response
from kgqa.testing.sparql_faults import virtuoso_timeout
from kgqa.testing.sparql_server import SparqlReply, table, truth
from tests.doctor.subjects import limited, subject_of
from tests.sparql_server import RESULTS, SLOW, TRIPLES, SparqlServer
from tests.virtuoso_server import needs_virtuoso, running_server


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch):
    """Measure for a fraction of a second instead of seconds."""
    for name, seconds in {"ROUND_SECONDS": 0.1, "EXPLORING_SECONDS": 0.3, "HUBS_SECONDS": 0.1}.items():
        monkeypatch.setattr(f"kgqa.doctor.speed_checks.{name}", seconds)


@pytest.fixture
def serve():
    """`serve(**options) -> (server, store)`."""
    with ExitStack() as opened:

        def serve(**options):
            server = SparqlServer(**options)
            opened.callback(server.close)
            return server, opened.enter_context(limited(server.url))

        yield serve


def examine(tmp_path, url: str, **given):
    """Return all checks of a graph by name."""
    examination = Examination(
        resolve({"graph.path": url, "cache.folder": str(tmp_path / "cache"), **given}, folder=tmp_path)
    )
    examination.run_checks(GRAPH_CHECKS)
    names = {row.name for row in GRAPH_CHECKS}
    checks = {check.name: check for check in examination.health().checks if check.name in names}
    assert "Stopped before this check." not in {check.found for check in checks.values()}
    return checks, examination.subject


class TestRowCap:
    def test_unannounced_row_cap(self, serve):
        _, store = serve(cap=1_000)
        check = check_row_cap(subject_of(store, triples=TRIPLES))
        assert check.verdict == "failed" and "silently truncates results at 1,000 rows" in check.found
        assert check.remedy == "Set endpoint.row_cap = 1000."

    def test_configured_row_cap(self, serve):
        server, _ = serve(cap=1_000)
        with limited(server.url, row_cap=1_000) as store:
            check = check_row_cap(subject_of(store, triples=TRIPLES))
        assert check.verdict == "warning" and "truncates results at 1,000 rows. kgqa detects this" in check.found

    def test_no_row_cap(self, serve):
        _, store = serve()
        check = check_row_cap(subject_of(store, triples=TRIPLES))
        assert (check.verdict, check.found) == ("ok", "No cap reached: 10,001 rows arrived completely.")

    @pytest.mark.parametrize(
        "late, verdict, found",
        [
            ("10001", "warning", "10,001 rows did not arrive within "),
            ("100001", "ok", "No cap reached: 10,001 rows arrived completely. 100,001 rows did not arrive within "),
        ],
    )
    def test_late_rows(self, serve, monkeypatch, late, verdict, found):
        monkeypatch.setattr("kgqa.doctor.subject.QUERY_SECONDS", 0.5)
        _, store = serve(busy=lambda query: 60.0 if f"LIMIT {late}" in query else 0.0)
        store.retries_timeouts = False
        check = check_row_cap(subject_of(store, triples=400))
        assert check.verdict == verdict and check.found.startswith(found)

    def test_too_few_triples(self, serve):
        _, store = serve()
        assert check_row_cap(subject_of(store, triples=99)).verdict == "skipped"


class TestTimeLimit:
    def test_partial_count_given_as_finished(self, serve):
        _, store = serve(slow="finished")
        check = check_time_limit(subject_of(store, triples=TRIPLES))
        assert check.verdict == "failed" and "as if it had finished: 4711" in check.found and check.remedy

    def test_query_continues_after_the_limit(self, serve, monkeypatch):
        monkeypatch.setattr("kgqa.doctor.server_checks.SLOW_SECONDS", 0.2)
        monkeypatch.setattr("kgqa.doctor.server_checks.LISTEN_SECONDS", 0.5)
        _, store = serve()
        check = check_time_limit(subject_of(store, triples=TRIPLES))
        assert check.verdict == "warning" and "because requests to it contain no limit" in check.found

    def test_query_ends_some_seconds_after_the_limit(self, monkeypatch):
        monkeypatch.setattr("kgqa.doctor.server_checks.SLOW_SECONDS", 0.2)
        monkeypatch.setattr("kgqa.doctor.server_checks.MOST_SECONDS", 1.0)
        late = replace(virtuoso_timeout(table(["combinations"], []).body), seconds=1.2)  # type: ignore[arg-type]
        with (
            scripted.SparqlServer(lambda request: late if SLOW in request.query else truth(True)) as server,
            limited(server.url) as store,
        ):
            check = check_time_limit(subject_of(store, triples=TRIPLES))
        assert check.verdict == "ok" and "The server itself ends it after 1." in check.found


class TestUpdates:
    @pytest.mark.parametrize("view", [(), (Entity("http://e/graph"),)])
    def test_updates_without_login_are_accepted(self, serve, view):
        server, store = serve(writable=True)
        before = set(server.store)
        check = check_update_rights(subject_of(store, view=view))
        assert check.verdict == "warning" and "Anybody" in check.found and check.remedy
        assert set(server.store) == before and len(server.updates) == 1
        assert all(graph.iri in server.updates[0] for graph in view)

    def test_updates_are_rejected(self, serve):
        _, store = serve()
        assert check_update_rights(subject_of(store)).verdict == "ok"

    def test_update_check_of_a_stopped_server(self, serve):
        server, store = serve()
        assert store.profile
        server.close()
        assert check_update_rights(subject_of(store)).verdict == "skipped"


class TestUnreachable:
    @pytest.mark.parametrize(
        "response, found, remedy",
        [
            (Response(200, b"<html>Hello</html>", "text/html"), "web page", "Check the address"),
            (Response(200, b'{"hello": 1}', "application/json"), "", "."),
            (Response(401, b"", "text/plain"), "401", "KGQA_ENDPOINT_PASSWORD"),
            (Response(404, b"", "text/html"), "404", "/sparql"),
            (
                Response(301, b"", "text/html", headers=(("Location", "http://new.example/sparql"),)),
                "new.example",
                "new address",
            ),
            (Response(500, b"no\x1b[31m way", "text/plain"), "500", "SPARQL"),
            (Response(400, b"What?", "text/plain"), "What?", "SPARQL"),
            (Response(dropped=True), "", "."),
            (Response(200, b'{"boolean": tr', RESULTS), "truncated or damaged", "."),
        ],
    )
    def test_faulty_replies_of_the_address(self, tmp_path, response, found, remedy):
        server = LoopbackServer(lambda method, path, headers, body: response)
        checks, examination = examine(tmp_path, f"http://127.0.0.1:{server.port}/sparql")
        server.close()
        check = checks["reachable"]
        assert check.verdict == "failed" and found in check.found and remedy in check.remedy
        assert {opened_object.verdict for name, opened_object in checks.items() if name != "reachable"} == {"skipped"}
        assert checks["latency"].found == REASONS["store"] and examination.id is None

    def test_no_server(self, tmp_path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            checks, _ = examine(tmp_path, f"http://127.0.0.1:{free.getsockname()[1]}/sparql")
        assert checks["reachable"].found.startswith("Nothing answers at") and "running" in checks["reachable"].remedy

    def test_server_that_never_answers(self, tmp_path, monkeypatch):
        monkeypatch.setattr("kgqa.doctor.subject.QUERY_SECONDS", 0.1)
        server = LoopbackServer(lambda *request: server.wait(20) or Response())
        checks, _ = examine(tmp_path, f"http://127.0.0.1:{server.port}/sparql")
        server.close()
        assert checks["reachable"].verdict == "failed" and "keeps the server busy" in checks["reachable"].remedy

    def test_missing_folder(self, tmp_path):
        checks, _ = examine(tmp_path, str(tmp_path / "nothing"))
        assert checks["reachable"].verdict == "failed" and "load_into_folder" in checks["reachable"].remedy


class TestGraphs:
    def test_wrong_graph_iri(self, tmp_path, serve):
        server, _ = serve()
        checks, _ = examine(tmp_path, server.url, **{"graph.iri": "http://e/typo"})
        assert checks["graph"].verdict == "failed" and "<http://e/typo>" in checks["graph"].found

    def test_invalid_graph_iri(self, tmp_path, serve):
        server, _ = serve()
        checks, _ = examine(tmp_path, server.url, **{"graph.iri": "e"})
        assert checks["graph"].verdict == "failed" and "full IRI" in checks["graph"].remedy

    def test_empty_graph(self, serve):
        server, store = serve()
        server.store.clear()
        subject = subject_of(store)
        del subject.view
        check = check_graph(subject)
        assert (
            check.verdict == "failed"
            and "kgqa graph load" in check.remedy
            and subject.lacks("view") == REASONS["store"]
        )

    def test_complete_examination(self, tmp_path, serve):
        server, _ = serve(slow="finished")
        checks, examination = examine(tmp_path, server.url)
        assert examination.id.triples == TRIPLES and examination.id.fingerprint.startswith("remote-")
        assert checks["schema"].verdict == "warning" and checks["labels"].verdict == "warning"
        assert checks["latency"].verdict == "ok" and examination.query_seconds < 1
        assert {checks[name].verdict for name in ("triples", "graph", "tables", "concurrency")} == {"ok"}
        assert set(server.store) and not server.updates


def trusted(checks) -> bool:
    return Health(tuple(checks.values()), None, 1.0, complete=True).trusted


class TestTooLittleToExamine:
    """An evaluation is not trusted if little or nothing could be examined."""

    def test_tiny_row_cap(self, tmp_path, serve):
        server, _ = serve(cap=2, slow="finished")
        server.store.extend(
            [ox.Quad(q.subject, q.predicate, q.object, ox.NamedNode("http://e/graph")) for q in server.store]
        )
        checks, _ = examine(tmp_path, server.url, **{"graph.iri": "http://e/graph", "endpoint.row_cap": 2})
        assert checks["graph"].verdict == "ok" and checks["labels"].verdict == "failed"
        assert "cut" in checks["labels"].found and checks["latency"].found == REASONS["sample"]
        assert not trusted(checks)

    def test_server_hangs_after_the_graph_is_known(self, tmp_path, monkeypatch):
        monkeypatch.setattr("kgqa.doctor.subject.QUERY_SECONDS", 0.1)

        def reply(request):
            if "<http" in request.query:
                return SparqlReply(seconds=60.0)
            return table(["g"], []) if "SELECT" in request.query else truth(True)

        with scripted.SparqlServer(reply) as server:
            checks, _ = examine(tmp_path, server.url)
        assert checks["graph"].verdict == "ok"
        assert checks["triples"].verdict == "warning" and "no fingerprint" in checks["triples"].found
        assert checks["schema"].verdict == "failed" and "again" in checks["schema"].remedy
        assert {checks[name].found for name in ("tables", "labels", "latency")} == {REASONS["graph"]}
        assert not trusted(checks)

    def test_server_hangs_before_the_graph_is_known(self, tmp_path, monkeypatch):
        monkeypatch.setattr("kgqa.doctor.subject.QUERY_SECONDS", 0.1)

        def reply(request):
            hangs = "<http" in request.query or "SELECT" in request.query
            return SparqlReply(seconds=60.0) if hangs else truth(True)

        with scripted.SparqlServer(reply) as server:
            checks, _ = examine(tmp_path, server.url, **{"graph.iri": "http://e/graph"})
        assert checks["graph"].verdict == "failed" and not trusted(checks)
        assert checks["schema"].found == "The graph could not be queried."

    def test_graph_of_labels_only(self, tmp_path, serve):
        server, _ = serve(slow="finished")
        server.store.clear()
        label = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
        server.store.extend(
            [ox.Quad(ox.NamedNode(f"http://e/s{n}"), label, ox.Literal(f"Name {n}")) for n in range(50)]
        )
        checks, _ = examine(tmp_path, server.url)
        assert checks["schema"].verdict == "ok" and checks["labels"].verdict == "failed"
        assert checks["labels"].found == NO_EDGES and checks["latency"].verdict == "skipped"
        assert not trusted(checks)


FREEBASE = "http://rdf.freebase.com/ns/"


class TestSlowServer:
    """Queries that time out once are repeated; checks that stay unfinished are not trusted."""

    @pytest.fixture
    def examined(self, tmp_path, monkeypatch):
        """`examined(seconds) -> checks` of a small graph with mediators; `seconds(query, times)` delays a query."""
        monkeypatch.setattr("kgqa.doctor.subject.QUERY_SECONDS", 0.2)
        servers = []

        def examined(seconds=lambda query, times: 0.0):
            counts: dict[str, int] = {}

            def busy(query: str) -> float:
                counts[query] = counts.get(query, 0) + 1
                return seconds(query, counts[query])

            server = SparqlServer(slow="finished", busy=busy)
            servers.append(server)
            server.store.clear()
            of = lambda name: ox.NamedNode(FREEBASE + name)  # noqa: E731
            facts = [("people.marriage", "freebase.type_hints.mediator", ox.Literal("true"))]
            for n in range(40):
                facts += [
                    (f"m.{n}", "people.person.spouse_s", of(f"m.wedding{n}")),
                    (f"m.wedding{n}", "people.marriage.spouse", of(f"m.{n + 1}")),
                    (f"m.wedding{n}", "type.object.type", of("people.marriage")),
                    (f"m.{n}", "people.person.parents", of(f"m.{n + 7}")),
                    (f"m.{n}", "type.object.name", ox.Literal(f"Name {n}", language="en")),
                ]
            facts += [(f"m.{n}", "type.object.name", ox.Literal(f"Name {n}", language="en")) for n in range(40, 50)]
            server.store.extend([ox.Quad(of(s), of(p), o) for s, p, o in facts])
            checks, _ = examine(tmp_path, server.url, **{"graph.schema": "freebase"})
            # the graph lacks the known entities of Freebase, and its server gives a wrong count
            return {name: check for name, check in checks.items() if name not in ("known entities", "time limit")}

        yield examined
        for server in servers:
            server.close()

    SEEN = ("schema", "mediators", "relation types", "labels", "inverse relations")

    @pytest.mark.parametrize("late", ["GROUP BY", "?subject ?predicate ?object"])
    def test_query_that_times_out_once_is_repeated(self, examined, late):
        right = examined()
        found = examined(lambda query, times: 0.4 if late in query and times == 1 else 0.0)
        assert {name: found[name].found for name in self.SEEN} == {name: right[name].found for name in self.SEEN}
        assert "3 relations lead to mediators" in found["mediators"].found
        assert found["tables"].verdict == "ok" and found["triples"].verdict == "ok" and trusted(found)

    @pytest.mark.parametrize("late", ["GROUP BY ?relation", "?mediator"])
    def test_query_that_keeps_timing_out_is_not_trusted(self, examined, late):
        found = examined(lambda query, times: 60.0 if late in query and "SELECT" in query else 0.0)
        assert not trusted(found)
        failed = [check for check in found.values() if check.verdict == "failed"]
        assert failed and any("Timed out" in check.found for check in failed)
        assert not any("too large" in check.found for check in found.values())
        assert "0 relations lead to mediators" not in found["mediators"].found


def test_server_handles_the_configured_concurrency():
    lock, under_way = threading.Lock(), []

    def reply(request):
        with lock:
            under_way.append(request)
            busy = len(under_way) > 2
        time.sleep(0.005)
        with lock:
            under_way.remove(request)
        return SparqlReply(503) if busy else truth(True)

    access = Access(patience=0.0, concurrency=2)
    with scripted.SparqlServer(reply) as server, limited(server.url, access) as store:
        check = check_concurrency(subject_of(store))
    assert check.verdict == "ok" and check.found.startswith("2 threads") and "8 threads" in check.found, check


def test_server_rejects_all_concurrent_requests():
    with (
        scripted.SparqlServer(lambda request: truth(True)) as server,
        limited(server.url) as store,
    ):
        assert store.profile
        server.enqueue(*[SparqlReply(503)] * 10_000)
        assert check_concurrency(subject_of(store)).verdict == "failed"


@pytest.mark.parametrize("requests", [1, 6, 30])
def test_server_stops_during_the_examination(tmp_path, serve, requests):
    server, _ = serve(requests=requests)
    checks, _ = examine(tmp_path, server.url)
    assert "failed" in {check.verdict for check in checks.values()}
    assert len(checks) == len(GRAPH_CHECKS)


def test_errors_of_threads_are_counted(serve):
    server, store = serve()
    server.close()
    found = measure_round(store, (), 3)
    assert found.answered == 0 and found.errors >= 3 and "Nothing answers" in found.error


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
    VIEW = (Entity("http://e/graph"),)

    def test_low_row_cap(self, low_cap):
        with limited(low_cap.url, Access()) as store:
            check = check_row_cap(subject_of(store, view=self.VIEW, triples=3_000))
        assert check.verdict == "warning" and f"truncates results at {LOW_CAP:,} rows. kgqa detects this" in check.found
        assert "--row-cap" in check.remedy and "ResultSetMaxRows" in check.remedy

    def test_query_time_limit(self, low_cap):
        with limited(low_cap.url, Access()) as store:
            check = check_time_limit(subject_of(store, view=self.VIEW, triples=3_000))
            assert store.ask("ASK { ?s ?p ?o }", timeout=2.0)
        assert check.verdict == "ok", check

    def test_update_login(self, low_cap):
        low_cap.allow_updates("doctor", "secret")
        for password, verdict, word in (
            ("secret", "ok", "are accepted"),
            ("wrong", "warning", "rejects the login"),
        ):
            with limited(low_cap.url, Access(user="doctor", password=password)) as store:
                check = check_update_rights(subject_of(store, view=self.VIEW))
            assert check.verdict == verdict and word in check.found, check

    def test_update_rights(self, low_cap):
        with limited(low_cap.url, Access()) as store:
            assert check_update_rights(subject_of(store, view=self.VIEW)).verdict == "ok"
            low_cap.sql('grant SPARQL_UPDATE to "SPARQL"')
            try:
                check = check_update_rights(subject_of(store, view=self.VIEW))
            finally:
                low_cap.sql('revoke SPARQL_UPDATE from "SPARQL"')
            assert check.verdict == "warning" and "REVOKE" in check.remedy
            ((count,),) = store.select("SELECT (COUNT(*) AS ?n) FROM <http://e/graph> WHERE { ?s ?p ?o }", fresh=True)
        assert count.value == "3000"
