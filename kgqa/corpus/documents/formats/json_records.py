"""Reads collections of documents: JSON Lines, or a list in JSON, with objects `{"id", "title", "text"}`."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from kgqa.corpus.documents.document import safe_text
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError
from kgqa.storage.json_stream import JsonStream, LongValue

_BLOCK = 1 << 20
_MAX_ID = 500
_MAX_TITLE = 1_000


@dataclass(frozen=True, slots=True)
class Record:
    """One document of a collection. `id`: "" if the object has none. `place`: where it is, for messages."""

    place: str
    id: str
    title: str
    text: str


Reject = Callable[[str, str], None]
"""Called with the place of an object that cannot be used, and the reason."""


def read_records(file: IO[bytes], name: str, limits: Limits, reject: Reject) -> Iterator[Record]:
    """Yield the documents of a collection.

    Only the part that is being read is in memory. A line that cannot be used is rejected; the other lines are read.

    Args:
        file: The file, open at its start.
        name: Its name; the file is decompressed if this ends in `.gz`.
        limits: The largest sizes.
        reject: Called for each object that cannot be used.

    Raises:
        DocumentError: The file is not JSON, damaged, or too large after decompression.
    """
    stream = _Blocks(file, limits.stream_bytes)
    if name.lower().endswith(".gz"):
        compressed = file.seek(0, os.SEEK_END)
        file.seek(0)
        most = max(limits.file_bytes, compressed * limits.archive_ratio)
        stream = _Blocks(gzip.GzipFile(fileobj=file), min(limits.stream_bytes, most))
    try:
        start = stream.peek()
        if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
            yield from _values(stream, limits, reject, is_list=True)
        elif name.lower().removesuffix(".gz").endswith(".json"):
            yield from _values(stream, limits, reject, is_list=False)
        else:
            yield from _line_records(stream, limits, reject)
    except (OSError, EOFError, zlib.error) as error:
        raise DocumentError(f"the file is damaged or cannot be read: {error}") from error


class _Blocks:
    """The blocks of a file, up to a number of bytes after decompression."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, limit: int) -> None:
        self._file = file
        self._left = limit
        self._first: bytes | None = None

    def peek(self) -> bytes:
        """Return the first block without consuming it."""
        if self._first is None:
            self._first = self._file.read(_BLOCK)
        return self._first

    def __iter__(self) -> Iterator[bytes]:
        block = self.peek()
        while block:
            self._left -= len(block)
            if self._left < 0:
                raise DocumentError("the file is too large after decompression")
            yield block
            block = self._file.read(_BLOCK)


def _values(blocks: _Blocks, limits: Limits, reject: Reject, *, is_list: bool) -> Iterator[Record]:
    """Yield the documents of a JSON list, or of JSON objects one after the other."""
    json_stream = JsonStream(iter(blocks), max_value_chars=limits.record_bytes)
    number = 0
    try:
        for value in json_stream.items() if is_list else _objects(json_stream):
            number += 1
            if record := _record(value, f"object {number}", reject):
                yield record
    except LongValue:
        raise DocumentError(f"object {number + 1} is longer than {limits.record_bytes:,} characters") from None
    except ValueError as error:
        raise DocumentError(f"the JSON is damaged after object {number}: {error}") from None


def _objects(stream: JsonStream) -> Iterator[Any]:
    while stream.peek():
        yield stream.value()


def _line_records(blocks: _Blocks, limits: Limits, reject: Reject) -> Iterator[Record]:
    for number, line in enumerate(_lines(blocks, limits.record_bytes), start=1):
        place = f"line {number}"
        if line is None:
            reject(place, f"the line is longer than {limits.record_bytes:,} bytes")
            continue
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except (ValueError, RecursionError) as error:
            reject(place, "not valid UTF-8" if isinstance(error, UnicodeDecodeError) else "not valid JSON")
            continue
        if record := _record(value, place, reject):
            yield record


def _lines(blocks: _Blocks, longest: int) -> Iterator[bytes | None]:
    """Yield the lines of a file, and None for each line that is too long."""
    parts: list[bytes] = []
    length = 0
    for block in blocks:
        *ended, rest = block.split(b"\n")
        for line in ended:
            yield b"".join([*parts, line]) if length + len(line) <= longest else None
            parts, length = [], 0
        length += len(rest)
        parts = [*parts, rest] if length <= longest else []
    if length:
        yield b"".join(parts) if length <= longest else None


def _record(value: Any, place: str, reject: Reject) -> Record | None:
    """Return the document of an object; None if it is not one."""
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        reject(place, 'not an object with a string "text"')
        return None
    id_, title = value.get("id"), value.get("title")
    if not isinstance(title, str | None) or isinstance(id_, bool) or not isinstance(id_, str | int | None):
        reject(place, '"id" must be a string or a whole number, "title" a string')
        return None
    identifier = safe_text("" if id_ is None else str(id_))
    if len(identifier) > _MAX_ID or len(title or "") > _MAX_TITLE:
        reject(place, f'"id" is longer than {_MAX_ID} characters, or "title" longer than {_MAX_TITLE:,}')
        return None
    return Record(
        place, " ".join(identifier.split()), safe_text(" ".join((title or "").split())), safe_text(value["text"])
    )
