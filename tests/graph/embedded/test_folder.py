"""The graph folder: its records, locks and generations, and its messages."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from msgspec import structs

from kgqa.errors import StoreBusy, StoreUnavailable
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.records import GraphMeta
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.opening import open_store

LINES = [f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(20)]


def _refuse(number: int):
    """Return a lock class whose locks cannot be taken because of an error of the file system."""

    def refuse(path, *, exclusive):
        raise OSError(number, os.strerror(number), str(path))

    return refuse


class TestFingerprint:
    def test_does_not_depend_on_order_or_repetition(self, load):
        shuffled = LINES * 2
        random.Random(1).shuffle(shuffled)
        one, other = GraphFolder(load(LINES)).meta(), GraphFolder(load(shuffled)).meta()
        assert one.fingerprint == other.fingerprint
        assert one.triples == other.triples == 20

    def test_does_not_depend_on_files_or_loads(self, load, tmp_path):
        files = []
        for n in range(3):
            files.append(tmp_path / f"part{n}.nt")
            files[-1].write_text("\n".join(LINES[n::3]) + "\n")
        whole = GraphFolder(load(LINES)).meta()
        assert GraphFolder(load(files)).meta().fingerprint == whole.fingerprint
        folder = load(files[2])
        load(files[:2], into=folder)
        assert GraphFolder(folder).meta().fingerprint == whole.fingerprint
        assert GraphFolder(folder).meta().triples == 20

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

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            "5",
            '"text"',
            "{}",
            "\x00" * 100,
            "{" * 100_000,
        ],
    )
    def test_damaged_bookkeeping(self, small, text):
        folder = small
        (folder / "graph.json").write_text(text)
        with pytest.raises(StoreUnavailable, match="graph.json cannot be read.*load the data again"):
            open_store(folder)

    @pytest.mark.parametrize("extra", [{"new_key": 1}, {"generation": None}, {"files": 5}, {"graphs": None}])
    def test_bookkeeping_of_the_wrong_shape(self, small, extra):
        folder = small
        data = json.loads((folder / "graph.json").read_text())
        (folder / "graph.json").write_text(json.dumps({**data, **extra}))
        with pytest.raises(StoreUnavailable, match="load the data again"):
            open_store(folder)

    def test_damaged_engine_files(self, small):
        folder = small
        for file in (folder / "gen-1" / "store").iterdir():
            file.write_bytes(b"damaged")
        with pytest.raises(StoreUnavailable), open_store(folder) as store:
            store.select("SELECT * { ?s ?p ?o }")


class TestLocks:
    def test_readers_exclude_only_the_removal_of_their_generation(self, load):
        folder = GraphFolder(load(LINES[:2]))
        first, second = folder.read_lock(1), folder.read_lock(1)
        folder.remove_unused()
        first.close()
        folder.remove_unused()
        assert folder.store_dir(1).is_dir()
        second.close()
        folder.remove_unused()
        assert not folder.store_dir(1).exists()

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

    def test_killed_holder_leaves_no_lock(self, load, python, wait_until):
        folder = GraphFolder(load(LINES[:2]))
        script = (
            "import sys, time; from pathlib import Path; from kgqa.graph.embedded.folder import GraphFolder\n"
            "lock = GraphFolder(Path(sys.argv[1])).write_lock(); print('held', flush=True); time.sleep(60)"
        )
        holder = python(script, folder.path)
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreBusy, match=f"\\({holder.pid}\\)"):
            folder.write_lock()
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
        folder.write_lock().close()

    def test_generation_in_use_is_kept_until_closed(self, load):
        path = load(LINES[:2])
        with EmbeddedStore(path, workers=1) as reader:
            load(LINES[2:4], into=path)
            assert len(reader.select("SELECT * { ?s ?p ?o }")) == 2
            assert (path / "gen-1").is_dir() and (path / "gen-2").is_dir()
        load(LINES[4:6], into=path)
        assert [p.name for p in sorted(path.glob("gen-*"))] == ["gen-3"]
        assert GraphFolder(path).meta().triples == 6


def test_changed_record_keeps_other_fields(load):
    folder = GraphFolder(load(LINES[:2], schema="rdfs", settings={"walks": "free"}))
    before = folder.meta()
    assert isinstance(before, GraphMeta) and before.schema == "rdfs" and before.settings == {"walks": "free"}
    assert folder.update_meta(schema="wikidata").schema == "wikidata"
    assert folder.meta() == structs.replace(before, schema="wikidata")
