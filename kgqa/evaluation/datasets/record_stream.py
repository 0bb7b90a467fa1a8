"""Reads the records of published question files one by one, whatever their frame: a JSON array, an array within an
object, JSON lines, or tab-separated lines; gzipped or not. Sizes are bounded, and every error names file and record.
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
MAX_DEPTH_SAID = "nested too deep for a question"

_CHUNK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")


def questions_in(
    file: Path, dataset: str, read: Callable[[Record, int], GoldQuestion], *, within: Sequence[str] = ()
) -> Iterator[GoldQuestion]:
    """A question for each record of a JSON file.

    Args:
        read: makes a question of a record and its place among the records of the file, from 0; a ValueError that it
            raises is told with file and record.
        within: keys under one of which the records lie where the file is one object.

    Raises:
        QuestionFileError: the file cannot be read, or a record is no question.
    """
    number = -1
    for number, record in enumerate(json_records(file, within=within)):
        try:
            if not isinstance(record, dict):
                raise ValueError("a question is a JSON object")
            yield read(record, number)
        except RecursionError:
            raise broken(file, number + 1, MAX_DEPTH_SAID) from None
        except ValueError as error:
            raise broken(file, number + 1, f"{error}, so this is not the format of {dataset}") from None
    if number < 0:
        raise QuestionFileError(f"{file} has no question in it.")


def broken(file: Path, number: int, what: str, unit: str = "record") -> QuestionFileError:
    """The error of one record, counted from 1."""
    return QuestionFileError(f"{file}, {unit} {number:,}: {what}.")


def json_records(file: Path, *, within: Sequence[str] = ()) -> Iterator[Any]:
    """The values of a JSON array, of the array under a key of `within` in an object, or of JSON lines, as they come.

    Raises:
        QuestionFileError: it cannot be read, is no JSON, has no such array, or is too large.
    """
    text = _Text(file)
    first = text.peek()
    if not first:
        raise QuestionFileError(f"{file} has no question in it.")
    if first == "[":
        yield from text.array()
    elif first == "{" and within:
        yield from text.member(within)
    else:
        while text.peek():
            yield text.value()
    if text.peek():
        raise broken(file, text.number, "there is more after the end of the questions")


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers from 1; empty ones are left out.

    Raises:
        QuestionFileError: it cannot be read, is no UTF-8, or is too large.
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
    """The text of a file in pieces, without a byte order mark."""
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    total = 0
    try:
        with _opened(file) as stream:
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                if total > MAX_FILE_BYTES:
                    raise QuestionFileError(f"{file} holds more than {MAX_FILE_BYTES:,} bytes: split it.")
                yield decode(chunk)
            yield decode(b"", True)
    except UnicodeDecodeError:
        raise QuestionFileError(f"{file} is not written in UTF-8. If it is an archive, unpack it.") from None
    except (OSError, EOFError, zlib.error) as error:  # a gzip file cut short or damaged among them
        said = getattr(error, "strerror", None) or str(error)
        raise QuestionFileError(f"{file} cannot be read: {said}.") from error


def _opened(file: Path) -> BinaryIO:
    return gzip.open(file, "rb") if file.name.endswith(".gz") else file.open("rb")  # type: ignore[return-value]


class _Text:
    """JSON text that is read as far as it is needed; `number` counts the records, for messages."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.number = 0
        self._pieces = _pieces(file)
        self._text, self._at = "", 0
        self._decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """The next character that is not blank, not taken; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, wanted: str) -> str:
        """The next character, which must be one of these."""
        found = self.peek()
        if not found or found not in wanted:
            expected = " or ".join(map(repr, wanted))
            raise self._broken(f"{expected} expected, found {found!r}" if found else "the file ends in the middle")
        self._at += 1
        return found

    def value(self, *, counts: bool = True) -> Any:
        """The next JSON value. One that is cut by the end of a piece is tried again with twice as much text."""
        self.number += counts
        if not self.peek():
            raise self._broken("the file ends in the middle")
        wanted = _CHUNK
        while True:
            try:
                found, end = self._decode(self._text, self._at)
            except RecursionError:
                raise self._broken(MAX_DEPTH_SAID) from None
            except ValueError as error:
                size = len(self._text) - self._at
                if size > MAX_RECORD_CHARS:
                    raise self._broken(f"no JSON, or longer than {MAX_RECORD_CHARS:,} characters") from None
                if not self._more(wanted):
                    where = getattr(error, "msg", None) or str(error)
                    raise self._broken(f"no JSON ({where})") from None
                wanted = max(_CHUNK, size)
                continue
            # a number that ends where the text so far ends may go on
            if end == len(self._text) and self._text[self._at] not in '{["' and self._more():
                continue
            self._at = end
            return found

    def array(self) -> Iterator[Any]:
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.value()
            if self.take(",]") == "]":
                return

    def member(self, keys: Sequence[str]) -> Iterator[Any]:
        """The values of the array under one of these keys of an object; the other members are skipped."""
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
            raise QuestionFileError(f"{self.file} has no list {' or '.join(map(repr, keys))} in it.")

    def _more(self, wanted: int = 1) -> bool:
        """Read at least so many characters more; False at the end of the file."""
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
