"""Writes the corpus as it was after an earlier edit to a folder of its own, which can be asked like any other."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder, writing
from kgqa.corpus.items import DocumentItem
from kgqa.corpus.storage.database import Database
from kgqa.corpus.storage.ledger import Ledger
from kgqa.errors import CorpusError
from kgqa.storage.atomic_files import sync_to_disk

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?")


def edit_number(database: Database, moment: str, accepted: Mapping[str, str] = {}) -> int:
    """Return the number of the last edit up to a moment: the number of an edit, or a time.

    Args:
        moment: a number, 0 for the empty corpus, or a time in ISO 8601, in UTC unless it says otherwise. A day means
            its end.
        accepted: when edits were accepted that had been proposed earlier, by their ids.

    Raises:
        CorpusError: there is no such edit, or the moment cannot be read.
    """
    if moment.isdecimal():
        last = database.seq
        number = int(moment) if len(moment) < 12 else last + 1
        if number > last:
            raise CorpusError(
                f"There is no edit {moment[:40]}; the last one is {last}.", "List them: kgqa edits list CORPUS"
            )
        return number
    limit = _time(moment)
    for edit in database.edits():  # an edit is not older than those before it, whenever it was proposed
        if max(_time(edit.at), _time(accepted.get(edit.id, edit.at))) > limit:
            return edit.seq - 1
    return database.seq


def _time(text: str) -> datetime:
    try:
        if not _TIME.fullmatch(text):
            raise ValueError("another form")
        found = datetime.fromisoformat(text)
    except ValueError:
        raise CorpusError(
            f"{text[:40]!r} is not the number of an edit, nor a time.", "Write 12, 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from None
    if len(text) == len("2026-01-31"):
        found = found.replace(hour=23, minute=59, second=59, microsecond=999_999)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def write_as_of(folder: CorpusFolder, database: Database, seq: int, into: Path) -> tuple[str, ...]:
    """Write a corpus that consists of the first edits of another one, with its graph.

    The folder appears when it is complete. Communities are not written; a build finds them.

    Args:
        folder: the folder of the other corpus.
        database: its database.
        seq: the number of the last edit.
        into: the new folder.

    Returns:
        Notes for the user.

    Raises:
        CorpusError: the folder exists already, or cannot be written.
    """
    if into.exists():
        raise CorpusError(f"{into} exists already.", "Choose a new folder.")
    partial = into.with_name(f".{into.name}.as-of-partial")
    with writing(into):
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    notes = []
    file = folder.file
    if file.beside:
        notes.append("The knowledge graph beside the corpus is left out.")
    try:
        new = CorpusFolder(partial)
        new.create(
            default=file.default, chunks=file.chunks, tokens=file.tokens, extract=file.extract, extractor=file.extractor
        )
        with Editor(new) as editor:
            Ledger(editor.database, writable=True)  # an empty one, which the status of the corpus reads
            with editor.database.transaction():
                _copy(database, editor.database, seq)
            editor.publish()
        with writing(into):
            sync_to_disk(partial)
            os.rename(partial, into)
            sync_to_disk(into.parent)
    except BaseException:
        with suppress(OSError):
            shutil.rmtree(partial)
        raise
    return tuple(notes)


def _copy(old: Database, new: Database, seq: int) -> None:
    """Append the edits up to a number, with their content and the texts of their documents."""
    for edit in old.edits(0, seq):
        new.append(replace(edit, seq=0), old.additions_of(edit), old.removals_of(edit))
        for addition in old.additions_of(edit):
            item = addition.item
            if isinstance(item, DocumentItem) and (text := old.text(item.document, item.digest)) is not None:
                new.put_text(item.document, item.digest, text)
