"""Reading a dump in parts, and cleaning it in several processes: files, resuming and errors."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.dump_sample import dump_lines, write_dump
from kgqa.errors import KgqaError, LoadError
from kgqa.virtuoso.freebase import cleaning
from kgqa.virtuoso.freebase.blocks import EXAMPLES, BlockJudge, Tally
from kgqa.virtuoso.freebase.cleaning import FILES_PER_GROUP, chunk_file, clean_dump, clean_groups, read_blocks
from kgqa.virtuoso.freebase.judge import MAX_LINE_BYTES, Cleaning

CLEANING = Cleaning()
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


class TestTally:
    def test_json_round_trip_and_sum(self):
        again = Tally(**json.loads(json.dumps(TALLY.as_json())))
        assert again == TALLY
        again.add(TALLY)
        assert again.lines == 2 * COUNT == again.kept + sum(again.dropped.values())
        assert again.examples.keys() == TALLY.examples.keys()
        assert all(again.examples[reason][:1] == shown[:1] for reason, shown in TALLY.examples.items())

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
        assert len(found) == min(-(-COUNT // lines_per_chunk), COUNT)
        # a file with the lines of one part
        for number, name in enumerate(sorted(found)) if lines_per_chunk < 1_000 else ():
            own = b"".join(LINES[number * lines_per_chunk : (number + 1) * lines_per_chunk])
            assert found[name] == BlockJudge(CLEANING).block(own)[0]
            assert name == chunk_file(tmp_path, number // FILES_PER_GROUP, number % FILES_PER_GROUP).name

    def test_counting_writes_no_files_and_reports_progress(self, dump, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        steps = []
        tally = clean_dump(dump, CLEANING, None, lines_per_chunk=200, progress=lambda *step: steps.append(step))
        assert counts(tally) == counts(TALLY) and list(tmp_path.iterdir()) == []
        assert {group for group, _ in steps} == set(range(8))
        assert max(bytes_read for _, bytes_read in steps) <= dump.stat().st_size

    def test_folder_with_chunks_is_refused(self, dump, tmp_path):
        (tmp_path / "freebase-000007.nt").write_text("mine")
        with pytest.raises(LoadError, match="already contains chunk files .freebase-000007.nt"):
            clean_dump(dump, CLEANING, tmp_path)
        assert contents(tmp_path) == {"freebase-000007.nt": b"mine"}

    def test_truncated_dump(self, dump, tmp_path):
        (tmp_path / "cut.gz").write_bytes(dump.read_bytes()[:-100])
        with pytest.raises(LoadError, match="truncated"):
            clean_dump(tmp_path / "cut.gz", CLEANING, tmp_path / "out", workers=3)
        assert not [file for file in (tmp_path / "out").iterdir() if file.suffix == ".part"]

    def test_disk_full(self, small_disk, tmp_path):
        write_dump(tmp_path / "dump.gz", 60_000, broken=0)
        with pytest.raises(LoadError, match=r"cannot be written \(No space left on device\).*Free some space"):
            clean_dump(tmp_path / "dump.gz", CLEANING, small_disk(2) / "out", workers=2)


class TestGroups:
    def test_resume_at_each_group(self, dump, tmp_path):
        whole, done, number = tmp_path / "whole", Tally(), -1
        clean_dump(dump, CLEANING, whole, lines_per_chunk=400)
        wanted = contents(whole)
        for number in range(4):
            folder = tmp_path / str(number)
            folder.mkdir()
            groups = clean_groups(dump, CLEANING, folder, lines_per_chunk=400, workers=2, first_group=number)
            files, tally = next(groups)
            assert {file.name: file.read_bytes() for file in files} == {
                file.name: wanted.get(file.name, b"") for file in files
            }
            done.add(tally)
            assert len(list(groups)) == 3 - number
        assert counts(done) == counts(TALLY)

    def test_workers_end_with_the_iterator(self, dump):
        """A worker that was killed is an error."""
        groups = clean_groups(dump, CLEANING, None, lines_per_chunk=100, workers=2)
        next(groups)
        workers = children()
        assert len(workers) == 2
        os.kill(workers[1], signal.SIGKILL)
        with pytest.raises(KgqaError, match="was killed by signal 9.*lower workers="):
            list(groups)
        assert children() == []

    def test_workers_end_with_a_killed_parent(self, dump):
        code = (
            "import sys, pathlib\n"
            "from kgqa.virtuoso.freebase.cleaning import clean_groups\n"
            "from kgqa.virtuoso.freebase.judge import Cleaning\n"
            "groups = clean_groups(pathlib.Path(sys.argv[1]), Cleaning(), None, lines_per_chunk=10, workers=2)\n"
            "print(len(next(groups)), flush=True)\n"
            "sys.stdin.read()\n"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", code, dump], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        parent.stdout.readline()
        workers = children(parent.pid)
        assert len(workers) == 2
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 120
        while any(map(is_worker, workers)):
            assert time.monotonic() < deadline, "the workers outlive their parent"
            time.sleep(0.1)


def children(parent: int | None = None) -> list[int]:
    """Return the process ids of the workers of a process."""
    text = Path(f"/proc/{parent or os.getpid()}/task/{parent or os.getpid()}/children").read_text()
    return [pid for pid in map(int, text.split()) if is_worker(pid)]


def is_worker(pid: int) -> bool:
    try:
        return b"freebase.cleaning" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


# ---- reading ----

NUMBERED = [b"%d %s\n" % (number, b"x" * (number % 50)) for number in range(1, 501)]
TEXT = b"".join(NUMBERED)


def members(*parts: bytes, between: bytes = b"") -> bytes:
    return between.join(gzip.compress(part) for part in parts)


FILES = {
    "text": TEXT,
    "one member": members(TEXT),
    "members at line ends": members(b"".join(NUMBERED[:200]), b"".join(NUMBERED[200:350]), b"".join(NUMBERED[350:])),
    "members in lines": members(TEXT[:1000], TEXT[1000:5001], TEXT[5001:]),
    "empty members": members(b"", TEXT, b""),
    "zeros between members": members(TEXT[:5000], TEXT[5000:], between=b"\0" * 700),
    "zeros at the end": members(TEXT) + b"\0" * 100_000,
}  # fmt: skip


@pytest.fixture(params=[1 << 18, 700], ids=["large pieces", "small pieces"])
def piece_size(request, monkeypatch):
    monkeypatch.setattr(cleaning, "BLOCK_BYTES", request.param)


@pytest.fixture
def write_file(tmp_path, piece_size):
    def write(data: bytes):
        file = tmp_path / "dump"
        file.write_bytes(data)
        return file

    return write


@pytest.mark.parametrize("lines_per_part", [1, 7, 30, 100, 499, 500, 501, 1_000_000])
@pytest.mark.parametrize("name", FILES)
def test_lines_of_the_wanted_parts(write_file, name, lines_per_part):
    parts = [NUMBERED[start : start + lines_per_part] for start in range(0, len(NUMBERED), lines_per_part)]
    for wanted in (set(range(len(parts))), {2, 3, 9, 16}):
        blocks = list(read_blocks(write_file(FILES[name]), lines_per_part=lines_per_part, wanted=wanted.__contains__))
        for number, part in enumerate(parts):
            data = b"".join(block.data for block in blocks if block.part == number)
            assert data == (b"".join(part) if number in wanted else b"")
        for block in blocks:
            assert block.data.endswith(b"\n") and block.data.startswith(NUMBERED[block.first_line - 1])
            assert block.bytes_read <= len(FILES[name])


@pytest.mark.parametrize("compressed", [False, True])
def test_last_line_without_newline_and_empty_write_file(write_file, compressed):
    pack = members if compressed else bytes
    blocks = list(read_blocks(write_file(pack(TEXT + b"the last one")), lines_per_part=100))
    assert b"".join(block.data for block in blocks) == TEXT + b"the last one\n"
    assert blocks[-1].data == b"the last one\n" and blocks[-1].first_line == 501
    assert list(read_blocks(write_file(pack(b"")), lines_per_part=10)) == []


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("wanted", [True, False])
def test_memory_for_a_long_line_is_bounded(write_file, compressed, wanted):
    data = b"first\n" + b"x" * (3 * MAX_LINE_BYTES) + b"\nlast\n"
    file = write_file(members(data) if compressed else data)
    blocks = list(read_blocks(file, lines_per_part=1, wanted=lambda part: wanted or part != 1))
    long = [len(block.data) for block in blocks if block.part == 1]
    assert bool(long) == wanted
    assert all(MAX_LINE_BYTES < size < 2 * MAX_LINE_BYTES for size in long)
    assert [block.data for block in blocks if block.part != 1] == [b"first\n", b"last\n"]


def test_damage(write_file, tmp_path):
    data = members(TEXT[:9000], random.Random(1).randbytes(5000) + TEXT)
    noise = bytearray(members(random.Random(1).randbytes(50_000).replace(b"\n", b" ") + TEXT))
    noise[30_000:30_100] = bytes(100)
    cut = [data[:end] for end in (len(data) - 1, len(data) - 9, len(data) // 2, 5)]
    for damaged in (*cut, bytes(noise), members(TEXT) + b"rubbish"):
        with pytest.raises(LoadError, match=r"truncated or damaged .*Download it again.*gzip -t"):
            list(read_blocks(write_file(damaged), lines_per_part=10))
    for file in (tmp_path / "nothing", tmp_path):
        with pytest.raises(LoadError, match="cannot be read"):
            list(read_blocks(file, lines_per_part=10))
