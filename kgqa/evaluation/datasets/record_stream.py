"""Streaming of records from question files: a JSON array, an array within an object, JSON lines, or lines of text.

Files may be gzipped. Sizes are bounded, and every error names file and record.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.questions import GoldQuestion, QuestionFileError

MAX_FILE_BYTES = 2 << 30
MAX_RECORD_CHARS = 32 << 20
TOO_DEEP = "nested too deeply"

_CHUNK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")


def questions_in(
    file: Path, dataset: str, read: Callable[[Record, int], GoldQuestion], *, within: Sequence[str] = ()
) -> Iterator[GoldQuestion]:
    """Yield a question for each record of a JSON file.

    Args:
        read: makes a question of a record and its position in the file, from 0; may raise ValueError.
        within: if the file is one object, the keys that may hold the array of records.

    Raises:
        QuestionFileError: the file cannot be read, or a record is not a question.
    """
    number = -1
    for number, record in enumerate(json_records(file, within=within)):
        try:
            if not isinstance(record, dict):
                raise ValueError("a question must be a JSON object")
            yield read(record, number)
        except RecursionError:
            raise broken(file, number + 1, TOO_DEEP) from None
        except ValueError as error:
            raise broken(file, number + 1, f"{error} in the format {dataset}") from None
    if number < 0:
        raise QuestionFileError(f"{file} contains no question.")


def broken(file: Path, number: int, what: str, unit: str = "record") -> QuestionFileError:
    """Build the error for one record, counted from 1."""
    return QuestionFileError(f"{file}, {unit} {number:,}: {what}.")


def json_records(file: Path, *, within: Sequence[str] = ()) -> Iterator[Any]:
    """Yield the values of a JSON array, of the array under a key of `within` in an object, or of JSON lines.

    Raises:
        QuestionFileError: the file cannot be read, is not JSON, has no such array, or is too large.
    """
    text = _Text(file)
    first = text.peek()
    if not first:
        raise QuestionFileError(f"{file} contains no question.")
    if first == "[":
        yield from text.array()
    elif first == "{" and within:
        yield from text.member(within)
    else:
        while text.peek():
            yield text.value()
    if text.peek():
        raise broken(file, text.number, "unexpected content after the last question")


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-empty lines of a text file with their numbers from 1.

    Raises:
        QuestionFileError: the file cannot be read, is not UTF-8, or is too large.
    """
    number, rest = 0, ""
    for piece in _pieces(file):
        *whole, rest = (rest + piece).split("\n")
        for line in whole:
            number += 1
            if line.strip():
                yield number, line.rstrip("\r")
        if len(rest) > MAX_RECORD_CHARS:
            raise broken(file, number + 1, f"longer than {MAX_RECORD_CHARS:,} characters", "line")
    if rest.strip():
        yield number + 1, rest.rstrip("\r")


def _pieces(file: Path) -> Iterator[str]:
    """Yield the text of a file in pieces, without a byte order mark."""
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    total = 0
    try:
        with _opened(file) as stream:
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                if total > MAX_FILE_BYTES:
                    raise QuestionFileError(f"{file} is larger than {MAX_FILE_BYTES:,} bytes unpacked. Split it.")
                yield decode(chunk)
            yield decode(b"", True)
    except UnicodeDecodeError:
        raise QuestionFileError(f"{file} is not UTF-8 text. If it is an archive, unpack it.") from None
    except (OSError, EOFError, zlib.error) as error:  # includes truncated and damaged gzip files
        reason = getattr(error, "strerror", None) or str(error)
        raise QuestionFileError(f"{file} cannot be read: {reason}.") from error


def _opened(file: Path) -> BinaryIO:
    return gzip.open(file, "rb") if file.name.endswith(".gz") else file.open("rb")  # type: ignore[return-value]


class _Text:
    """JSON text read on demand; `number` counts the records, for messages."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.number = 0
        self._pieces = _pieces(file)
        self._text, self._at = "", 0
        self._decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """Return the next non-blank character without consuming it; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, wanted: str) -> str:
        """Consume the next character, which must be one of those wanted."""
        found = self.peek()
        if not found or found not in wanted:
            expected = " or ".join(map(repr, wanted))
            raise self._broken(f"{expected} expected, found {found!r}" if found else "the file ends too early")
        self._at += 1
        return found

    def value(self, *, counts: bool = True) -> Any:
        """Return the next JSON value; if a piece ends within it, try again with twice as much text."""
        self.number += counts
        if not self.peek():
            raise self._broken("the file ends too early")
        wanted = _CHUNK
        while True:
            try:
                found, end = self._decode(self._text, self._at)
            except RecursionError:
                raise self._broken(TOO_DEEP) from None
            except ValueError as error:
                size = len(self._text) - self._at
                if size > MAX_RECORD_CHARS:
                    raise self._broken(f"not JSON, or longer than {MAX_RECORD_CHARS:,} characters") from None
                if not self._more(wanted):
                    where = getattr(error, "msg", None) or str(error)
                    raise self._broken(f"not JSON ({where})") from None
                wanted = max(_CHUNK, size)
                continue
            # a number at the end of the text so far may continue
            if end == len(self._text) and self._text[self._at] not in '{["' and self._more():
                continue
            self._at = end
            return found

    def array(self) -> Iterator[Any]:
        """Yield the values of the next array."""
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.value()
            if self.take(",]") == "]":
                return

    def member(self, keys: Sequence[str]) -> Iterator[Any]:
        """Yield the values of the array under one of these keys of the next object, and skip its other members."""
        self.take("{")
        seen, more = False, self.peek() != "}"
        while more:
            key = self.value(counts=False)
            self.take(":")
            if key in keys and not seen and self.peek() == "[":
                seen = True
                yield from self.array()
            else:
                self.value(counts=False)
            more = self.take(",}") == ","
            if not more:
                break
        else:
            self.take("}")
        if not seen:
            raise QuestionFileError(f"{self.file} has no list {' or '.join(map(repr, keys))}.")

    def _more(self, wanted: int = 1) -> bool:
        """Read at least `wanted` more characters; False at the end of the file."""
        self._text, self._at = self._text[self._at :], 0
        found, got = [], 0
        for piece in self._pieces:
            found.append(piece)
            got += len(piece)
            if got >= wanted:
                break
        self._text += "".join(found)
        return got > 0

    def _broken(self, what: str) -> QuestionFileError:
        return broken(self.file, max(self.number, 1), what)
