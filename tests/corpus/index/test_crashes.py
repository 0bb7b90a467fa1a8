"""A build of the index that is killed at any of its writes leaves the old index or the new one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kgqa.corpus.index.corpus_index import CorpusIndex, _load
from kgqa.corpus.index.vector_files import VectorFiles
from kgqa.corpus.retrieve.opening import open_retriever
from tests.conftest import ROOT
from tests.corpus.memory_corpus import corpus_of
from tests.corpus.word_encoder import WordEncoder

OLD = [("Old", "An old text."), ("Both", "It stays.", [("Both", "stays", "here")])]
NEW = [OLD[1], ("New", "A new text.", [("New", "is", "here")])]
BUILD = """
import os, signal, sys
import kgqa.corpus.index.generation as generation
from pathlib import Path
from tests.corpus.index.test_crashes import NEW, CorpusIndex, WordEncoder, corpus_of

folder, number, count = sys.argv[1], int(sys.argv[2]), 0
WATCHED = ("os.rename", "os.remove", "os.mkdir", "os.truncate", "shutil.rmtree")

def hook(event, details):
    global count
    if event in WATCHED or (event == "open" and details[2] and details[2] & (os.O_WRONLY | os.O_RDWR)):
        if str(details[0]).startswith(folder):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

generation.EMBEDDED_AT_A_TIME = 2
sys.addaudithook(hook)
CorpusIndex.open(Path(folder), corpus_of(NEW, seq=2), WordEncoder())
print(count)
"""


def build(folder, number):
    command = [sys.executable, "-c", BUILD, str(folder), str(number)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def found(index):
    return {piece.text.split("\n")[0] for piece in open_retriever(index, channels=["dense"]).search(["text"], 9)[0]}


@pytest.mark.slow
def test_build_killed_at_any_write(tmp_path):
    whole = tmp_path / "whole"
    CorpusIndex.open(whole, corpus_of(OLD), WordEncoder())
    done = build(whole, 0)
    assert done.returncode == 0, done.stderr
    changes = int(done.stdout)
    assert changes > 30
    for number in range(1, changes + 1, max(1, changes // 5)):
        folder = tmp_path / str(number)
        CorpusIndex.open(folder, corpus_of(OLD), WordEncoder())
        assert build(folder, number).returncode == -9
        left = _load(folder, VectorFiles(folder / "vectors", 64), WordEncoder())
        assert left is not None and found(left) in ({"Old", "Both"}, {"Both", "New"}), number
        index = CorpusIndex.open(folder, corpus_of(NEW, seq=2), WordEncoder())
        assert found(index) == {"Both", "New"} and index.vectors is not None, number
        assert found(CorpusIndex.open(folder, corpus_of(OLD), WordEncoder())) == {"Old", "Both"}
        assert len(list(folder.glob("g*"))) == 1 == len(list((folder / "vectors").glob("v*"))), number
