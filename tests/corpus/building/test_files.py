"""Files whose names or folders cross: of one name in two folders, and one file in a folder and in the folder around."""

from pathlib import Path

import pytest

from kgqa.corpus.building.build import build_corpus
from kgqa.corpus.inspection.status import corpus_documents, corpus_status
from kgqa.errors import CorpusError


def write(path: str, text: str = "text") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def build(*paths: str):
    return build_corpus("corpus", paths, embeddings="off")


def sources() -> list[str]:
    return [each["source"] for each in corpus_documents("corpus")]


def test_two_files_of_one_name(tmp_path, monkeypatch):
    """The first one stays, in one build or in two; the other is named once."""
    monkeypatch.chdir(tmp_path)
    write("one/docs/a.txt")
    write("two/docs/a.txt", "other")
    write("two/docs/b.txt")
    build("one/docs")
    report = build("two/docs")
    assert (report.added, report.changed) == (1, 0)
    (left_out,) = corpus_status("corpus").listed
    assert left_out.reason == f"a file of this name was read from {tmp_path / 'one/docs/a.txt'}"
    build("one/docs", "two/docs")
    assert len(corpus_status("corpus").listed) == 1


def test_a_folder_that_has_moved_is_read_from_its_new_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("one/docs/a.txt")
    write("one/docs/b.txt")
    build("one/docs")
    Path("one").rename("two")
    assert build("two/docs").unchanged == 2
    Path("two/docs/b.txt").unlink()
    assert build().removed == 1 and sources() == ["docs/a.txt"]


def test_folder_and_folder_around(tmp_path, monkeypatch):
    """A file is in the corpus once, whichever folder is read first."""
    monkeypatch.chdir(tmp_path)
    write("docs/sub/a.txt")
    write("docs/b.txt")
    build("docs/sub")
    assert sources() == ["sub/a.txt"]
    build("docs")
    assert sources() == ["docs/b.txt", "docs/sub/a.txt"]
    report = build("docs/sub", "docs")
    assert (report.unchanged, report.edits, report.skipped) == (2, 0, [])


def test_a_folder_that_is_gone(tmp_path, monkeypatch):
    """A build of what was read before says what to do about it."""
    monkeypatch.chdir(tmp_path)
    write("docs/a.txt")
    build("docs")
    Path("docs").rename("notes")
    with pytest.raises(CorpusError, match="docs does not exist any more. Give the paths that exist"):
        build()


def test_status_names_the_extractor_of_the_last_build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("docs/a.txt")
    build_corpus("corpus", ["docs"], embeddings="off", extract="rules")
    build_corpus("corpus", ["docs"], embeddings="off", extract="none")
    status = corpus_status("corpus")
    assert (status.extract, status.extractor) == ("none", "")
