"""Reads records from question files one by one: from a JSON array, JSON lines, or lines of text.

The JSON array may be the value of a key in an object. Files may be gzipped. Sizes are limited, and every error message
gives the file and the record.
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
        read: converts a record and its position in the file (from 0) to a question; may raise ValueError.
        within: possible keys of the array of records, for files that contain one JSON object.

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
    """Build the error for the record with this number (from 1)."""
    return QuestionFileError(f"{file}, {unit} {number:,}: {what}.")


def json_records(file: Path, *, within: Sequence[str] = ()) -> Iterator[Any]:
    """Yield the values of a JSON array, of JSON lines, or of the array under a key of `within` in a JSON object.

    Raises:
        QuestionFileError: the file cannot be read, is not JSON, contains no array of records, or is too large.
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
    """Yield number (from 1) and content of each non-empty line of a text file.

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
                    raise QuestionFileError(
                        f"{file} is larger than {MAX_FILE_BYTES:,} bytes (unpacked).",
                        "Split the file into smaller files.",
                    )
                yield decode(chunk)
            yield decode(b"", True)
    except UnicodeDecodeError:
        raise QuestionFileError(
            f"{file} is not UTF-8 text.", "If the file is an archive, unpack the archive first."
        ) from None
    except (OSError, EOFError, zlib.error) as error:  # EOFError and zlib.error: truncated or damaged gzip file
        reason = getattr(error, "strerror", None) or str(error)
        raise QuestionFileError(f"{file} cannot be read: {reason}.") from error


def _opened(file: Path) -> BinaryIO:
    return gzip.open(file, "rb") if file.name.endswith(".gz") else file.open("rb")  # type: ignore[return-value]


class _Text:
    """JSON text that is read on demand; `number` is the number of the current record, for messages."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.number = 0
        self._pieces = _pieces(file)
        self._text, self._at = "", 0
        self._decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """Return the next non-blank character and stay in front of it; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, wanted: str) -> str:
        """Return the next non-blank character, which must be in `wanted`, and move behind it."""
        found = self.peek()
        if not found or found not in wanted:
            expected = " or ".join(map(repr, wanted))
            raise self._broken(f"{expected} expected, found {found!r}" if found else "the file ends too early")
        self._at += 1
        return found

    def value(self, *, counts: bool = True) -> Any:
        """Return the next JSON value; if the text read so far ends within the value, read twice as much."""
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
            # a number at the end of the text read so far may have more digits
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
        """Yield the values of the array under one of `keys` in the next object; skip the other keys of the object."""
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
            raise QuestionFileError(f"{self.file} has no array under the key {' or '.join(map(repr, keys))}.")

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
