"""What builds do with documents that a user removed, or whose edits were undone."""

from pathlib import Path

import pytest

from kgqa.corpus.building.build import build_corpus
from kgqa.corpus.building.options import BuildOptions
from kgqa.corpus.building.removing import remove_sources
from kgqa.corpus.building.tools import open_tools
from kgqa.corpus.editor import Editor
from kgqa.corpus.inspection.status import corpus_documents, corpus_status


@pytest.fixture(autouse=True)
def documents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    Path("docs/a.txt").write_text("text a")
    Path("docs/r.jsonl").write_text('{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n')
    build()


def build(**options):
    return build_corpus("corpus", ["docs"], options=BuildOptions(**options), embeddings="off")


def remove(name: str) -> int:
    with open_tools(embeddings="off") as tools:
        return remove_sources("corpus", [name], tools=tools).removed


def undo_last() -> None:
    with Editor("corpus") as editor:
        *_, last = editor.database.edits()
        editor.undo(last.id, agent="test")
        editor.publish()


def sources() -> list[str]:
    return [each["source"] for each in corpus_documents("corpus")]


@pytest.mark.parametrize("name", ["docs/a.txt", "docs/r.jsonl#1", "docs/r.jsonl"])
def test_removed_documents_stay_out_until_they_are_added(name):
    before = sources()
    left = [each for each in before if not each.startswith(name)]
    assert remove(name) == 3 - len(left) and sources() == left
    assert build().unchanged == len(left) and sources() == left
    assert build(restore=True, prune=False).added == 3 - len(left) and sources() == before


@pytest.mark.parametrize("name", ["docs/a.txt", "docs/r.jsonl#1", "docs/r.jsonl"])
def test_an_undone_removal(name):
    """The documents are there as if they had never been removed."""
    before = sources()
    removed = remove(name)
    for _ in range(removed):
        with Editor("corpus") as editor:
            edits = [
                each for each in editor.database.edits() if each.kind == "delete" and editor.database.is_active(each)
            ]
            editor.undo(edits[-1].id, agent="test")
    report = build()
    assert (report.unchanged, report.kept_out, report.edits) == (3, 0, 0) and sources() == before
    assert corpus_status("corpus").removed_files == ()
    assert remove(name) == removed


def test_an_undone_build():
    """The documents are out of the corpus, as if they had been removed."""
    undo_last()
    report = build()
    assert (report.unchanged, report.kept_out) == (0, 2) and sources() == []
    assert corpus_status("corpus").removed_files == ("docs/a.txt", "docs/r.jsonl")
    assert build(restore=True, prune=False).added == 3
