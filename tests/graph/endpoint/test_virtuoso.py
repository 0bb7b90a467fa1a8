"""The endpoint store on a real Virtuoso: row caps, time limits, errors and logins."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.endpoint.store import EndpointStore
from tests.conftest import SOAK
from tests.virtuoso_server import copied, running_server

GRAPH = "http://e/limits"
NODES, ROW_CAP, OWN_SECONDS = 1500, 1000, 2
FROM = f"FROM <{GRAPH}>"
ALL = f"SELECT ?s ?o {FROM} WHERE {{ ?s <http://e/next> ?o }}"
# 3e9 combinations of three edges
SLOW_COUNT = f"SELECT (COUNT(*) AS ?n) {FROM} WHERE {{ ?a ?p ?b . ?c ?q ?d . ?e ?r ?f FILTER(?b != ?d) }}"
SLOW_ROWS = (
    f"SELECT ?a ?c ?e {FROM} WHERE {{ ?a ?p ?b . ?c ?q ?d . ?e ?r ?f "
    "FILTER(STRLEN(CONCAT(STR(?a), STR(?c), STR(?e))) = 33) }"
)


@pytest.fixture(scope="module")
def server(prepared_folder, tmp_path_factory):
    """Yield a server with narrow limits and a graph of 1,500 edges."""
    folder = copied(prepared_folder, tmp_path_factory.mktemp("limits") / "server")
    with running_server(folder, row_cap=ROW_CAP, query_seconds=OWN_SECONDS) as server:
        file = server.import_folder / "limits.nt"
        file.write_text("".join(f"<http://e/n{n}> <http://e/next> <http://e/n{n + 1}> .\n" for n in range(NODES)))
        server.load([file], GRAPH)
        yield server


@pytest.fixture
def store(server):
    with EndpointStore(server.url, timeout=10) as store:
        yield store


def test_result_at_the_row_cap_is_an_error(server, store):
    assert store.profile.name == "virtuoso" and store.transport.time_limit == OWN_SECONDS
    with pytest.raises(PartialResult, match="row cap of 1,000 rows"):
        store.select(ALL)
    with pytest.raises(PartialResult):
        store.select(f"{ALL} LIMIT {ROW_CAP + 1}")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("seconds", "query"),
    [(1.0, SLOW_COUNT), (1.0, SLOW_ROWS), (10.0, SLOW_ROWS)] + [(10.0, SLOW_COUNT)] * SOAK,
)
def test_slow_query_is_an_error_in_time(store, query, seconds):
    """The query ends at our limit of one second or at the server's limit."""
    started = time.monotonic()
    with pytest.raises(StoreTimeout):
        store.select(query, timeout=seconds)
    assert time.monotonic() - started < min(seconds, 2 * OWN_SECONDS) + 20
    with pytest.raises(StoreTimeout, match="not sent again"):
        store.select(query, timeout=seconds)


def busy(pid: int, seconds: float = 0.3) -> bool:
    used = []
    for pause in (seconds, 0):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
        time.sleep(pause)
    return used[1] - used[0] > seconds / 4


def test_abandoned_query_ends_on_the_server(server, store, wait_until):
    pid = server.status().pid
    assert wait_until(lambda: not busy(pid), 60)  # including queries that earlier tests abandoned
    store.profile
    with pytest.raises(StoreTimeout):
        store.select(SLOW_ROWS + " # given up", timeout=1)
    assert wait_until(lambda: not busy(pid), 10)
