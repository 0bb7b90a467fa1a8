"""The cache: entries, removal, folders that are not writable, and files that cannot be read."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgqa.cli.cache import age_words
from kgqa.errors import SettingsError
from kgqa.storage.cache import KINDS, Cache
from tests.hostile_files import run_limited


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def write_entry(cache: Cache, kind: str, name: str, *, size: int, used: float) -> None:
    """Write an entry as another process would: not in use by this one."""
    path = cache.folder / kind / name / "folder"
    path.mkdir(parents=True)
    (path / "data").write_bytes(b"x" * size)
    os.utime(path.parent, (used, used))


def names(cache: Cache) -> list[str]:
    return [entry.name for entry in cache.entries()]


def test_missing_cache_is_empty(cache):
    assert cache.entries() == []
    assert cache.clear() == cache.prune() == 0
    assert not cache.entry("graphs", "absent").exists() and not cache.folder.exists()


def test_entries_are_ordered_by_last_use(cache):
    write_entry(cache, "graphs", "middle", size=10, used=2000)
    write_entry(cache, "models", "oldest", size=20, used=1000)
    write_entry(cache, "demo", "newest", size=30, used=3000)
    assert [(e.kind, e.name, e.bytes, e.used) for e in cache.entries()] == [
        ("models", "oldest", 20, 1000),
        ("graphs", "middle", 10, 2000),
        ("demo", "newest", 30, 3000),
    ]
    cache.entry("models", "oldest")
    assert names(cache) == ["middle", "newest", "oldest"]


@pytest.mark.parametrize(("kind", "name"), [("graphs", ".."), ("graphs", "a/b"), ("graphs", ""), ("other", "a")])
def test_entry_names_cannot_leave_the_cache(cache, kind, name):
    with pytest.raises(ValueError):
        cache.entry(kind, name)


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("KGQA_CACHE_FOLDER", str(tmp_path / "here"))
    assert Cache.default().folder == tmp_path / "here"
    monkeypatch.delenv("KGQA_CACHE_FOLDER")
    assert Cache.default().folder.name == "kgqa"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (60, "1 minute ago"), (7300, "2 hours ago"), (86500, "1 day ago"), (-50, "just now")],
)
def test_age_words(monkeypatch, seconds, words):
    monkeypatch.setattr("kgqa.cli.cache.time.time", lambda: 1_000_000.0)
    assert age_words(1_000_000.0 - seconds) == words


# ---- clear and prune ----


def test_clear_removes_the_given_kinds_and_no_other_files(cache):
    write_entry(cache, "graphs", "a", size=10, used=1000)
    write_entry(cache, "models", "b", size=20, used=1000)
    (cache.folder / "thesis.docx").write_text("mine")
    assert cache.clear(["graphs"]) == 10 and names(cache) == ["b"]
    assert cache.write_text(cache.entry("graphs", "file.json"), "four")
    assert cache.clear(KINDS) == 24 and cache.entries() == []
    assert (cache.folder / "thesis.docx").read_text() == "mine"


def test_runs_are_removed_only_on_request(cache):
    """The list of the user's runs cannot be rebuilt, so it is not removed."""
    write_entry(cache, "runs", "a", size=0, used=1000)
    write_entry(cache, "models", "b", size=20, used=2000)
    assert Cache(cache.folder, limit_bytes=0).prune() == 20 and names(cache) == ["a"]
    assert cache.clear() == 0 and names(cache) == ["a"]
    cache.clear(["runs"])
    assert names(cache) == []


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


def test_concurrent_prunes(tmp_path):
    for _ in range(5):
        for number in range(60):
            write_entry(Cache(tmp_path), "graphs", f"g{number}", size=100, used=1000)
        with ThreadPoolExecutor(4) as pool:
            freed = [pool.submit(Cache(tmp_path, limit_bytes=0).prune) for _ in range(4)]
            assert all(file.result() >= 0 for file in freed)
        assert Cache(tmp_path).entries() == []


def test_entries_that_cannot_be_removed(tmp_path, monkeypatch):
    cache = Cache(tmp_path, limit_bytes=0)
    write_entry(cache, "graphs", "g", size=1, used=1000)

    def refuse(path, *arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("kgqa.storage.cache.shutil.rmtree", refuse)
    assert cache.prune() == 0
    with pytest.raises(SettingsError, match="cannot be removed"):
        cache.clear()


# ---- writing ----


def test_folder_that_cannot_be_created_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")  # nothing can be created below a file, not even by root
    cache = Cache(tmp_path / "file" / "cache")
    assert cache.write_text(cache.entry("graphs", "a"), "text") is False
    assert cache.entries() == []
    assert cache.prune() == cache.clear() == 0


def test_full_disk_leaves_no_partial_file(cache):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        assert cache.write_text(cache.entry("graphs", "a") / "b.json", "x" * 5_000) is False
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path for path in cache.folder.rglob("*") if path.is_file()] == []


def test_concurrent_writes_leave_one_complete_text(cache):
    path = cache.entry("graphs", "a.json")
    texts = [letter * 200_000 for letter in "abcé"]
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda text: [cache.write_text(path, text) for _ in range(20)], texts)
    assert list(results) == [[True] * 20] * 4
    assert path.read_text(encoding="utf-8") in texts
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


# ---- files that cannot be read, on the command line ----


def test_tables_that_cannot_be_read_are_named_and_computed_again(tmp_path, monkeypatch):
    monkeypatch.setenv("KGQA_CACHE_FOLDER", str(tmp_path))
    command = [sys.executable, "-m", "kgqa", "ask", "Who directed Titanic?", "--embeddings", "off"]
    before = subprocess.run(command, capture_output=True, text=True, check=True)
    assert before.stderr == ""
    (tables,) = tmp_path.glob("graphs/*")
    (file,) = tables.glob("tables-*.json")
    file.write_text("{")
    after = subprocess.run(command, capture_output=True, text=True, check=True)
    assert after.stdout.split(" queries, ")[0] == before.stdout.split(" queries, ")[0]
    (line,) = after.stderr.splitlines()
    assert line.startswith(f"{file} cannot be read: Expecting property name")
    assert line.endswith("Its data are computed again; remove it if this message returns.")


@pytest.mark.parametrize("damage", ["folder", "text", "cut"])
@pytest.mark.parametrize("model", ["--replay-only", "--llm=http://127.0.0.1:9#m"])
def test_replay_file_that_cannot_be_read_is_named_in_one_line(tmp_path, monkeypatch, damage, model):
    monkeypatch.setenv("KGQA_RANK_EMBEDDINGS", "off")
    file = tmp_path / "replies.jsonl"
    content = b"my notes" if damage == "text" else b'{"key": "1"}\n{"ke'
    file.mkdir() if damage == "folder" else file.write_bytes(content)
    done = run_limited("ask", "Who?", "--method", "io", "--replay", str(file), model)
    assert done.code == 2 and done.text.startswith(f"kgqa: {file} ") and done.text.count("\n") == 1
    assert "it is not an ordinary file" in done.text or "is not a replay file: " in done.text
    assert damage == "folder" or file.read_bytes() == content
