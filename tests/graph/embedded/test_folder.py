"""The graph folder: its records, locks and generations, and its messages."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from pathlib import Path

import pytest

from kgqa.errors import StoreBusy, StoreUnavailable
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.opening import open_store

LINES = [f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(20)]


def _refuse(number: int):
    """Return a lock class whose locks cannot be taken because of an error of the file system."""

    def refuse(path, *, exclusive):
        raise OSError(number, os.strerror(number), str(path))

    return refuse


class TestFingerprint:
    def test_does_not_depend_on_order_repetition_files_or_loads(self, load, tmp_path):
        shuffled = LINES * 2
        random.Random(1).shuffle(shuffled)
        files = [tmp_path / f"part{n}.nt" for n in range(3)]
        for n, file in enumerate(files):
            file.write_text("\n".join(LINES[n::3]) + "\n")
        twice = load(files[2])
        load(files[:2], into=twice)
        metas = [GraphFolder(folder).meta() for folder in (load(LINES), load(shuffled), load(files), twice)]
        assert {(meta.fingerprint, meta.triples) for meta in metas} == {(metas[0].fingerprint, 20)}

    def test_depends_on_the_graph_name(self, load):
        plain, named = load(LINES[:1]), load([LINES[0][:-1] + "<http://e/g> ."])
        assert GraphFolder(plain).meta().fingerprint != GraphFolder(named).meta().fingerprint


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    (folder / "data.nt").write_text("\n".join(LINES[:2]) + "\n")
    load_graph(folder / "g", [folder / "data.nt"])
    return folder / "g"


@pytest.fixture
def small(original, tmp_path):
    """Return a graph of two triples that a test may damage."""
    return Path(shutil.copytree(original, tmp_path / "small"))


class TestNoGraph:
    def test_missing_folder(self, tmp_path):
        with pytest.raises(StoreUnavailable, match="There is no graph at .*nowhere.*load_into_"):
            open_store(tmp_path / "nowhere")
        assert not (tmp_path / "nowhere").exists()

    def test_folder_with_other_files(self, tmp_path):
        (tmp_path / "letter.txt").write_text("dear")
        with pytest.raises(StoreUnavailable, match="is not a graph folder"):
            open_store(tmp_path)
        data = tmp_path.parent / f"{tmp_path.name}.nt"
        data.write_text(LINES[0] + "\n")
        with pytest.raises(StoreUnavailable, match="contains other files"):
            load_graph(tmp_path, [data])
        assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]

    def test_damaged_record(self, small):
        record = json.loads((small / "graph.json").read_text())
        wrong = [{"new_key": 1}, {"generation": None}, {"files": 5}, {"graphs": None}]
        for text in ("", "[]", "5", "\x00" * 100, "{" * 100_000, *(json.dumps({**record, **each}) for each in wrong)):
            (small / "graph.json").write_text(text)
            with pytest.raises(StoreUnavailable, match="graph.json cannot be read.*load the data again"):
                open_store(small)

    def test_damaged_engine_files(self, small):
        for file in (small / "gen-1" / "store").iterdir():
            file.write_bytes(b"damaged")
        with pytest.raises(StoreUnavailable), open_store(small) as store:
            store.select("SELECT * { ?s ?p ?o }")


class TestLocks:
    @pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOLCK])
    def test_graph_is_read_without_a_lock_where_none_can_be_taken(self, load, monkeypatch, number):
        folder = GraphFolder(load(LINES[:2]))
        monkeypatch.setattr("kgqa.graph.embedded.folder.Lock", _refuse(number))
        assert folder.read_lock(1) is None
        assert not folder.is_being_written()

    def test_first_load_in_progress(self, tmp_path):
        (tmp_path / "g" / "gen-1").mkdir(parents=True)
        (tmp_path / "g" / "gen-1" / "loading.json").write_text("{}")
        folder = GraphFolder(tmp_path / "g")
        assert not folder.is_being_written()
        lock = folder.write_lock()
        try:
            assert folder.is_being_written()
            with pytest.raises(StoreBusy, match="Another process is loading data into"):
                open_store(tmp_path / "g")
        finally:
            lock.close()
        assert not folder.is_being_written()

    def test_generation_in_use_is_kept_until_closed(self, load):
        path = load(LINES[:2])
        with EmbeddedStore(path, workers=1) as reader:
            load(LINES[2:4], into=path)
            assert len(reader.select("SELECT * { ?s ?p ?o }")) == 2
            assert (path / "gen-1").is_dir() and (path / "gen-2").is_dir()
        load(LINES[4:6], into=path)
        assert [p.name for p in sorted(path.glob("gen-*"))] == ["gen-3"]
        assert GraphFolder(path).meta().triples == 6
