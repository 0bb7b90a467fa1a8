"""Bulk loading: progress, errors per file, and recovery of interrupted loads."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from kgqa.virtuoso.instance.processes import lock_owner
from kgqa.virtuoso.server.load_list import run_load_list
from kgqa.virtuoso.server.server import Server

from kgqa.errors import ServerError
from tests.conftest import SOAK
from tests.virtuoso.conftest import write_triples
from tests.virtuoso_server import copied, running_server

pytestmark = pytest.mark.server


def count(server: Server, graph: str) -> int:
    return int(server.sql("select count(*) from DB.DBA.RDF_QUAD where G = iri_to_id(?)", [graph])[0][0])


def load_list(server: Server) -> list[str]:
    return [file for (file,) in server.sql("select ll_file from DB.DBA.LOAD_LIST")]


def test_load_files_one_of_them_broken(virtuoso_server):
    folder = virtuoso_server.import_folder / "a folder; with 'quotes'"
    folder.mkdir()
    files = [write_triples(folder / f"chunk {n}.nt", n * 500, 500) for n in range(5)]
    broken = folder / "broken $U{x}.nt"
    broken.write_text("<http://e/a> <http://e/p> <http://e/b> .\n<http://e/a> nonsense .\n", encoding="utf-8")
    packed = folder / "packed.nt.gz"
    packed.write_bytes(gzip.compress(b"<http://e/packed> <http://e/p> <http://e/b> .\n"))
    seen: list[int] = []
    results = virtuoso_server.load([*files, broken, packed], "http://several", loaders=3, progress=seen.append)
    assert [result.file for result in results] == [*files, broken, packed]
    assert [result.error is None for result in results] == [True] * 5 + [False, True]
    assert "Missing object before dot" in results[5].error
    assert count(virtuoso_server, "http://several") >= 2501
    assert load_list(virtuoso_server) == [] and virtuoso_server.folder.journal() is None
    assert seen[-1] == 7


def test_loading_again_changes_nothing(virtuoso_server):
    file = write_triples(virtuoso_server.import_folder / "again.nt", 0, 300)
    for _ in range(2):
        assert virtuoso_server.load([file], "http://again")[0].error is None
        assert count(virtuoso_server, "http://again") == 300
    assert virtuoso_server.load([], "http://again") == []


def test_refused_files(virtuoso_server, tmp_path):
    outside = write_triples(tmp_path / "outside.nt", 0, 1)
    with pytest.raises(ServerError, match="outside the only folder that the server may read.*Move or link the file to"):
        virtuoso_server.load([outside], "http://none")
    with pytest.raises(ServerError, match="no file .*missing.nt"):
        virtuoso_server.load([virtuoso_server.import_folder / "missing.nt"], "http://none")
    with pytest.raises(ServerError, match="outside the only folder"):
        virtuoso_server.load([virtuoso_server.import_folder / ".." / "password"], "http://none")
    with pytest.raises(ServerError, match="kgqa virtuoso start"):
        nothing = Server.at(tmp_path / "nothing")
        nothing.import_folder.mkdir(parents=True)
        nothing.load([write_triples(nothing.import_folder / "x.nt", 0, 1)], "http://none")


def test_second_load_is_refused(virtuoso_server):
    files = [write_triples(virtuoso_server.import_folder / f"once{n}.nt", n * 4000, 4000) for n in range(2)]
    started = threading.Event()
    first = threading.Thread(
        target=virtuoso_server.load, args=(files, "http://once"), kwargs={"progress": lambda _: started.set()}
    )
    with open(virtuoso_server.folder.path / "loading.lock", "w") as held:
        import fcntl

        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ServerError, match="Another load .* is running"):
            virtuoso_server.load(files, "http://once")
    first.start()
    first.join()
    assert started.is_set() and count(virtuoso_server, "http://once") == 8000


# ---- the server is killed ----


@pytest.mark.slow
def test_server_killed_during_a_load(own_server):
    """Files loaded before the last checkpoint are kept; the others are reported as lost."""
    lines, number = (50_000, 8) if SOAK else (20_000, 8)
    files = [write_triples(own_server.import_folder / f"part{n}.nt", n * lines, lines) for n in range(number)]
    failure: list[ServerError] = []
    done_at_checkpoint: set[str] = set()

    def load() -> None:
        try:
            own_server.load(files, "http://killed")
        except ServerError as error:
            failure.append(error)

    loading = threading.Thread(target=load)
    loading.start()
    while not done_at_checkpoint:
        time.sleep(0.05)
        done_at_checkpoint |= {f for (f,) in own_server.sql("select ll_file from DB.DBA.LOAD_LIST where ll_state = 2")}
    assert own_server.status().state == "loading"
    own_server.checkpoint()
    os.kill(lock_owner(own_server.folder.lock).pid, signal.SIGKILL)
    loading.join(60)
    assert "kgqa virtuoso start" in str(failure[0])

    crashed = own_server.status()
    assert crashed.state == "crashed" and "kgqa virtuoso start" in crashed.message
    with pytest.raises(ServerError, match="is not running"):
        own_server.sql("select 1")

    messages: list[str] = []
    assert own_server.start(notify=messages.append)
    lost = [Path(file) for file in own_server.folder.journal().files]
    assert lost and lost == [file for file in files if file in lost]
    assert not done_at_checkpoint & {str(file) for file in lost}
    status = own_server.status()
    assert status.state == "running" and messages[-1] == status.message
    assert f"{len(lost)} file" in status.message and all(file.name in status.message for file in lost)
    assert "<http://killed>" in status.message
    assert count(own_server, "http://killed") >= lines * (len(files) - len(lost))

    assert [result.error for result in own_server.load(lost, "http://killed")] == [None] * len(lost)
    assert count(own_server, "http://killed") == lines * len(files)
    assert own_server.status().message == "" and load_list(own_server) == []


# ---- we are killed, or interrupted ----

LOADER = """
import sys
from pathlib import Path
from kgqa.virtuoso.server.server import Server

