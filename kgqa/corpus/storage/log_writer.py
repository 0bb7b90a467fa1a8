"""Appends edits to the log in SQLite, and keeps which additions are live."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from kgqa.corpus.edit_log import Edit, Removal, cancelled_edits, content_hash, sealed
from kgqa.corpus.items import Addition, Item, item_text, key_of_text
from kgqa.corpus.storage.rows import EDIT_COLUMNS, LIVE, concern_keys, edit_of, edit_row, look_up
from kgqa.errors import CorpusError

_PART = 5_000
"""How many additions are written at once."""
_REMOVED = """EXISTS (
    SELECT 1 FROM removals r JOIN edits x ON x.seq = r.edit WHERE x.active AND (
        r.target = e.id AND r.item = i.key AND r.document IN ('', d.text)
        OR r.target = e.id AND r.item = '' AND r.document = d.text
        OR r.target = '' AND r.item = i.key AND r.document = d.text))"""
_STATE = f"""
    SELECT a.id, a.edit, {LIVE}, e.active AND NOT {_REMOVED} FROM additions a JOIN edits e ON e.seq = a.edit
    JOIN items i ON i.id = a.item JOIN words d ON d.id = a.document WHERE """


def append_edit(
    connection: sqlite3.Connection, edit: Edit, additions: Iterable[Addition], removals: Sequence[Removal]
) -> Edit:
    """Append an edit in an open transaction.

    Args:
        edit: the edit without id, number, hashes and content. If it has an id, it comes from another log, and keeps its
            id and the edits before it.
        additions: what it adds.
        removals: what it removes.

    Returns:
        The edit with its id and its number, without its content.

    Raises:
        CorpusError: the target of an undo is missing, or the edit of another log is not what its id says.
    """
    run = connection.execute
    (seq,) = run("SELECT COALESCE(MAX(seq), 0) + 1 FROM edits").fetchone()
    (first,) = run("SELECT COALESCE(MAX(id), 0) + 1 FROM additions").fetchone()
    if edit.kind == "undo" and not run("SELECT 1 FROM edits WHERE id = ?", (edit.target,)).fetchone():
        raise CorpusError(f"There is no edit {edit.target}.", "List the edits of the corpus.")
    writer = _AdditionWriter(connection, seq, first)
    content = content_hash(writer.write(additions), removals)
    if edit.id:
        if sealed(edit, content).id != edit.id:
            raise CorpusError(f"The edit {edit.id} is damaged.", "Get the log again.")
        done = replace(edit, seq=seq, content=content)
    else:
        previous = tuple(sorted(id for (id,) in run("SELECT id FROM edits WHERE head")))
        done = sealed(replace(edit, seq=seq, previous=previous), content)
    connection.executemany("UPDATE edits SET head = 0 WHERE id = ?", [(id,) for id in done.previous])
    row = (*edit_row(done), 1, 1, first, writer.count)
    run(f"INSERT INTO edits ({EDIT_COLUMNS}, active, head, first, additions) VALUES ({_marks(row)})", row)
    connection.executemany(
        "INSERT INTO removals (edit, target, document, item) VALUES (?, ?, ?, ?)",
        [(seq, removal.edit, removal.document, removal.item) for removal in removals],
    )
    _update_live(connection, done, removals)
    return done


def _update_live(connection: sqlite3.Connection, edit: Edit, removals: Sequence[Removal]) -> None:
    """Record which additions an edit makes live or not."""
    run = connection.execute
    changed: list[tuple[int, int, int]] = []
    if run("SELECT 1 FROM removals LIMIT 1").fetchone():
        # an addition that an earlier edit removed from its document in every edit is not live
        rows = run(f"{_STATE} a.edit = :seq AND a.id >= :first", {"seq": edit.seq, "first": _first(connection, edit)})
        changed += [(id, edit.seq, 0) for id, _, _, live in rows if not live]
    candidates = dict.fromkeys(id for removal in removals for id in matching(connection, removal))
    if edit.kind == "undo":
        for number in _toggled(connection, edit):
            run("UPDATE edits SET active = NOT active WHERE seq = ?", (number,))
            first, count = run("SELECT first, additions FROM edits WHERE seq = ?", (number,)).fetchone()
            candidates.update(dict.fromkeys(range(first, first + count)))
            of_edit = run("SELECT target, document, item FROM removals WHERE edit = ?", (number,)).fetchall()
            candidates.update(dict.fromkeys(id for each in of_edit for id in matching(connection, Removal(*each))))
    found = look_up(connection, f"{_STATE} a.id IN (??)", list(candidates), {"seq": edit.seq})
    changed += [(id, edit.seq, live) for id, of, before, live in found if before != live and of != edit.seq]
    connection.executemany("INSERT INTO flips (addition, seq, live) VALUES (?, ?, ?)", changed)


def _toggled(connection: sqlite3.Connection, undo: Edit) -> list[int]:
    """Return the numbers of the edits that an undo cancels or brings back."""
    rows = connection.execute(
        f"SELECT {EDIT_COLUMNS} FROM edits WHERE kind = 'undo' OR id IN (SELECT target FROM edits WHERE kind = 'undo')"
    )
    edits = [edit_of(row) for row in rows]
    after = cancelled_edits(edits)
    before = cancelled_edits(edit for edit in edits if edit.id != undo.id)
    return [edit.seq for edit in edits if edit.id in after ^ before]


def matching(connection: sqlite3.Connection, removal: Removal) -> Iterator[int]:
    """Yield the ids of the additions whose tags a removal removes."""
    query = "SELECT a.id FROM additions a"
    tests = []
    if removal.edit:
        query += " JOIN edits e ON e.seq = a.edit"
        tests.append("e.id = :edit")
    if removal.document:
        tests.append("a.document = (SELECT id FROM words WHERE text = :document)")
    if removal.item:
        tests.append("a.item = (SELECT id FROM items WHERE key = :item)")
    named = {"edit": removal.edit, "document": removal.document, "item": removal.item}
    for (id,) in connection.execute(f"{query} WHERE {' AND '.join(tests)}", named):
        yield id


def _first(connection: sqlite3.Connection, edit: Edit) -> int:
    (first,) = connection.execute("SELECT first FROM edits WHERE seq = ?", (edit.seq,)).fetchone()
    return int(first)


class _AdditionWriter:
    """Writes the additions of one edit, with their items, in parts."""

    def __init__(self, connection: sqlite3.Connection, seq: int, first: int) -> None:
        self._connection = connection
        self._seq = seq
        self._first = first
        self._words: dict[str, int] = {}
        self.count = 0

    def write(self, additions: Iterable[Addition]) -> Iterator[tuple[str, Addition]]:
        """Write additions; yield each with the key of its item."""
        rest = iter(additions)
        while part := [_normalised(each) for each in islice(rest, _PART)]:
            keys: dict[Item, str] = {}
            texts: dict[str, tuple[Item, str]] = {}
            for each in part:
                item = each.item
                if item not in keys:
                    text = item_text(item)
                    keys[item] = key = key_of_text(item.kind, text)
                    texts[key] = item, text
            numbers = self._items(texts)
            words = self._numbers_of(
                {word for each in part for word in (each.document, each.chunk, each.model, each.prompt)}
            )
            start = self._first + self.count
            self._connection.executemany(
                "INSERT INTO additions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        start + position,
                        self._seq,
                        numbers[keys[each.item]],
                        words[each.document],
                        words[each.chunk],
                        each.begin,
                        each.end,
                        each.confidence,
                        words[each.model],
                        words[each.prompt],
                        each.reason,
                    )
                    for position, each in enumerate(part)
                ],
            )
            self.count += len(part)
            yield from ((keys[each.item], each) for each in part)

    def _items(self, items: dict[str, tuple[Item, str]]) -> dict[str, int]:
        """Return the numbers of items by their keys; new items are written. `items`: by key, each with its text."""
        run = self._connection
        found = dict(look_up(run, "SELECT key, id FROM items WHERE key IN (??)", list(items)))
        (last,) = run.execute("SELECT COALESCE(MAX(id), 0) FROM items").fetchone()
        new = {key: each for key, each in items.items() if key not in found}
        found.update((key, last + number) for number, key in enumerate(new, 1))
        run.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?)",
            [(found[key], key, item.kind, text) for key, (item, text) in new.items()],
        )
        concerns = sorted((number, found[key]) for key, (item, _) in new.items() for number in concern_keys(item))
        run.executemany("INSERT INTO concerns VALUES (?, ?)", concerns)
        return found

    def _numbers_of(self, words: set[str]) -> dict[str, int]:
        """Return the numbers of texts; new texts are written."""
        run, known = self._connection, self._words
        missing = sorted(word for word in words if word not in known)
        known.update(look_up(run, "SELECT text, id FROM words WHERE text IN (??)", missing))
        (last,) = run.execute("SELECT COALESCE(MAX(id), 0) FROM words").fetchone()
        new = [(last + number, word) for number, word in enumerate((w for w in missing if w not in known), 1)]
        run.executemany("INSERT INTO words VALUES (?, ?)", new)
        known.update((word, number) for number, word in new)
        return known


def _normalised(addition: Addition) -> Addition:
    """Return an addition as it will be read again."""
    if isinstance(addition.confidence, int):
        return replace(addition, confidence=float(addition.confidence))
    return addition


def _marks(row: Sequence[object]) -> str:
    return ", ".join("?" * len(row))
