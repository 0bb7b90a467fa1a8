"""Bulk loading: progress, errors per file, and recovery of interrupted loads."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time

import pytest

from kgqa.errors import ServerError
from kgqa.virtuoso import loads
from tests.virtuoso.conftest import write_triples
from tests.virtuoso_server import copied, end, running_server

pytestmark = pytest.mark.server


def test_load_files(virtuoso_server):
    """Loading files again changes nothing."""
    folder = virtuoso_server.import_folder / "a folder; with 'quotes'"
    folder.mkdir()
    files = [write_triples(folder / f"chunk {n} $U{{x}}.nt", n * 500, 500) for n in range(5)]
    packed = folder / "packed.nt.gz"
    packed.write_bytes(gzip.compress(b"<http://e/packed> <http://e/p> <http://e/b> .\n"))
    seen: list[int] = []
    for _ in range(2):
        virtuoso_server.load([*files, packed], "http://several", loaders=3, progress=seen.append)
        assert virtuoso_server.triples_of("http://several") == 2501
    assert 0 <= min(seen) <= max(seen) <= 6
    virtuoso_server.load([], "http://several")


def test_rejected_lines_and_files(virtuoso_server, tmp_path):
    file = virtuoso_server.import_folder / "broken.nt"
    lines = ["<http://e/a> <http://e/p> <http://e/b> .", '<http://e/a> <http://e/p> "\x1b[31mx"@en--ltr .']
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(ServerError, match=r"not loaded broken\.nt: .*line 2: .*The line is: <.*en--ltr \.") as caught:
        virtuoso_server.load([file], "http://broken")
    assert "\x1b" not in str(caught.value)
    outside = write_triples(tmp_path / "outside.nt", 0, 1)
    for file in (outside, virtuoso_server.import_folder / "missing.nt", virtuoso_server.import_folder / "../password"):
        message = f"no file .*{file.name} in the only folder that the server may read.*Move"
        with pytest.raises(ServerError, match=message):
            virtuoso_server.load([file], "http://none")


# ---- we are killed, or interrupted ----

LOADER = """
import sys
from pathlib import Path
from kgqa.virtuoso.server import Server

server = Server.at(Path(sys.argv[1]))
server.load([Path(file) for file in sys.argv[3:]], sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_kgqa_ended_during_a_load(virtuoso_server, by):
    """After Ctrl-C the loaders end; after a kill the server finishes the load, and meanwhile refuses others."""
    files = [write_triples(virtuoso_server.import_folder / f"cut{n}.nt", n * 15_000, 15_000) for n in range(6)]
    graph = f"http://cut/{by}"
    command = [sys.executable, "-c", LOADER, str(virtuoso_server.folder.path), graph, *map(str, files)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    while not virtuoso_server.sql("select 1 from DB.DBA.LOAD_LIST where ll_state = 1"):
        assert process.poll() is None, process.stderr.read()
    process.send_signal(by)
    process.wait()
    if by == signal.SIGKILL:
        assert virtuoso_server.status().state == "loading"
        with pytest.raises(ServerError, match="Another load .* is running"):
            virtuoso_server.load(files, graph)
    while virtuoso_server.status().state == "loading":
        time.sleep(0.1)
    assert by == signal.SIGINT or virtuoso_server.triples_of(graph) == 90_000
    assert virtuoso_server.status().state == "running"
    virtuoso_server.load(files, graph)
    assert virtuoso_server.triples_of(graph) == 90_000


# ---- the disk is full ----


@pytest.mark.slow
def test_disk_has_no_room_for_the_files(prepared_folder, small_disk, tmp_path, monkeypatch):
    """A load that would fill the disk does not begin; a full disk is named, and the server recovers."""
    disk = small_disk(72)
    with running_server(copied(prepared_folder, disk / "server")) as server:
        links = [server.import_folder / f"big{n}.nt" for n in range(8)]
        for number, link in enumerate(links):
            link.symlink_to(write_triples(tmp_path / link.name, number * 25_000, 25_000))
        with pytest.raises(ServerError, match=r"disk is nearly full: \d+ MB are free"):
            server.load(links, "http://big")
        assert server.status().state == "running"
        monkeypatch.setattr(loads, "MIN_FREE_BYTES", -1 << 40)
        with pytest.raises(ServerError, match="disk is full"):
            server.load(links, "http://big")
        status = server.status()
        assert status.state == "running" or "The disk is full." in status.message
        subprocess.run(["mount", "-o", "remount,size=300m", str(disk)], check=True)
        end(server)  # it may crash after the message
        server.start()
        server.load(links, "http://big")
        assert server.triples_of("http://big") == 200_000
