"""`check` finds what was changed in the files of a corpus."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kgqa.corpus.checking import check
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.items import document_iri
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.model import Entity, Literal, Triple
from tests.corpus.small_corpus import insert, new_editor


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "c"
    with new_editor(path) as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        insert(editor, "engine.txt", "Babbage/person designed engine", "Ada described engine London/city")
        update = insert(editor, "ada.txt", "Ada wrote 书", "Ada met Babbage/person 🚂", kind="update")
        editor.publish()
        editor.undo(update.id, agent="ann")
        removed = editor.apply("delete", (), editor.removals_of_document(document_iri("engine.txt")), agent="ann")
        editor.undo(removed.id, agent="ann")
        editor.publish()
    return path


@pytest.fixture
def folder(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "c"))


def findings(folder) -> list[str]:
    with Corpus.open(folder) as corpus:
        return check(corpus)


def test_a_whole_corpus(folder):
    assert findings(folder) == []


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE edits SET reason = 'x' WHERE seq = 2", "edit 2 .* was changed"),
        ("UPDATE edits SET at = '2020' WHERE seq = 1", "edit 1 .* was changed"),
        ("UPDATE additions SET stop = stop + 1 WHERE id = 3", "adds or removes was changed"),
        ("UPDATE additions SET confidence = 1.0 WHERE confidence IS NOT NULL", "adds or removes was changed"),
        ("DELETE FROM additions WHERE id = 3", "adds or removes was changed"),
        ("UPDATE items SET body = replace(body, 'wrote', 'stole')", "not have the name of the content"),
        ("DELETE FROM edits WHERE seq = 2", "is missing"),
        ("DELETE FROM removals WHERE id = 1", "adds or removes was changed"),
        ("UPDATE flips SET live = 1 - live", "not have the state that follows"),
        ("DELETE FROM flips WHERE seq = 3", "table flips"),
        ("DELETE FROM concerns WHERE item = 3", "table concerns"),
        ("UPDATE edits SET active = 1 - active WHERE seq = 3", "Which edits are undone"),
        ("UPDATE texts SET text = replace(text, 'wrote', 'stole')", "changed since it was read"),
        ("DELETE FROM texts", "is missing"),
    ],
)
def test_what_was_changed_in_the_database(folder, statement, finding):
    with closing(sqlite3.connect(folder / "corpus.sqlite")) as connection:
        assert connection.execute(statement).rowcount > 0
        connection.commit()
    found = findings(folder)
    assert any(re.search(finding, each) for each in found), found


def test_what_was_changed_in_the_graph(folder):
    with Corpus.open(folder) as corpus:
        graph = corpus.folder.graphs["facts"]
    with EmbeddedStore(folder / "graph", writable=True) as store:
        (fact,) = store.select(f"SELECT ?s FROM <{graph}> WHERE {{ ?s ?p 'Ada' }}")
        label = Triple(fact[0], "http://www.w3.org/2000/01/rdf-schema#label", Literal("Ada"))
        store.edit(graph, [Triple(Entity("urn:x"), "urn:y", Entity("urn:z"))], [label])
    (found,) = findings(folder)
    assert "The graph facts has 1 triple too many and lacks 1" in found
    assert "urn:x" in found


def test_a_graph_that_is_behind(folder):
    with Corpus.open(folder, writable=True) as corpus:
        insert(corpus.editor, "more.txt", "Ada read books")
    (found,) = findings(folder)
    assert "last 1 edit yet" in found


def test_a_graph_of_another_corpus(folder, tmp_path):
    with new_editor(tmp_path / "other") as editor:
        insert(editor, "ada.txt", "Ada wrote notes")
        editor.publish()
    (folder / "graph").rename(tmp_path / "old")
    (tmp_path / "other" / "graph").rename(folder / "graph")
    assert "another corpus" in findings(folder)[0]
    with Corpus.open(folder, writable=True) as corpus:
        assert corpus.editor.publish()
    assert findings(folder) == []
