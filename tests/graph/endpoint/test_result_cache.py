"""The result cache on disk: expiry, size limits and damage."""

from __future__ import annotations

import random
import time

import pytest

from kgqa.graph.endpoint.fingerprint import MAX_AGE, ResultCache


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


def random_bytes(number: int, length: int = 20_000) -> bytes:
    """Return bytes that cannot be compressed."""
    return random.Random(number).randbytes(length)


def test_stored_result_is_found_until_it_expires(open_cache, monkeypatch):
    cache, now = open_cache(), time.time()
    cache.put(b"k", b"body" * 100)
    assert cache.get(b"k") == b"body" * 100 and cache.get(b"other") is None
    cache.put(b"k", b"newer")
    cache.close()
    cache.close()
    assert cache.get(b"k") is None  # closed
    cache = open_cache()
    assert cache.get(b"k") == b"newer" and cache.get(b"k", max_age=0.0) is None
    monkeypatch.setattr(time, "time", lambda: now + MAX_AGE + 1)
    assert cache.get(b"k") is None


@pytest.mark.parametrize("damage", ["garbage", "cut", "holes", "folder", "no permission"])
def test_damaged_file_loses_only_results(open_cache, file, damage, caplog):
    cache = open_cache()
    for number in range(200):
        cache.put(b"%d" % number, random_bytes(number, 2000))
    cache.close()
    data = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage == "no permission":
        file.parent.rmdir()
        file.parent.write_text("a file where the folder should be")
    else:
        holes = data[:8192] + b"\xff" * (len(data) - 16384) + data[-8192:]
        file.write_bytes({"garbage": b"not a database" * 1000, "cut": data[: len(data) // 2], "holes": holes}[damage])
    cache = open_cache()
    for number in range(200):
        assert cache.get(b"%d" % number) in (None, random_bytes(number, 2000))
    cache.put(b"new", b"body")
    cache.close()
    again = open_cache()
    again.get(b"0")
    again.put(b"new", b"body")
    assert again.get(b"new") == (None if damage in ("folder", "no permission") else b"body")
    told = [f"{file} cannot be read: unable to open database file" in message for message in caplog.messages]
    assert told == ([True] if damage == "folder" else [])  # the other files are replaced
