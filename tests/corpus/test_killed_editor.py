"""A process that edits a corpus is killed at any point; the next one finishes its work, and nothing is doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kgqa.corpus.checking import check
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.snapshot import snapshot_of
from tests.conftest import ROOT, SOAK
from tests.corpus.editor_process import DOCUMENTS
from tests.corpus.small_corpus import read_document

ADDITIONS = sum(len(read_document(source, *facts)[0]) for source, facts in DOCUMENTS.items())


def run(folder: Path, kind: str, number: int) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tests.corpus.editor_process", str(folder), kind, str(number)]
    return subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120)


def check_corpus(folder: Path) -> None:
    with Corpus.open(folder) as corpus:
        assert check(corpus) == []
        assert [edit.seq for edit in corpus.database.edits()] == [1, 2, 3]
        wanted = snapshot_of(each for name, facts in DOCUMENTS.items() for each in read_document(name, *facts)[0])
        assert tuple(corpus.reader.statements()) == wanted.statements
        assert tuple(corpus.reader.documents()) == wanted.documents
        for source, facts in DOCUMENTS.items():
            assert corpus.text(read_document(source)[0][0].document) == "\n".join(facts)
    left = {each.name for each in folder.iterdir()} - {"corpus.json", "corpus.sqlite", "graph", "write.lock"}
    assert not {name for name in left if not name.startswith("corpus.sqlite-")}


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(5000)
@pytest.mark.parametrize(("kind", "parts"), [("change", (0.3, 0.75)), ("addition", (0.5,))])
def test_killed_at_any_point(tmp_path, kind, parts):
    points = ADDITIONS
    if kind == "change":
        done = run(tmp_path / "whole", kind, 0)
        assert done.returncode == 0, done.stderr.decode()
        points = int(done.stdout)
    for number in range(1, points + 1) if SOAK else [round(part * points) for part in parts]:
        folder = tmp_path / f"{kind}-{number}"
        killed = run(folder, kind, number)
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
        again = run(folder, kind, 0)
        assert again.returncode == 0, again.stderr.decode()
        check_corpus(folder)
