"""A process that proposes, commits, reviews, undoes, merges or writes an earlier state is killed at any point."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kgqa.corpus.checking import check
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.corpus.editing.holding import HOLDER
from kgqa.corpus.editor import Editor
from kgqa.corpus.history.as_of import write_as_of
from kgqa.corpus.history.merging import merge_from
from kgqa.corpus.history.reviewing import accept, read_book
from kgqa.corpus.history.undoing import plan_undo, undo_all
from kgqa.errors import StoreBusy
from tests.conftest import SOAK
from tests.corpus.editing.edited_corpus import WEB, build, iri_of, overlay, parties, shown
from tests.kill_at_write import _watch

MET = "Ada met Babbage London"


def question(path: Path, mode: str, *texts: str) -> None:
    with Corpus.open(path) as corpus:
        made = overlay(corpus)
        for text in texts or ("Ada knew Somerville.", "Ada met Dickens."):
            made.insert(text, parties("Ada"), [shown(1, text)])
        made.update(iri_of(corpus.reader, MET), "Ada met Babbage in Rome", parties("Ada"), [shown(2, "...")])
        commit(made, mode)


def propose(folder: Path) -> None:
    question(folder / "c", "proposed")


def commit_at_once(folder: Path) -> None:
    question(folder / "c", "auto")


def review(folder: Path) -> None:
    with Editor(folder / "waiting") as editor:
        book = read_book(editor.folder, editor.database)
        accept(editor, book, book.pending(), by="reviewer")
        editor.publish()


def undo(folder: Path) -> None:
    with Editor(folder / "committed") as editor:
        plan = plan_undo(editor.database, source=WEB)
        undo_all(editor, plan, agent="a person")
        editor.publish()


def merge(folder: Path) -> None:
    with Editor(folder / "c") as editor:
        merge_from(editor, folder / "other", hold=True)
        editor.publish()


def earlier(folder: Path) -> None:
    with Corpus.open(folder / "committed") as corpus:
        if not (folder / "then").exists():
            write_as_of(corpus.folder, corpus.database, 2, folder / "then")


OPERATIONS = {
    each.__name__: (each, of)
    for each, of in (
        (propose, "c"),
        (commit_at_once, "c"),
        (review, "waiting"),
        (undo, "committed"),
        (merge, "c"),
        (earlier, "then"),
    )
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder with corpora in several states; each test edits a copy."""
    folder = tmp_path_factory.mktemp("killed")
    build(folder / "c")
    for name, mode in (("waiting", "proposed"), ("committed", "auto"), ("other", "auto")):
        shutil.copytree(folder / "c", folder / name)
        question(folder / name, mode)
    return folder


def run(operation, folder: Path, number: int) -> int:
    """Run an operation in a child process, killed before its change `number` of a file; return its number of changes.

    0 kills never.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            changes = _watch(number, str(folder))
            operation(folder)
            os.write(writer, str(changes[0]).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as pipe:
        changed = pipe.read()
    _, status = os.waitpid(child, 0)
    if not number:
        assert os.waitstatus_to_exitcode(status) == 0
        return int(changed)
    # the engine of the graph does not always write the same number of files
    assert os.waitstatus_to_exitcode(status) in (-signal.SIGKILL, 0)
    return 0


def published(path: Path) -> None:
    """Publish; a process that the killed one had started may keep the lock of the graph for a moment."""
    for _ in range(100):
        with Editor(path) as editor, suppress(StoreBusy):
            editor.publish()
            return
        time.sleep(0.05)


def state(path: Path):
    """Return what a corpus contains, and what became of each edit."""
    published(path)
    with Corpus.open(path) as corpus:
        assert check(corpus) == []
        made = [edit for edit in corpus.database.edits() if edit.kind != "undo" and edit.agent != HOLDER]
        edits = {edit.id: corpus.database.is_active(edit) for edit in made}
        book = read_book(corpus.folder, corpus.database)
        reader = corpus.reader
        return tuple(reader.hyperedges()), tuple(reader.entities()), edits, book.states, len(book.held)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(5000)
@pytest.mark.parametrize("name", OPERATIONS)
def test_killed_anywhere(name, folders, tmp_path):
    operation, of = OPERATIONS[name]
    shutil.copytree(folders, tmp_path / "whole")
    points = run(operation, tmp_path / "whole", 0)
    assert points > 3
    wanted = state(tmp_path / "whole" / of)
    for number in range(1, points + 1) if SOAK else [points * 2 // 3]:
        folder = tmp_path / f"{number}"
        shutil.copytree(folders, folder)
        run(operation, folder, number)
        if operation is commit_at_once:
            # edits that were not committed wait; another run of the same question would be another session
            _, _, edits, states, _ = state(folder / of)
            assert len(edits) == 1 + len(states) or "accepted" not in states.values()
        else:
            if (folder / of).exists():
                state(folder / of)
            if operation is undo:
                with Corpus.open(folder / of) as corpus:  # all or nothing
                    active = {corpus.database.is_active(e) for e in corpus.database.edits(1) if e.kind != "undo"}
                if active == {False}:
                    continue
            operation(folder)
            assert state(folder / of) == wanted, number
        shutil.rmtree(folder)
