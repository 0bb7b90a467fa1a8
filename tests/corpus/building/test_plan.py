"""Which files a build reads, and what it does about files that are gone."""

from __future__ import annotations

import pytest

from kgqa.corpus.building.feeds import GivenFeed
from kgqa.corpus.building.options import chunk_size, chunk_text, in_characters
from kgqa.corpus.building.plan import make_plan
from kgqa.corpus.documents.chunks import ChunkSize
from kgqa.corpus.documents.document import Document
from kgqa.corpus.storage.ledger import FileEntry
from kgqa.errors import SettingsError

ROOT = "given:a"


def feed(name: str, text: str = "x") -> GivenFeed:
    return GivenFeed(name, [Document(name, name, "text/plain", text, text)])


def entry(name: str, *, key: str = "k", removed: bool = False, text: str = "x") -> FileEntry:
    return FileEntry(name, ROOT, feed(name, text).digest(), key, removed)


def plan(feeds, entries, **options):
    return make_plan({ROOT: feeds}, {each.name: each for each in entries}, key="k", **options)


def test_only_what_is_new_or_different_is_read():
    known = [
        entry("same"),
        entry("text", text="old"),
        entry("key", key="old"),
        entry("failed"),
        entry("out", removed=True),
    ]
    names = ("same", "text", "key", "failed", "out", "new")
    found = plan([feed(name) for name in names], known, retry={"failed"})
    assert [each.feed.name for each in found.read] == ["text", "key", "failed", "new"]
    assert (found.unchanged, found.kept_out, found.vanished) == (("same",), ("out",), ())
    restored = plan([feed(name) for name in names], known, restore=True)
    assert "out" in [each.feed.name for each in restored.read]


def test_files_that_are_gone():
    known = [entry("a"), entry("b"), FileEntry("elsewhere", "given:b", "d", "k")]
    assert plan([feed("a")], known).vanished == ("b",)
    assert plan([feed("a")], known, prune=False).vanished == ()
    with pytest.raises(SettingsError, match="no files"):
        plan([], known)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1024/20", ChunkSize(1024, 20)),
        ("400/50", ChunkSize(400, 50)),
        ("300/0tokens", ChunkSize(300, 0)),
        ("2000/100chars", ChunkSize(2000, 100, "characters")),
        ("2000/100 characters", ChunkSize(2000, 100, "characters")),
    ],
)
def test_sizes_of_chunks(text, size):
    assert chunk_size(text) == size and chunk_size(chunk_text(size)) == size
    assert in_characters(size).unit == "characters"


@pytest.mark.parametrize("text", ["", "many", "1024", "10/5", "100/90", "-5/1", "1024/20words", "9" * 20 + "/1"])
def test_sizes_that_are_wrong(text):
    with pytest.raises(SettingsError):
        chunk_size(text)
