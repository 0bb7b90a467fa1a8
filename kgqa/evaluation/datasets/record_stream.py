"""Reads records from question files one by one: from a JSON array, JSON lines, or lines of text.

The JSON array may be the value of a key in an object. Files may be gzipped. Sizes are limited, and every error message
gives the file and the record.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.questions import GoldQuestion, QuestionFileError, open_file
from kgqa.storage.json_stream import DamagedJson, JsonStream, LongValue

MAX_FILE_BYTES = 2 << 30
MAX_RECORD_CHARS = 32 << 20
TOO_DEEP = "nested too deeply"

_CHUNK = 1 << 20


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
    return questions_of(file, dataset, enumerate(json_records(file, within=within), 1), read)


def questions_of(
    file: Path,
    dataset: str,
    records: Iterable[tuple[int, Any]],
    read: Callable[[Any, int], GoldQuestion],
    *,
    kind: type = dict,
    unit: str = "record",
) -> Iterator[GoldQuestion]:
    """Yield a question for each record; the records come with their numbers in the file, from 1.

    Args:
        read: as for `questions_in`.
        kind: type of the records.
        unit: name of a record in messages.

    Raises:
        QuestionFileError: see `questions_in`.
    """
    position = -1
    for position, (number, record) in enumerate(records):
        try:
            if not isinstance(record, kind):
                raise ValueError("a question must be a JSON object")
            yield read(record, position)
        except RecursionError:
            raise broken(file, number, TOO_DEEP, unit) from None
        except ValueError as error:
            raise broken(file, number, f"{error} in the format {dataset}", unit) from None
    if position < 0:
        raise QuestionFileError(f"{file} contains no question.")


def broken(file: Path, number: int, what: str, unit: str = "record") -> QuestionFileError:
    """Build the error for the record with this number (from 1)."""
    return QuestionFileError(f"{file}, {unit} {number:,}: {what}.")


def json_records(file: Path, *, within: Sequence[str] = ()) -> Iterator[Any]:
    """Yield the values of a JSON array, of JSON lines, or of the array under a key of `within` in a JSON object.

    Raises:
        QuestionFileError: the file cannot be read, is not JSON, contains no array of records, or is too large.
    """
    text = JsonStream((piece.encode() for piece in _pieces(file)), max_value_chars=MAX_RECORD_CHARS)
    number = 0
    records = _records(text, within)
    try:
        first = text.peek()
        for number, record in enumerate(records, 1):  # noqa: B007 - the number of the last record, for messages
            yield record
        text.end()
    except DamagedJson as error:
        raise broken(file, number + 1, f"not JSON ({error})") from None
    except LongValue:
        raise broken(file, number + 1, f"not JSON, or longer than {MAX_RECORD_CHARS:,} characters") from None
    except LookupError:
        raise QuestionFileError(f"{file} has no array under the key {' or '.join(map(repr, within))}.") from None
    except ValueError as error:
        raise broken(file, number + 1, str(error)) from None
    if not first:
        raise QuestionFileError(f"{file} contains no question.")


def _records(text: JsonStream, within: Sequence[str]) -> Iterator[Any]:
    first = text.peek()
    if first == "[":
        yield from text.items()
    elif first == "{" and within:
        found = False
        for name in text.members():
            if name in within and text.peek() == "[":
                found = True
                yield from text.items()
            else:
                text.value()
        if not found:
            raise LookupError
    else:
        while text.peek():
            yield text.value()


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
        with open_file(file) as stream:
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
