"""Cleaning a dump in several processes: files, resuming and errors."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kgqa.virtuoso.freebase.dump.layout import (
    FILES_PER_GROUP,
    Layout,
    chunk_file,
    chunk_files,
    file_of,
    files_of_worker,
)
from kgqa.virtuoso.freebase.dump.lines import BlockJudge
from kgqa.virtuoso.freebase.dump.reader import DumpPosition
from kgqa.virtuoso.freebase.dump.rules import Cleaning
from kgqa.virtuoso.freebase.dump.tally import EXAMPLES, Tally
from kgqa.virtuoso.freebase.rules import freebase_rules

from benchmarks.dump_sample import dump_lines, write_dump
from kgqa.errors import KgqaError, LoadError
from kgqa.virtuoso.freebase.cleaning import Cleaner, clean_dump

CLEANING = Cleaning(rules=freebase_rules())
COUNT = 6000
LINES = list(dump_lines(COUNT, seed=3, broken=0.05))
KEPT, TALLY = BlockJudge(CLEANING).block(b"".join(LINES))


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """A dump of four gzip members."""
    file = tmp_path_factory.mktemp("dump") / "freebase.gz"
    cuts = [0, 1000, 2500, 2600, COUNT]
    file.write_bytes(b"".join(gzip.compress(b"".join(LINES[a:b])) for a, b in itertools.pairwise(cuts)))
    return file


def counts(tally: Tally) -> dict:
    return {name: value for name, value in tally.as_json().items() if name != "examples"}


def contents(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


class TestLayout:
    @given(st.integers(1, 300_000), st.integers(0, 500))
    def test_parts_of_files_and_groups(self, lines_per_chunk, part):
        layout = Layout(lines_per_chunk)
        assert 0 < layout.lines_per_part * layout.parts_per_file <= lines_per_chunk
        first = layout.group_of(part) * layout.parts_per_group
        assert first <= part < first + layout.parts_per_group
        own = [p for p in range(first, first + layout.parts_per_group) if file_of(p) == file_of(part)]
        assert len(own) == layout.parts_per_file

    @pytest.mark.parametrize("workers", range(1, FILES_PER_GROUP + 1))
    def test_each_file_has_one_writer(self, workers):
        files = [file for worker in range(workers) for file in files_of_worker(worker, workers)]
        assert sorted(files) == list(range(FILES_PER_GROUP))

    def test_chunks_are_numbered_consecutively(self, tmp_path):
        assert chunk_file(tmp_path, 0, 0).name == "freebase-000001.nt"
        assert chunk_file(tmp_path, 2, 1).name == "freebase-000010.nt"
        (tmp_path / "freebase-notes.nt").touch()
        assert chunk_files(tmp_path) == []


class TestTally:
    def test_json_round_trip_and_sum(self):
        again = Tally(**json.loads(json.dumps(TALLY.as_json())))
        assert again == TALLY
        again.add(TALLY)
        assert again.lines == 2 * COUNT == again.kept + sum(again.dropped.values())

    def test_first_examples_are_kept(self):
        tally, other = Tally(), Tally()
        for line in range(10, 0, -1):
            (tally if line % 2 else other).show("reason", line, b"x" * 1000)
        tally.add(other)
        assert [example["line"] for example in tally.examples["reason"]] == [1, 2, 3]
        assert {len(example["text"]) for example in tally.examples["reason"]} == {200}

    def test_every_reason_has_examples(self):
        assert set(TALLY.examples) == set(TALLY.dropped)
        assert all(1 <= len(shown) <= EXAMPLES for shown in TALLY.examples.values())
        for reason, shown in TALLY.examples.items():
            for example in shown:
                line = LINES[example["line"] - 1].decode("utf-8", "replace")
                assert line.startswith(example["text"].removesuffix("\ufffd")), reason


class TestCleanDump:
    @pytest.mark.parametrize(("workers", "lines_per_chunk"), [(1, 100), (2, 700), (3, 100), (4, 700), (2, 1_000_000)])
    def test_files_do_not_depend_on_the_number_of_processes(self, dump, tmp_path, workers, lines_per_chunk):
        tally = clean_dump(dump, CLEANING, tmp_path / "out", lines_per_chunk=lines_per_chunk, workers=workers)
        assert counts(tally) == counts(TALLY)
        found = contents(tmp_path / "out")
        assert sorted(b"".join(found.values()).splitlines()) == sorted(KEPT.splitlines())
        # the lines of each file are known from its parts
        layout = Layout(lines_per_chunk)
        wanted: dict[str, bytes] = {}
        for part in range(-(-COUNT // layout.lines_per_part)):
            name = chunk_file(tmp_path, layout.group_of(part), file_of(part)).name
            own = b"".join(LINES[part * layout.lines_per_part : (part + 1) * layout.lines_per_part])
            wanted[name] = wanted.get(name, b"") + BlockJudge(CLEANING).block(own)[0]
        assert found == {name: data for name, data in wanted.items() if data}

    def test_counting_writes_no_files(self, dump, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert counts(clean_dump(dump, CLEANING, None)) == counts(TALLY)
        assert list(tmp_path.iterdir()) == []

    def test_progress(self, dump):
        steps = []
        clean_dump(dump, CLEANING, None, lines_per_chunk=200, workers=2, progress=lambda *step: steps.append(step))
        assert {group for group, _ in steps} == set(range(8))
        assert max(bytes_read for _, bytes_read in steps) <= dump.stat().st_size

    def test_folder_with_chunks_is_refused(self, dump, tmp_path):
        (tmp_path / "freebase-000007.nt").write_text("mine")
        with pytest.raises(LoadError, match="already contains chunk files .freebase-000007.nt"):
            clean_dump(dump, CLEANING, tmp_path)
        assert contents(tmp_path) == {"freebase-000007.nt": b"mine"}

    @pytest.mark.parametrize("workers", [1, 3])
    def test_truncated_dump(self, dump, tmp_path, workers):
        (tmp_path / "cut.gz").write_bytes(dump.read_bytes()[:-100])
        with pytest.raises(LoadError, match="truncated"):
            clean_dump(tmp_path / "cut.gz", CLEANING, tmp_path / "out", workers=workers)
        assert not [file for file in (tmp_path / "out").iterdir() if file.suffix == ".part"]

    def test_missing_dump(self, tmp_path):
        with pytest.raises(LoadError, match="cannot be read.*Check the path"):
            clean_dump(tmp_path / "nothing.gz", CLEANING, None)

    def test_empty_dump(self, tmp_path):
        (tmp_path / "empty").touch()
        assert clean_dump(tmp_path / "empty", CLEANING, tmp_path / "out") == Tally()
        assert contents(tmp_path / "out") == {}

    def test_disk_full(self, small_disk, tmp_path):
        write_dump(tmp_path / "dump.gz", 60_000, broken=0)
        with pytest.raises(LoadError, match=r"is full \(.* GB free\).*up to .* GB.*Free some space"):
            clean_dump(tmp_path / "dump.gz", CLEANING, small_disk(2) / "out", workers=2)


class TestCleaner:
    def test_resume_at_each_group(self, dump, tmp_path):
        whole = tmp_path / "whole"
        clean_dump(dump, CLEANING, whole, lines_per_chunk=400)
        position, done, wanted = DumpPosition(), Tally(), contents(whole)
        for number in range(4):
            folder = tmp_path / str(number)
            folder.mkdir()
            with Cleaner(dump, CLEANING, folder, 400, workers=2, first_group=number, place=position) as cleaner:
                cleaner.start(number)
                group = cleaner.wait(number)
            assert contents(folder) == {name: wanted.get(name, b"") for name in (file.name for file in group.files)}
            done.add(group.tally)
            assert (group.place is None) == (number == 3)
            position = group.place
            # positions are starts of gzip members, so at most one member is read again
            assert position is None or position.line in (0, 1000, 2500, 2600)
        assert counts(done) == counts(TALLY)

    def test_killed_worker_is_an_error(self, dump):
        with Cleaner(dump, CLEANING, None, 100, workers=2) as cleaner:
            os.kill(cleaner._running[1]._process.pid, signal.SIGKILL)
            cleaner.start(0)
            with pytest.raises(KgqaError, match="was killed by signal 9.*lower workers="):
                cleaner.wait(0)

    def test_workers_end_with_the_cleaner(self, dump):
        with Cleaner(dump, CLEANING, None, 100, workers=2) as cleaner:
            cleaner.start(0)
            processes = [worker._process for worker in cleaner._running]
        assert [process.poll() for process in processes] == [-9, -9]

    def test_workers_end_with_a_killed_parent(self, dump, tmp_path):
        code = (
            "import sys, os, pathlib\n"
            "from kgqa.virtuoso.freebase.cleaning import Cleaner\n"
            "from kgqa.virtuoso.freebase.dump.rules import Cleaning\n"
            "with Cleaner(pathlib.Path(sys.argv[1]), Cleaning(), None, 10, workers=2) as cleaner:\n"
            "    print(*(w._process.pid for w in cleaner._running), flush=True)\n"
            "    sys.stdin.read()\n"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", code, dump], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        pids = list(map(int, parent.stdout.readline().split()))
        parent.kill()
        parent.wait()
        assert len(pids) == 2
        for _ in range(100):
            if not any(_is_worker_running(pid) for pid in pids):
                break
            time.sleep(0.1)
        assert not any(_is_worker_running(pid) for pid in pids)


def _is_worker_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"dump_worker" in file.read()
    except OSError:
        return False
