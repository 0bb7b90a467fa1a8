"""The file of a corpus that keeps proposed edits, decisions about them, and what the gates rejected.

Records are appended and never changed. Each contains the hash of the record before it, so that a changed byte is found.
Any number of processes may append, also while another one writes to the corpus.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import to_builtins

from kgqa.corpus.edit_log import Edit
from kgqa.corpus.editing.edit_records import edit_of_record, record_of_edit
from kgqa.corpus.editing.sources import encodable
from kgqa.corpus.folder import writing
from kgqa.errors import CorpusError
from kgqa.storage.atomic_files import sync_to_disk
from kgqa.storage.foreign import refuse_links
from kgqa.storage.loading import convert, parse_json
from kgqa.storage.lock_files import only_one

FILE_NAME = "proposals.jsonl"
LOCK_NAME = "proposals.lock"
WAIT_SECONDS = 30.0
MAX_LINE_BYTES = 1 << 20
ACCEPTED, REJECTED = "accepted", "rejected"


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """An edit that waits for a review, or waited for one.

    Attributes:
        edit: The edit, with its content and its id.
        quotes: The texts of its sources, in their order, as far as they are kept.
        target_text: The text that it replaces, hides or disputes; "" for an insert.
        why: Why it waits although edits are committed at once; "" if all edits wait.
    """

    edit: Edit
    quotes: tuple[str, ...] = ()
    target_text: str = ""
    why: str = ""


class _Proposal(msgspec.Struct, frozen=True, tag_field="record", tag="proposal"):
    edit: dict[str, Any]
    quotes: tuple[str, ...]
    target_text: str
    why: str


class Decision(msgspec.Struct, frozen=True, tag_field="record", tag="decision"):
    """What was decided about a proposed edit. `edit`: its id. `decision`: accepted or rejected. `by`: who decided."""

    edit: str
    decision: str
    by: str
    at: str
    why: str = ""


class GatedEdit(msgspec.Struct, frozen=True, tag_field="record", tag="gated"):
    """An edit that a gate rejected; it was never part of a graph.

    Attributes:
        kind, content, target: What was proposed.
        sources: The IRIs and URLs of its sources.
        rule, why: The gate, and its reason.
        session, question, agent, at: Where, by whom and when.
    """

    kind: str
    content: str
    target: str
    sources: tuple[str, ...]
    rule: str
    why: str
    session: str
    question: str
    agent: str
    at: str


Record = ProposedEdit | Decision | GatedEdit


class _Sealed(msgspec.Struct):
    """The part of a record that all have. `previous`: the hash of the record before it."""

    hash: str
    previous: str


class ProposalFile:
    """A file of proposals; it need not exist.

    Args:
        folder: the folder of a corpus, or any other.
        name: the name of the file.
    """

    def __init__(self, folder: Path, name: str = FILE_NAME) -> None:
        self.path = folder / name
        self._lock = folder / LOCK_NAME

    def append(self, records: Sequence[Record]) -> None:
        """Append records; they are on the disk when this returns.

        Raises:
            CorpusError: the file cannot be written, its folder contains a link, or another process holds it too long.
                Nothing is appended.
        """
        if not records:
            return
        with self._locked(), writing(self.path):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                previous, end = self._end(descriptor)
                lines = []
                for each in records:
                    line, previous = _line(each, previous)
                    lines.append(line)
                os.ftruncate(descriptor, end)  # what a process that was killed had begun
                os.lseek(descriptor, end, os.SEEK_SET)
                data = b"".join(lines)
                try:
                    while data:
                        data = data[os.write(descriptor, data) :]
                except OSError:
                    os.ftruncate(descriptor, end)
                    raise
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            sync_to_disk(self.path.parent)

    def records(self) -> list[Record]:
        """Return all records.

        Raises:
            CorpusError: the file cannot be read, or was changed.
        """
        found = []
        for number, record, problem in self._read():
            if record is None:
                raise CorpusError(
                    f"{self.path} was changed: line {number}: {problem}.",
                    "Restore the file from a copy, or move it away; then the proposals in it are lost.",
                )
            found.append(record)
        return found

    def findings(self) -> Iterator[str]:
        """Yield what is wrong with the file, a sentence each; nothing if no byte of it was changed."""
        for number, record, problem in self._read():
            if record is None:
                yield f"{self.path.name}, line {number}: {problem}."
        if self.path.is_file():
            with writing(self.path), open(self.path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size:
                    file.seek(size - 1)
                    if file.read(1) != b"\n":
                        yield f"{self.path.name} ends in a part of a record; the next proposal removes it."

    @contextmanager
    def _locked(self) -> Iterator[None]:
        refuse_links(self.path.parent, CorpusError)
        with writing(self._lock):
            lock = only_one(self._lock, wait_seconds=WAIT_SECONDS)
            alone = lock.__enter__()
        try:
            if not alone:
                raise CorpusError(f"Another process is writing to {self.path}.", "Try again later.")
            yield
        finally:
            lock.__exit__(None, None, None)

    def _end(self, descriptor: int) -> tuple[str, int]:
        """Return the hash of the last whole record, and where it ends."""
        size = os.fstat(descriptor).st_size
        start = max(0, size - 2 * MAX_LINE_BYTES)
        data = os.pread(descriptor, size - start, start)
        last = data.rfind(b"\n") + 1
        if not last:
            if start:
                raise CorpusError(f"{self.path} was changed: it ends without a record.", "Restore it from a copy.")
            return "", 0
        line = data[data.rfind(b"\n", 0, last - 1) + 1 : last]
        hash_ = _hash_in(line)
        if not hash_:
            raise CorpusError(f"{self.path} was changed: its last line is not a record.", "Restore it from a copy.")
        return hash_, start + last

    def _read(self) -> Iterator[tuple[int, Record | None, str]]:
        """Yield the number of each line, its record, and, if it has none, why."""
        previous = ""
        for number, line in enumerate(self._lines(), 1):
            if not line.endswith(b"\n"):
                if len(line) > MAX_LINE_BYTES:
                    yield number, None, "the line is too long"
                return  # another process is writing it
            try:
                record, previous = _record(line, previous)
                yield number, record, ""
            except ValueError as error:
                yield number, None, str(error)
                previous = _hash_in(line)

    def _lines(self) -> Iterator[bytes]:
        try:
            with open(self.path, "rb") as file:
                while line := file.readline(MAX_LINE_BYTES + 1):
                    yield line
        except FileNotFoundError:
            return
        except OSError as error:
            raise CorpusError(f"{self.path} cannot be read: {error.strerror}.", "Check its permissions.") from error


def _line(record: Record, previous: str) -> tuple[bytes, str]:
    data: dict[str, Any]
    if isinstance(record, ProposedEdit):
        quotes = tuple(map(encodable, record.quotes))
        form = _Proposal(record_of_edit(record.edit), quotes, encodable(record.target_text), record.why)
        data = to_builtins(form)
    else:
        values: dict[str, Any] = to_builtins(record)
        data = {
            name: encodable(value) if isinstance(value, str) else list(map(encodable, value))
            for name, value in values.items()
        }
    data["previous"] = previous
    hash_ = _hash(data)
    line = json.dumps({**data, "hash": hash_}, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise CorpusError("The proposed edit is too long to be kept.", "Propose shorter texts.")
    try:
        _record(line, previous)
    except ValueError as error:  # it would make the whole file unreadable
        raise CorpusError(f"The proposed edit cannot be kept: {error}.", "Propose plain text.") from error
    return line, hash_


def _record(line: bytes, previous: str) -> tuple[Record, str]:
    """Read a record and its hash. Raises ValueError."""
    data: dict[str, Any] = parse_json(line, dict[str, Any])
    hash_ = data.pop("hash", None)
    if hash_ != _hash(data) or json.dumps({**data, "hash": hash_}, separators=(",", ":")).encode() + b"\n" != line:
        raise ValueError("the record was changed")
    if data.get("previous") != previous:
        raise ValueError("a record before it was changed or is missing")
    found: _Proposal | Decision | GatedEdit = convert(data, _Proposal | Decision | GatedEdit)
    if isinstance(found, _Proposal):
        return ProposedEdit(edit_of_record(found.edit), found.quotes, found.target_text, found.why), hash_
    return found, hash_


def _hash(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, separators=(",", ":")).encode()).hexdigest()


def _hash_in(line: bytes) -> str:
    try:
        sealed: _Sealed = parse_json(line, _Sealed)
    except ValueError:
        return ""
    return sealed.hash
