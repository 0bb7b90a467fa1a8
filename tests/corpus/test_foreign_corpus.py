"""Corpus folders that come from somebody else: whatever they contain, nothing but a CorpusError is raised."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.records import CommunityRecord
from kgqa.corpus.storage.connection import Connections
from kgqa.corpus.storage.database import Database
from kgqa.corpus.storage.ledger import FileEntry, Ledger
from kgqa.errors import CorpusError
from tests.corpus.small_corpus import insert, new_editor
from tests.hostile_files import journal_naming


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "c"
    with new_editor(path) as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person London/city")
        editor.publish()
    return path


@pytest.fixture
def folder(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "c"))


def read_all(folder: Path) -> None:
    with Corpus.open(folder) as corpus:
        reader = corpus.reader
        documents = list(reader.documents())
        for records in (reader.chunks, reader.entities, reader.statements, reader.hyperedges, reader.communities):
            list(records())
        list(corpus.database.edits())
        for each in documents:
            corpus.text(each.iri)


def test_the_original(folder):
    read_all(folder)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON edits BEGIN DELETE FROM edits; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (x)",
        "DROP TABLE flips",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 99",
        "UPDATE items SET body = '[]'",
        "UPDATE items SET body = replace(hex(zeroblob(100000)), '00', '[')",
        "UPDATE items SET body = json_set(body, '$.begin', 'x') WHERE kind = 'chunk'",
        "UPDATE items SET body = json_set(body, '$.subject', 7) WHERE kind = 'statement'",
        "UPDATE items SET body = json_set(body, '$.participants', json('[[1, 2]]')) WHERE kind = 'hyperedge'",
        "UPDATE items SET body = json_set(body, '$.extra', 7)",
        "UPDATE additions SET start = 'x'",
        "UPDATE additions SET confidence = x'00'",
        "UPDATE words SET text = x'ff' || id",
        "UPDATE edits SET kind = 'other'",
        "UPDATE edits SET sources = '[[1]]'",
        "UPDATE edits SET reason = x'ff'",
        "DELETE FROM texts",
    ],
)
def test_a_strange_database(folder, statement):
    with closing(sqlite3.connect(folder / "corpus.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(CorpusError):
        read_all(folder)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9])
def test_a_damaged_database(folder, part):
    file = folder / "corpus.sqlite"
    data = bytearray(file.read_bytes())
    begin = int(part * len(data))
    data[begin : begin + 5000] = b"\xff" * 5000
    file.write_bytes(data)
    try:
        read_all(folder)
    except CorpusError:
        return
    assert part > 0  # what was not read


def test_an_empty_database(folder):
    (folder / "corpus.sqlite").write_bytes(b"")
    with pytest.raises(CorpusError):
        read_all(folder)


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"graph": "/etc"}, {"graph": "../other"}, {"schema": "../x.toml"}, {"views": []}, {"base": 7}],
)
def test_a_strange_file(folder, change):
    data = json.loads((folder / "corpus.json").read_text())
    (folder / "corpus.json").write_text(json.dumps({**data, **change}))
    with pytest.raises(CorpusError), Corpus.open(folder, writable=True) as corpus:
        insert(corpus.editor, "more.txt", "Ada read books")
        corpus.editor.publish()


@pytest.mark.parametrize("name", ["graph", "corpus.sqlite"])
def test_nothing_is_written_through_a_link(folder, tmp_path, name):
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorpusError, match="is a link"), Corpus.open(folder, writable=True) as corpus:
        insert(corpus.editor, "more.txt", "Ada read books")
        corpus.editor.publish()


def test_no_file_that_a_journal_names_is_removed(folder, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious" * 10)
    (folder / "corpus.sqlite-journal").write_bytes(journal_naming(victim))
    for writable in (False, True):
        with suppress(CorpusError), Corpus.open(folder, writable=writable):
            pass
        assert victim.read_text() == "precious" * 10


def test_two_communities_of_one_name(folder):
    with Database(folder / "corpus.sqlite", writable=True) as database:
        database.communities.replace([CommunityRecord("a", level, "", (), "", "", "") for level in (0, 1)])
    with pytest.raises(CorpusError, match="the record a comes after a"), Corpus.open(folder) as corpus:
        corpus.index


def test_a_ledger_with_wrong_types(folder):
    with Database(folder / "corpus.sqlite", writable=True) as database:
        ledger = Ledger(database, writable=True)
        ledger.put_file(FileEntry("a", b"\xff", "", ""))
        with pytest.raises(CorpusError, match="'root' of a file or document has a wrong type"):
            ledger.files()


@pytest.mark.parametrize("log", [False, True])
def test_a_disk_that_cannot_be_written(folder, monkeypatch, log):
    if log:  # a reader leaves an empty one
        (folder / "corpus.sqlite-wal").touch()
    original = Connections._open

    def open_(self, mode):
        if mode == "mode=ro":  # SQLite cannot create the files that belong to a log
            raise sqlite3.OperationalError("unable to open database file")
        return original(self, mode)

    monkeypatch.setattr(Connections, "_open", open_)
    read_all(folder)
