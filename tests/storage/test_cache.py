"""The cache: entries, removal, vectors and unwritable folders."""

from __future__ import annotations

import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.cli.cache import age_words
from kgqa.errors import SettingsError
from kgqa.storage.cache import KINDS, Cache, VectorCache


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def write_entry(cache: Cache, kind: str, name: str, *, size: int, used: float) -> None:
    """Write an entry as another process would: not in use by this one."""
    path = cache.folder / kind / name
    path.mkdir(parents=True)
    (path / "data").write_bytes(b"x" * size)
    os.utime(path, (used, used))


def names(cache: Cache) -> list[str]:
    return [entry.name for entry in cache.entries()]


# ---- entries ----


def test_missing_cache_is_empty(cache):
    assert cache.entries() == []
    assert cache.clear() == 0
    assert cache.prune() == 0
    assert not cache.folder.exists()


def test_entries_are_ordered_by_last_use(cache):
    write_entry(cache, "graphs", "middle", size=10, used=2000)
    write_entry(cache, "models", "oldest", size=20, used=1000)
    write_entry(cache, "demo", "newest", size=30, used=3000)
    assert [(e.kind, e.name, e.bytes, e.used) for e in cache.entries()] == [
        ("models", "oldest", 20, 1000),
        ("graphs", "middle", 10, 2000),
        ("demo", "newest", 30, 3000),
    ]


def test_size_of_an_entry_includes_all_files(cache):
    write_entry(cache, "graphs", "deep", size=10, used=1000)
    (cache.folder / "graphs" / "deep" / "a" / "b").mkdir(parents=True)
    (cache.folder / "graphs" / "deep" / "a" / "b" / "more").write_bytes(b"x" * 5)
    cache.write_text(cache.entry("graphs", "file.json"), "four")
    assert {entry.name: entry.bytes for entry in cache.entries()} == {"deep": 15, "file.json": 4}


def test_using_an_entry_makes_it_the_newest(cache):
    write_entry(cache, "graphs", "old", size=1, used=1000)
    write_entry(cache, "graphs", "new", size=1, used=2000)
    assert names(cache) == ["old", "new"]
    cache.entry("graphs", "old")
    assert names(cache) == ["new", "old"]


def test_entry_does_not_create_a_folder(cache):
    assert not cache.entry("graphs", "absent").exists()
    assert cache.entries() == []


@pytest.mark.parametrize(("kind", "name"), [("graphs", ".."), ("graphs", "a/b"), ("graphs", ""), ("other", "a")])
def test_entry_names_cannot_leave_the_cache(cache, kind, name):
    with pytest.raises(ValueError):
        cache.entry(kind, name)


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("KGQA_CACHE_FOLDER", str(tmp_path / "here"))
    assert Cache.default().folder == tmp_path / "here"
    monkeypatch.delenv("KGQA_CACHE_FOLDER")
    assert Cache.default().folder.name == "kgqa"


# ---- clear and prune ----


def test_clear_removes_the_given_kinds(cache):
    write_entry(cache, "graphs", "a", size=10, used=1000)
    write_entry(cache, "models", "b", size=20, used=1000)
    assert cache.clear(["graphs"]) == 10
    assert names(cache) == ["b"]
    assert cache.clear() == 20
    assert cache.entries() == []


def test_runs_are_removed_only_on_request(cache):
    """The list of the user's runs cannot be rebuilt, so it is not removed."""
    write_entry(cache, "runs", "a", size=0, used=1000)
    write_entry(cache, "models", "b", size=20, used=2000)
    assert Cache(cache.folder, limit_bytes=0).prune() == 20 and names(cache) == ["a"]
    assert cache.clear() == 0 and names(cache) == ["a"]
    cache.clear(["runs"])
    assert names(cache) == []


def test_clear_keeps_other_files(cache):
    write_entry(cache, "graphs", "a", size=10, used=1000)
    foreign = cache.folder / "thesis.docx"
    foreign.write_text("mine")
    cache.clear(KINDS)
    assert foreign.read_text() == "mine"


@pytest.mark.parametrize(
    ("limit", "left"),
    [(60, ["a", "b", "c"]), (59, ["b", "c"]), (50, ["b", "c"]), (49, ["c"]), (30, ["c"]), (29, []), (0, [])],
)
def test_prune_removes_the_least_recently_used(tmp_path, limit, left):
    cache = Cache(tmp_path, limit_bytes=limit)
    write_entry(cache, "models", "a", size=10, used=1000)
    write_entry(cache, "graphs", "b", size=20, used=2000)
    write_entry(cache, "demo", "c", size=30, used=3000)
    freed = cache.prune()
    assert names(cache) == left
    assert freed == 60 - sum(entry.bytes for entry in cache.entries())


def test_prune_keeps_entries_in_use(tmp_path):
    cache = Cache(tmp_path, limit_bytes=0)
    write_entry(cache, "graphs", "used", size=10, used=1000)
    write_entry(cache, "graphs", "unused", size=10, used=2000)
    cache.entry("graphs", "used")
    assert cache.prune() == 10
    assert names(cache) == ["used"]


