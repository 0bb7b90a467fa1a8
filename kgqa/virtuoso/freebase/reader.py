"""Reads a dump as blocks of whole lines, from the beginning or from a recorded position.

Each block lies within one part of the dump. A gzip stream can only be read from its start, but the Freebase dump
consists of a few hundred gzip streams (members) in a row. Each recorded position is the start of a member, so a resumed
load decompresses less than one member that it does not need.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from kgqa.errors import LoadError
from kgqa.virtuoso.freebase.judge import MAX_LINE_BYTES

BLOCK_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
_OTHER_COMPRESSION = (b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_GZIP_FORMAT = 31
_READ_BYTES = 1 << 16


class DumpPosition(NamedTuple):
    """A byte of the dump at which reading can begin, and the number of lines before this byte."""

    byte: int = 0
    line: int = 0


START = DumpPosition()


class Block(NamedTuple):
    """A block of whole lines, each with a newline at its end.

    Attributes:
        first_line: number of the first line, from 1.
        part: number of the part that contains the lines, from 0.
        bytes_read: number of bytes of the file that have been read.
        place: the last position from which reading can begin to reach the first line.
    """

    data: bytes
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
                elif not lines:
                    # cut the line if it is too long, because one line could fill the memory
                    rest = (rest + data)[: MAX_LINE_BYTES + 1]
                else:
                    end = data.rfind(b"\n") + 1
                    whole, rest = rest + data[:end], data[end:]
                    for text, first in _cut(whole, lines, number, lines_per_part):
                        if wanted(first // lines_per_part):
                            yield Block(text, first + 1, first // lines_per_part, read, place)
                    number += lines
            if rest and wanted(number // lines_per_part):
                yield Block(rest + b"\n", number + 1, number // lines_per_part, read, place)
    except OSError as error:
        raise LoadError(
            f"{file} cannot be read: {error.strerror}.", "Check the path, the permissions and the disk."
        ) from error


def _cut(data: bytes, lines: int, number: int, lines_per_part: int) -> Iterator[tuple[bytes, int]]:
    """Cut whole lines at the ends of parts; yield each text with the number of lines of the dump before it.

    The dump has `number` lines before `data`, which has `lines` lines.
    """
    while lines:
        take, end = min(lines, lines_per_part - number % lines_per_part), len(data)
        if take < lines:
            end = 0
            for _ in range(take):
                end = data.index(b"\n", end) + 1
        yield data[:end], number
        data, lines, number = data[end:], lines - take, number + take


def _pieces(raw: IO[bytes], file: Path, place: DumpPosition) -> Iterator[tuple[bytes, int, int | None]]:
    """Yield the text of a file in pieces.

    Each item is a tuple: the text of the piece, the number of bytes read from the file so far, and the byte at which
    reading this piece can begin (None if reading can only begin at an earlier piece).
    """
    start = raw.read(6)
    if start.startswith(_OTHER_COMPRESSION):
        raise LoadError(f"{file} is compressed, but not with gzip. Decompress it, or compress it with gzip.")
    raw.seek(place.byte)
    return _gzip_pieces(raw, file) if start.startswith(_GZIP) else _text_pieces(raw)


def _text_pieces(raw: IO[bytes]) -> Iterator[tuple[bytes, int, int | None]]:
    entry = raw.tell()
    # read up to the end of a line, so that reading can begin at the next piece
    while data := raw.read(BLOCK_BYTES) + raw.readline(BLOCK_BYTES):
        yield data, raw.tell(), entry
        entry = raw.tell()


def _gzip_pieces(raw: IO[bytes], file: Path) -> Iterator[tuple[bytes, int, int | None]]:
    packed = raw.read(_READ_BYTES)
    while packed:
        decoder = zlib.decompressobj(_GZIP_FORMAT)
        entry: int | None = raw.tell() - len(packed)
        while not decoder.eof:
            packed = packed or raw.read(_READ_BYTES)
            try:
                data = decoder.decompress(packed, BLOCK_BYTES)
            except zlib.error as error:
                raise LoadError(
                    f"{file} is damaged near byte {raw.tell() - len(packed):,} ({error}).",
                    "Download it again and check it with: gzip -t",
                ) from error
            if not (packed or data or decoder.eof):
                raise LoadError(
                    f"{file} is truncated: its end is missing.", "Download it again and check it with: gzip -t"
                )
            packed = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            if data:
                yield data, raw.tell() - len(packed), entry
                entry = None
        packed = packed or raw.read(_READ_BYTES)
        while packed.startswith(b"\0"):  # zeros may fill the space between members
            packed = packed.lstrip(b"\0") or raw.read(_READ_BYTES)
