"""Reads a dump as blocks of whole lines, from the beginning or from a recorded position.

Each block lies within one part of the dump. A gzip stream can only be read from its start, but the Freebase dump
consists of a few hundred gzip streams (members) in a row. Each recorded position is the start of a member, so a resumed
load decompresses less than one member that it does not need.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kgqa.errors import LoadError
from kgqa.virtuoso.freebase.dump.judge import MAX_LINE_BYTES

BLOCK_BYTES = 1 << 18
_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"
_ANY_GZIP = 31
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class DumpPosition:
    """A byte of the dump at which reading can begin, and the number of lines before this byte."""

    byte: int = 0
    line: int = 0


START = DumpPosition()


@dataclass(frozen=True, slots=True)
class Block:
    """A block of whole lines, each with a newline at its end.

    Attributes:
        lines: number of lines.
        first_line: number of the first line, from 1.
        part: number of the part that contains the lines, from 0.
        bytes_read: number of bytes of the file that have been read.
        place: the last position from which reading can begin to reach the first line.
    """

    data: bytes
    lines: int
    first_line: int
    part: int
    bytes_read: int
    place: DumpPosition


def read_blocks(
    file: Path,
    *,
    lines_per_part: int,
    wanted: Callable[[int], bool] = lambda part: True,
    place: DumpPosition = START,
) -> Iterator[Block]:
    """Yield the lines of a dump in blocks; its first bytes tell whether the dump is text or gzip.

    A line longer than MAX_LINE_BYTES is cut to MAX_LINE_BYTES + 1 bytes. If the last line has no newline, it gets one.

    Args:
        lines_per_part: number of lines of a part; no block crosses the end of a part.
        wanted: tells whether to yield a part; skipping a part takes a third of the time of reading it.
        place: where to begin; the first part is incomplete if this position is inside the part.

    Raises:
        LoadError: the file cannot be read, is neither text nor gzip, is damaged, or is truncated.
    """
    # `rest` is the beginning of an incomplete line, or empty in an unwanted part; `number` counts the lines before it
    number, rest, in_line, read = place.line, b"", False, place.byte
    try:
        with file.open("rb") as raw:
            for data, read, entry in _pieces(raw, file, place):
                if entry is not None and not in_line:
                    place = DumpPosition(entry, number)
                in_line = not data.endswith(b"\n")
                lines = data.count(b"\n")
                part, in_part = divmod(number, lines_per_part)
                if in_part + lines < lines_per_part and not wanted(part):
                    number, rest = number + lines, b""
                    continue
                if not lines:
                    # cut the line if it is too long, because one line could fill the memory
                    rest = (rest + data)[: MAX_LINE_BYTES + 1]
                    continue
                end = data.rfind(b"\n") + 1
                whole, rest = rest + data[:end], data[end:]
                for block in _cut(whole, lines, number, lines_per_part, read, place):
                    if wanted(block.part):
                        yield block
                number += lines
            if rest and wanted(number // lines_per_part):
                yield Block(rest + b"\n", 1, number + 1, number // lines_per_part, read, place)
    except OSError as error:
        raise LoadError(
            f"{file} cannot be read: {error.strerror}.", "Check the path, the permissions and the disk."
        ) from error


def _cut(data: bytes, lines: int, number: int, lines_per_part: int, read: int, place: DumpPosition) -> Iterator[Block]:
    """Split whole lines into blocks at the ends of parts; the dump has `number` lines before these lines."""
    while lines:
        part, in_part = divmod(number, lines_per_part)
        take = min(lines, lines_per_part - in_part)
        end = len(data) if take == lines else _end_of(data, take)
        yield Block(data[:end], take, number + 1, part, read, place)
        data, lines, number = data[end:], lines - take, number + take


def identity(file: Path) -> dict[str, int | str]:
    """Return the length of a dump and a hash of its first and last megabyte; together they identify the dump.

    Raises:
        LoadError: the dump cannot be read.
    """
    try:
        with file.open("rb") as raw:
            digest = hashlib.sha256(raw.read(1 << 20))
            size = raw.seek(0, 2)
            raw.seek(max(0, size - (1 << 20)))
            digest.update(raw.read())
    except OSError as error:
        raise LoadError(f"{file} cannot be read: {error.strerror}.", "Give the path of a dump.") from error
    return {"bytes": size, "sha256": digest.hexdigest()[:32]}


def _end_of(data: bytes, lines: int) -> int:
    """Return the number of bytes of the first `lines` lines."""
    end = 0
    for _ in range(lines):
        end = data.index(b"\n", end) + 1
    return end


def _pieces(raw: IO[bytes], file: Path, place: DumpPosition) -> Iterator[tuple[bytes, int, int | None]]:
    """Yield the text of a file in pieces.

    Each item is a tuple: the text of the piece, the number of bytes read from the file so far, and the byte at which
    reading this piece can begin (None if reading can only begin at an earlier piece).
    """
    begins = raw.read(6)
    if begins.startswith((_BZIP2, _XZ, _ZSTD)):
        raise LoadError(f"{file} is compressed, but not with gzip. Decompress it, or compress it with gzip.")
    raw.seek(place.byte)
    return _gzip_pieces(raw, file) if begins.startswith(_GZIP) else _text_pieces(raw)


def _text_pieces(raw: IO[bytes]) -> Iterator[tuple[bytes, int, int | None]]:
    while True:
        entry = raw.tell()
        # read up to the end of a line, so that reading can begin at the next piece
        data = raw.read(BLOCK_BYTES) + raw.readline(BLOCK_BYTES)
        if not data:
            return
        yield data, raw.tell(), entry


def _gzip_pieces(raw: IO[bytes], file: Path) -> Iterator[tuple[bytes, int, int | None]]:
    decoder, inside, packed = zlib.decompressobj(_ANY_GZIP), False, b""
    entry: int | None = None
    while True:
        packed = packed or raw.read(_READ_BYTES)
        at_end = not packed
        if not inside:
            packed = packed.lstrip(b"\0")  # zero padding between members
            if at_end:
                return
            if not packed:
                continue
            entry, inside = raw.tell() - len(packed), True
        try:
            data = decoder.decompress(packed, BLOCK_BYTES)
        except zlib.error as error:
            raise LoadError(
                f"{file} is damaged near byte {raw.tell() - len(packed):,} ({error}).",
                "Download it again and check it with: gzip -t",
            ) from error
        if decoder.eof:
            packed, decoder, inside = decoder.unused_data, zlib.decompressobj(_ANY_GZIP), False
        elif at_end and not data:
            raise LoadError(f"{file} is truncated: its end is missing.", "Download it again and check it with: gzip -t")
        else:
            packed = decoder.unconsumed_tail
        if data:
            yield data, raw.tell() - len(packed), entry
            entry = None