def test_symlink_out_of_the_cache_is_not_followed(cache, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (cache.folder / "graphs").mkdir(parents=True)
    (cache.folder / "graphs" / "link").symlink_to(outside)
    try:
        cache.clear()
    except SettingsError:
        pass
    assert (outside / "file").read_text() == "mine"


# ---- unwritable folders ----


@pytest.fixture
def unwritable_cache(tmp_path):
    """A cache whose parent is a file, so nothing can be created, not even by root."""
    (tmp_path / "file").write_text("")
    return Cache(tmp_path / "file" / "cache")


def test_unwritable_folder_is_no_error(unwritable_cache):
    assert unwritable_cache.write_text(unwritable_cache.entry("graphs", "a"), "text") is False
    assert unwritable_cache.entries() == []
    assert unwritable_cache.prune() == unwritable_cache.clear() == 0


def test_full_disk_leaves_no_partial_file(cache):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        assert cache.write_text(cache.entry("graphs", "a") / "b.json", "x" * 5_000) is False
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path for path in cache.folder.rglob("*") if path.is_file()] == []


def test_vectors_in_an_unwritable_folder(unwritable_cache):
    vectors = unwritable_cache.vectors("model", 3)
    vectors.put({"a": np.ones(3, dtype=np.float32)})
    assert vectors.get(["a"]) == {}
    vectors.close()


def test_damaged_vector_file_is_no_error(cache):
    file = cache.entry("embeddings", "model.sqlite")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"this is no database" * 100)
    vectors = cache.vectors("model", 3)
    vectors.put({"a": np.ones(3, dtype=np.float32)})
    assert vectors.get(["a"]) == {}


# ---- text ----


def test_write_text_replaces_the_whole_file(cache):
    path = cache.entry("graphs", "a.json")
    assert cache.write_text(path, "a long first text")
    assert cache.write_text(path, "é")
    assert path.read_text(encoding="utf-8") == "é"
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


def test_concurrent_writes_leave_one_complete_text(cache):
    path = cache.entry("graphs", "a.json")
    texts = [letter * 200_000 for letter in "abcd"]
    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda text=text: results.extend(cache.write_text(path, text) for _ in range(20)))
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert results == [True] * 80
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


# ---- vectors ----


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(blacklist_categories=("Cs",))),
        st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4),
        max_size=5,
    )
)
def test_vectors_have_half_precision(tmp_path_factory, vectors):
    given_vectors = {text: np.array(vector, dtype=np.float32) for text, vector in vectors.items()}
    file = tmp_path_factory.mktemp("vectors") / "model.sqlite"
    first = VectorCache(file, 4)
    first.put(given_vectors)
    first.close()
    second = VectorCache(file, 4)
    found = second.get([*given_vectors, "never put\x00"])
    second.close()
    assert found.keys() == given_vectors.keys()
    for text, vector in found.items():
        assert vector.dtype == np.float32
        assert np.abs(vector - given_vectors[text]).max() < 1e-3


def test_many_vectors_are_read_at_once(cache):
    vectors = cache.vectors("model", 2)
    vectors.put({f"text {i}": np.array([i, 1], dtype=np.float32) for i in range(1201)})
    found = vectors.get([f"text {i}" for i in range(1201)])
    assert len(found) == 1201
    assert all(found[f"text {i}"][0] == i for i in range(1201))


def test_vectors_of_another_length_are_ignored(cache):
    cache.vectors("model", 2).put({"a": np.ones(2, dtype=np.float32)})
    assert cache.vectors("model", 3).get(["a"]) == {}


def test_closed_vector_cache_is_empty(cache):
    vectors = cache.vectors("model", 2)
    vectors.put({"a": np.ones(2, dtype=np.float32)})
    vectors.close()
    vectors.put({"b": np.ones(2, dtype=np.float32)})
    assert vectors.get(["a", "b"]) == {}
    assert list(cache.vectors("model", 2).get(["a", "b"])) == ["a"]


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "two objects"])
def test_concurrent_writes_of_vectors(cache, shared):
    first = cache.vectors("model", 2)
    second = first if shared else cache.vectors("model", 2)
    errors: list[BaseException] = []

    def write(vectors: VectorCache, name: str) -> None:
        try:
            for i in range(50):
                vectors.put({f"{name} {i}": np.array([i, 1], dtype=np.float32)})
                assert vectors.get([f"{name} {i}"])[f"{name} {i}"][0] == i
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=pair) for pair in ((first, "one"), (second, "two"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(first.get([f"{name} {i}" for name in ("one", "two") for i in range(50)])) == 100


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (60, "1 minute ago"), (7300, "2 hours ago"), (86500, "1 day ago"), (-50, "just now")],
)
def test_age_words(monkeypatch, seconds, words):
    monkeypatch.setattr("kgqa.cli.cache.time.time", lambda: 1_000_000.0)
    assert age_words(1_000_000.0 - seconds) == words


def test_concurrent_prunes(tmp_path):
    def fill():
        for number in range(60):
            folder = tmp_path / "graphs" / f"g{number}"
            folder.mkdir(parents=True, exist_ok=True)
            for part in range(5):
                (folder / f"f{part}").write_text("x" * 100)

    for _ in range(5):
        fill()
        with ThreadPoolExecutor(4) as pool:
            freed = [pool.submit(Cache(tmp_path, limit_bytes=0).prune) for _ in range(4)]
            assert all(file.result() >= 0 for file in freed)
        assert Cache(tmp_path).entries() == []


def test_entries_that_cannot_be_removed(tmp_path, monkeypatch):
    (tmp_path / "graphs" / "g").mkdir(parents=True)
    (tmp_path / "graphs" / "g" / "f").write_text("x")

    def refuse(path, *arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("kgqa.storage.cache.shutil.rmtree", refuse)
    cache = Cache(tmp_path, limit_bytes=0)
    assert cache.prune() == 0
    with pytest.raises(SettingsError, match="cannot be removed"):
        cache.clear()
