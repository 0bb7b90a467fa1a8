"""Reading a dump: compression, damage and parts."""

from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.errors import LoadError
from kgqa.virtuoso.freebase import cleaning
from kgqa.virtuoso.freebase.cleaning import read_blocks
from kgqa.virtuoso.freebase.judge import MAX_LINE_BYTES

LINES = [b"%d %s\n" % (number, b"x" * (number % 50)) for number in range(1, 501)]
TEXT = b"".join(LINES)


def members(*parts: bytes, between: bytes = b"") -> bytes:
    return between.join(gzip.compress(part) for part in parts)


FILES = {
    "text": TEXT,
    "one member": members(TEXT),
    "members at line ends": members(b"".join(LINES[:200]), b"".join(LINES[200:350]), b"".join(LINES[350:])),
    "members in lines": members(TEXT[:1000], TEXT[1000:5001], TEXT[5001:]),
    "empty members": members(b"", TEXT, b""),
    "zeros between members": members(TEXT[:5000], TEXT[5000:], between=b"\0" * 700),
    "zeros at the end": members(TEXT) + b"\0" * 100_000,
}  # fmt: skip


@pytest.fixture(params=[1 << 18, 700], ids=["large pieces", "small pieces"], autouse=True)
def piece_size(request, monkeypatch):
    monkeypatch.setattr(cleaning, "BLOCK_BYTES", request.param)


@pytest.fixture
def dump(tmp_path):
    def write(data: bytes):
        file = tmp_path / "dump"
        file.write_bytes(data)
        return file

    return write


@pytest.mark.parametrize("lines_per_part", [1, 7, 30, 100, 499, 500, 501, 1_000_000])
@pytest.mark.parametrize("name", FILES)
def test_lines_of_the_wanted_parts(dump, name, lines_per_part):
    parts = [LINES[start : start + lines_per_part] for start in range(0, len(LINES), lines_per_part)]
    for wanted in (set(range(len(parts))), {2, 3, 9, 16}):
        blocks = list(read_blocks(dump(FILES[name]), lines_per_part=lines_per_part, wanted=wanted.__contains__))
        for number, part in enumerate(parts):
            data = b"".join(block.data for block in blocks if block.part == number)
            assert data == (b"".join(part) if number in wanted else b"")
        for block in blocks:
            assert block.data.endswith(b"\n") and block.data.startswith(LINES[block.first_line - 1])
            assert block.bytes_read <= len(FILES[name])


@pytest.mark.parametrize("compressed", [False, True])
def test_last_line_without_newline_and_empty_dump(dump, compressed):
    pack = members if compressed else bytes
    blocks = list(read_blocks(dump(pack(TEXT + b"the last one")), lines_per_part=100))
    assert b"".join(block.data for block in blocks) == TEXT + b"the last one\n"
    assert blocks[-1].data == b"the last one\n" and blocks[-1].first_line == 501
    assert list(read_blocks(dump(pack(b"")), lines_per_part=10)) == []


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("wanted", [True, False])
def test_memory_for_a_long_line_is_bounded(dump, compressed, wanted):
    data = b"first\n" + b"x" * (3 * MAX_LINE_BYTES) + b"\nlast\n"
    file = dump(members(data) if compressed else data)
    blocks = list(read_blocks(file, lines_per_part=1, wanted=lambda part: wanted or part != 1))
    long = [len(block.data) for block in blocks if block.part == 1]
    assert bool(long) == wanted
    assert all(MAX_LINE_BYTES < size < 2 * MAX_LINE_BYTES for size in long)
    assert [block.data for block in blocks if block.part != 1] == [b"first\n", b"last\n"]


def test_damage(dump, tmp_path):
    data = members(TEXT[:9000], random.Random(1).randbytes(5000) + TEXT)
    noise = bytearray(members(random.Random(1).randbytes(50_000).replace(b"\n", b" ") + TEXT))
    noise[30_000:30_100] = bytes(100)
    cut = [data[:end] for end in (len(data) - 1, len(data) - 9, len(data) // 2, 5)]
    for damaged in (*cut, bytes(noise), members(TEXT) + b"rubbish"):
        with pytest.raises(LoadError, match=r"truncated or damaged .*Download it again.*gzip -t"):
            list(read_blocks(dump(damaged), lines_per_part=10))
    for file in (tmp_path / "nothing", tmp_path):
        with pytest.raises(LoadError, match="cannot be read"):
            list(read_blocks(file, lines_per_part=10))


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"") + b"\n"), max_size=40), st.data())
def test_any_lines_in_any_members(tmp_path_factory, lines, data):
    text = b"".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]
    file = tmp_path_factory.mktemp("any") / "dump"
    file.write_bytes(members(*parts))
    blocks = list(read_blocks(file, lines_per_part=data.draw(st.integers(1, 50))))
    assert b"".join(block.data for block in blocks) == text
