"""Workers have no network, even for queries that pass all checks."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

import pytest

from kgqa.errors import KgqaError
from kgqa.graph.embedded.workers import Worker

PROBE = "import sys; from kgqa.graph.embedded.sandbox import deny_network; sys.exit(0 if deny_network() else 3)"


def test_sandbox_is_available():
    """The sandbox cannot be undone, so the test uses another process."""
    assert subprocess.run([sys.executable, "-c", PROBE]).returncode == 0


@pytest.fixture
def listener():
    """Yield a loopback port and the list of its connections, which are closed at once."""
    found: list[object] = []
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.1)
    stop = threading.Event()

    def accept():
        while not stop.is_set():
            try:
                connection, address = server.accept()
            except TimeoutError:
                continue
            found.append(address)
            connection.close()

    thread = threading.Thread(target=accept)
    thread.start()
    yield server.getsockname()[1], found
    stop.set()
    thread.join()
    server.close()


def query_to(port: int) -> str:
    return f"SELECT * {{ SERVICE <http://127.0.0.1:{port}/x> {{ ?s ?p ?o }} }}"


def test_worker_cannot_connect(listener, load):
    port, found = listener
    worker = Worker(load("<http://e/a> <http://e/b> <http://e/c> .") / "gen-1" / "store")
    with pytest.raises(KgqaError):
        worker.call({"op": "select", "query": query_to(port), "max_rows": 10, "max_bytes": 1000}, seconds=30)
    assert worker.call({"op": "ask", "query": "ASK { ?s ?p ?o }"}, seconds=30) == b"1"
    worker.kill()
    assert found == []


def test_queries_work_in_the_sandbox():
    code = (
        "import socket, subprocess, tempfile\n"
        "from kgqa.graph.embedded.sandbox import deny_network\n"
        "assert deny_network() and deny_network()\n"
        "tempfile.TemporaryFile().write(b'x')\n"
        "assert subprocess.run(['true']).returncode == 0\n"
        "try:\n    socket.socket()\nexcept PermissionError:\n    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "refused", done.stderr