server = Server.at(Path(sys.argv[1]))
server.load([Path(file) for file in sys.argv[2:]], "http://cut")
"""


def start_loading(server: Server, files: list[Path]) -> subprocess.Popen:
    command = [sys.executable, "-c", LOADER, str(server.folder.path), *map(str, files)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    while not ((journal := server.folder.journal()) and journal.clients):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_ctrl_c_keeps_loaded_files_and_reports_lost_ones(virtuoso_server):
    files = [write_triples(virtuoso_server.import_folder / f"cut{n}.nt", n * 15_000, 15_000) for n in range(6)]
    process = start_loading(virtuoso_server, files)
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    status = virtuoso_server.status()
    assert status.state == "running" and "cut5.nt" in status.message
    lost = [Path(file) for file in virtuoso_server.folder.journal().files]
    virtuoso_server.load(lost, "http://cut")
    assert count(virtuoso_server, "http://cut") == 90_000
    assert virtuoso_server.status().message == ""


@pytest.mark.slow
def test_kgqa_killed_during_a_load(virtuoso_server):
    """The server finishes the load by itself; meanwhile no other load can start."""
    files = [write_triples(virtuoso_server.import_folder / f"alone{n}.nt", n * 15_000, 15_000) for n in range(4)]
    process = start_loading(virtuoso_server, files)
    process.kill()
    process.communicate()
    assert virtuoso_server.status().state == "loading"
    with pytest.raises(ServerError, match="Another load .* is running"):
        virtuoso_server.load(files, "http://cut")
    while virtuoso_server.status().state == "loading":
        time.sleep(0.1)
    assert virtuoso_server.status().message == ""  # all files are in
    virtuoso_server.load(files[:1], "http://cut")
    assert virtuoso_server.folder.journal() is None and load_list(virtuoso_server) == []


# ---- the disk is full ----


@pytest.fixture
def server_on_small_disk(prepared_folder, small_disk, tmp_path):
    """A running server on a disk of this size (its database takes 55 MB), and eight files that do not fit.

    The files are links to another disk.
    """
    with ExitStack() as stack:

        def start(megabytes: int) -> tuple[Server, Path, list[Path]]:
            disk = small_disk(megabytes)
            server = stack.enter_context(running_server(copied(prepared_folder, disk / "server")))
            links = [server.import_folder / f"big{n}.nt" for n in range(8)]
            for number, link in enumerate(links):
                link.symlink_to(write_triples(tmp_path / link.name, number * 25_000, 25_000))
            return server, disk, links

        yield start


@pytest.mark.slow
def test_loading_stops_before_the_disk_is_full(server_on_small_disk):
    server, _, files = server_on_small_disk(105)
    with pytest.raises(ServerError, match=r"disk is nearly full: \d+ MB are free") as caught:
        run_load_list(server.folder, files, "http://big", min_free_bytes=35_000_000)
    status = server.status()
    assert status.state == "running" and status.message in str(caught.value)
    lost = [Path(file) for file in server.folder.journal().files]
    assert 0 < len(lost) <= 8
    assert count(server, "http://big") >= 25_000 * (8 - len(lost))


@pytest.mark.slow
def test_disk_becomes_full_during_a_load(server_on_small_disk):
    """The server crashes, the status names the full disk, and it recovers once there is room."""
    server, disk, files = server_on_small_disk(72)
    with pytest.raises(ServerError, match=r"disk is full. \d+ MB are free") as caught:
        run_load_list(server.folder, files, "http://big", min_free_bytes=0)
    assert "start the server" in str(caught.value)
    status = server.status()
    assert status.state == "crashed" and "The disk is full." in status.message and "Its log says:" in status.message
    subprocess.run(["mount", "-o", "remount,size=300m", str(disk)], check=True)
    messages: list[str] = []
    assert server.start(notify=messages.append)
    assert "big0.nt" in messages[-1] and server.status().message == messages[-1]
    assert [result.error for result in run_load_list(server.folder, files[:1], "http://big", min_free_bytes=0)] == [
        None
    ]
    assert "big1.nt" in server.status().message and "big0.nt" not in server.status().message
