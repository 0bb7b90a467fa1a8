"""The result cache on disk: expiry, size limits, damage, threads and processes."""

from __future__ import annotations

import signal
import sqlite3
import time

import pytest

from kgqa.graph.endpoint.result_cache import ResultCache


@pytest.fixture
def file(tmp_path):
    return tmp_path / "results" / "results.sqlite"


@pytest.fixture
def open_cache(file):
    caches: list[ResultCache] = []

    def open_cache(**options) -> ResultCache:
        caches.append(ResultCache(file, **options))
        return caches[-1]

    yield open_cache
    for cache in caches:
        cache.close()


def in_file(file) -> int:
    with sqlite3.connect(file) as connection:
        return connection.execute("SELECT COUNT(*) FROM results").fetchone()[0]


def test_stored_result_is_found_before_and_after_closing(open_cache):
    cache = open_cache()
    cache.put(b"k", b"body" * 100)
    assert cache.get(b"k") == b"body" * 100 and cache.get(b"other") is None
    cache.put(b"k", b"newer")
    cache.close()
    cache.close()
    assert cache.get(b"k") is None  # closed
    assert open_cache().get(b"k") == b"newer"


def incompressible_bytes(number: int, length: int = 20_000) -> bytes:
    """Return bytes that cannot be compressed."""
    import random

    return random.Random(number).randbytes(length)


def test_oldest_results_are_evicted(open_cache, file, monkeypatch):
    cache, now = open_cache(limit_bytes=1_000_000), time.time()
    for number in range(200):
        monkeypatch.setattr(time, "time", lambda number=number: now + number)
        cache.put(b"%d" % number, incompressible_bytes(number))
    cache.close()
    cache = open_cache(limit_bytes=1_000_000)
    kept = [number for number in range(200) if cache.get(b"%d" % number)]
    assert kept == list(range(200 - len(kept), 200)) and 20 <= len(kept) <= 50
    assert file.stat().st_size < 1_500_000


@pytest.mark.parametrize("damage", ["garbage", "cut", "holes", "empty", "folder", "no permission"])
def test_damaged_file_loses_only_results(open_cache, file, damage, caplog):
    cache = open_cache()
    for number in range(200):
        cache.put(b"%d" % number, incompressible_bytes(number, 2000))
    cache.close()
    data = file.read_bytes()
    if damage == "garbage":
        file.write_bytes(b"not a database at all" * 1000)
    elif damage == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "holes":
        file.write_bytes(data[:8192] + b"\xff" * (len(data) - 16384) + data[-8192:])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.unlink()
        file.parent.rmdir()
        file.parent.write_text("a file where the folder should be")
    cache = open_cache()
    for number in range(200):
        assert cache.get(b"%d" % number) in (None, incompressible_bytes(number, 2000))
    cache.put(b"new", b"body")
    cache.close()
    again = open_cache()
    again.get(b"0")
    again.put(b"new", b"body")
    assert again.get(b"new") == (None if damage in ("folder", "no permission") else b"body")
    named = [
        f"{file} cannot be read: unable to open database file. Its data are computed again; remove it if this message returns."
    ]
    assert caplog.messages == (named if damage == "folder" else [])  # the other files are replaced


WRITER = """
import sys
from pathlib import Path
from kgqa.graph.endpoint.result_cache import ResultCache
cache = ResultCache(Path(sys.argv[1]))
print("open", flush=True)
for number in range(int(sys.argv[3])):
    cache.put(f"{sys.argv[2]}/{number}".encode(), f"{sys.argv[2]} {number} ".encode() * 200)
    if sys.argv[4] == "slowly":
        import time; time.sleep(0.001)
cache.close()
print("done", flush=True)
sys.stdin.readline()
"""


def test_killed_writer_leaves_whole_results(python, open_cache, file):
    writer = python(WRITER, file, "a", 1_000_000, "slowly")
    assert writer.stdout.readline().strip() == "open"
    time.sleep(0.5)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    cache = open_cache()
    found = [cache.get(f"a/{number}".encode()) for number in range(5000)]
    kept = [body for body in found if body is not None]
    assert kept and kept == [f"a {number} ".encode() * 200 for number in range(len(kept))]
    cache.put(b"new", b"body")
    assert cache.get(b"new") == b"body"
