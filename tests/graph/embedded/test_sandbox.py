"""Workers have no network, even for queries that pass all checks."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from kgqa.errors import KgqaError
from kgqa.graph.embedded.workers import Worker


def test_worker_cannot_connect(load):
    folder = load("<http://e/a> <http://e/b> <http://e/c> .")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        worker = Worker(folder / "gen-1" / "store")
        query = f"SELECT * {{ SERVICE <http://127.0.0.1:{server.getsockname()[1]}/x> {{ ?s ?p ?o }} }}"
        with pytest.raises(KgqaError):
            worker.call({"op": "select", "query": query, "max_rows": 10, "max_bytes": 1000}, seconds=30)
        assert worker.call({"op": "ask", "query": "ASK { ?s ?p ?o }"}, seconds=30) == b"1"
        worker.kill()
        with pytest.raises(BlockingIOError):
            server.accept()


def test_only_the_network_is_denied():
    """The sandbox cannot be undone, so the test uses another process."""
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
