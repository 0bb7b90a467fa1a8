"""Reads a dump as blocks of whole lines, cut where parts end, from the beginning or from a place noted earlier.

gzip cannot be entered in the middle, but the real dump is a few hundred gzip members one after another, and each of
them can. So a place is the start of a member, and whoever goes on decompresses less than one member for nothing.
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
class Place:
    """A byte of the file at which a line begins that can be read from, and how many lines come before it."""

    byte: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, each ended with a newline.

    `lines` counts them, `first_line` is the number of the first, from 1; `part` counts from 0. `bytes_read` is how far
    the file has been read. `place` is the last place at or before the first line.
    """

    data: bytes
    lines: int
    first_line: int
    part: int
    bytes_read: int
    place: Place


def read_blocks(
    file: Path, *, lines_per_part: int, wanted: Callable[[int], bool] = lambda part: True, place: Place = Place()
) -> Iterator[Block]:
    """The lines of a dump, as text or gzip; which of them, its first bytes tell.

    A line longer than MAX_LINE_BYTES comes as its beginning, longer than allowed all the same. A last line without an
    end gets one.

    Args:
        lines_per_part: a block ends where a part of so many lines ends, wherever reading began.
        wanted: which parts to give; others are passed over, in a third of the time.
        place: where to begin; blocks of a part that begins before it are not whole.

    Raises:
        LoadError: the file cannot be read, is of another kind, damaged, or cut short.
    """
    # `number` lines are before what is at hand: the beginning of a line, `rest`, unless nobody wants it
    number, rest, in_line, read = place.line, b"", False, place.byte
    try:
        with file.open("rb") as raw:
            for data, read, entry in _pieces(raw, file, place):
                if entry is not None and not in_line:
                    place = Place(entry, number)
                in_line = not data.endswith(b"\n")
                lines = data.count(b"\n")
                part, in_part = divmod(number, lines_per_part)
                if in_part + lines < lines_per_part and not wanted(part):
                    number, rest = number + lines, b""
                    continue
                if not lines:
                    # of a line too long only the beginning is kept, or one line could fill the memory
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
            f"{file} cannot be read: {error.strerror}. Check the path, the permissions, the disk."
        ) from error


def _cut(data: bytes, lines: int, number: int, lines_per_part: int, read: int, place: Place) -> Iterator[Block]:
    """Whole lines, after `number` others, as one block or, where parts end among them, as several."""
    while lines:
        part, in_part = divmod(number, lines_per_part)
        take = min(lines, lines_per_part - in_part)
        end = len(data) if take == lines else _end_of(data, take)
        yield Block(data[:end], take, number + 1, part, read, place)
        data, lines, number = data[end:], lines - take, number + take


def identity(file: Path) -> dict[str, int | str]:
    """What tells a dump from another: its length, and a hash of its first and last megabyte.

    Raises:
        LoadError: it cannot be read.
    """
    try:
        with file.open("rb") as raw:
            digest = hashlib.sha256(raw.read(1 << 20))
            size = raw.seek(0, 2)
            raw.seek(max(0, size - (1 << 20)))
            digest.update(raw.read())
    except OSError as error:
        raise LoadError(f"{file} cannot be read: {error.strerror}. Give the path of a dump.") from error
    return {"bytes": size, "sha256": digest.hexdigest()[:32]}


def _end_of(data: bytes, lines: int) -> int:
    """The number of bytes of the first `lines` lines."""
    end = 0
    for _ in range(lines):
        end = data.index(b"\n", end) + 1
    return end


def _pieces(raw: IO[bytes], file: Path, place: Place) -> Iterator[tuple[bytes, int, int | None]]:
    """The text of a file in pieces: bytes, how far the file is read, and where one can begin to read with this piece."""
    begins = raw.read(6)
    if begins.startswith((_BZIP2, _XZ, _ZSTD)):
        raise LoadError(f"{file} is packed in another way than with gzip. Unpack it, or pack it with gzip.")
    raw.seek(place.byte)
    return _gzip_pieces(raw, file) if begins.startswith(_GZIP) else _text_pieces(raw)


def _text_pieces(raw: IO[bytes]) -> Iterator[tuple[bytes, int, int | None]]:
    while True:
        entry = raw.tell()
        # up to the end of a line, so that the next piece is a place
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
            packed = packed.lstrip(b"\0")  # tapes and downloads leave zeros between members
            if at_end:
                return
            if not packed:
                continue
            entry, inside = raw.tell() - len(packed), True
        try:
            data = decoder.decompress(packed, BLOCK_BYTES)
        except zlib.error as error:
            raise LoadError(
                f"{file} is damaged at about byte {raw.tell() - len(packed):,} ({error}). Fetch it again; gzip -t tells "
                f"whether it is whole."
            ) from error
        if decoder.eof:
            packed, decoder, inside = decoder.unused_data, zlib.decompressobj(_ANY_GZIP), False
        elif at_end and not data:
            raise LoadError(
                f"{file} is cut short in its last gzip member. Fetch it again; gzip -t tells whether it is whole."
            )
        else:
            packed = decoder.unconsumed_tail
        if data:
            yield data, raw.tell() - len(packed), entry
            entry = None
