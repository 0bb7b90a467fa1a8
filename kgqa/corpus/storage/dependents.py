"""Finds the edits that build on an edit, in SQLite; the same as `kgqa.corpus.edit_log.dependents`."""

from __future__ import annotations

import sqlite3

from kgqa.corpus.edit_log import Edit, Removal
from kgqa.corpus.storage.log_writer import matching
from kgqa.corpus.storage.rows import EDIT_COLUMNS, edit_of


def dependent_edits(connection: sqlite3.Connection, edit: Edit) -> list[Edit]:
    """Return the active edits that build on an edit, directly or not, in the order of the log."""
    rows = connection.execute(f"SELECT {EDIT_COLUMNS}, active FROM edits WHERE seq >= ? ORDER BY seq", (edit.seq,))
    later = [(edit_of(row[:-1]), bool(row[-1])) for row in rows]
    removing = {seq for (seq,) in connection.execute("SELECT DISTINCT edit FROM removals WHERE edit >= ?", (edit.seq,))}
    reached: set[str] = set()
    given: set[int] = set()
    """The numbers of the edits whose additions the reached edits made live."""
    restored: set[int] = set()
    """The additions that the reached edits brought back."""
    found = []
    for each, active in later:
        if each.id != edit.id:
            if not active or not (
                reached & {each.target, *(source.iri for source in each.sources)}
                or (each.seq in removing and _removes(connection, each, given, restored))
            ):
                continue
            found.append(each)
        reached.add(each.id)
        _give(connection, each, given, restored)
    return found


def _removes(connection: sqlite3.Connection, edit: Edit, given: set[int], restored: set[int]) -> bool:
    """Return whether an edit removes an addition that was given or restored."""
    for removal in _removals(connection, edit.seq):
        for id in matching(connection, removal):
            if id in restored:
                return True
            (of,) = connection.execute("SELECT edit FROM additions WHERE id = ?", (id,)).fetchone()
            if of in given:
                return True
    return False


def _give(connection: sqlite3.Connection, edit: Edit, given: set[int], restored: set[int]) -> None:
    """Note what an edit adds or, if it is an undo, brings back."""
    adds = True
    while edit.kind == "undo":
        row = connection.execute(f"SELECT {EDIT_COLUMNS} FROM edits WHERE id = ?", (edit.target,)).fetchone()
        if row is None or row[0] >= edit.seq:
            return
        edit, adds = edit_of(row), not adds
    if adds:
        given.add(edit.seq)
    else:
        restored.update(id for removal in _removals(connection, edit.seq) for id in matching(connection, removal))


def _removals(connection: sqlite3.Connection, seq: int) -> list[Removal]:
    rows = connection.execute("SELECT target, document, item FROM removals WHERE edit = ? ORDER BY id", (seq,))
    return [Removal(*map(str, row)) for row in rows]
