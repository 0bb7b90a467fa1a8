"""Reads the additions that are live now, or were live after an earlier edit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kgqa.corpus.items import Addition, Item, LinkItem, SameItem
from kgqa.corpus.storage.connection import Connections
from kgqa.corpus.storage.rows import (
    ADDITION_COLUMNS,
    ADDITION_TABLES,
    LIVE,
    AdditionReader,
    concern_key,
    look_up,
)

_ROWS = 2_000
_AT = f"a.edit <= :seq AND {LIVE}"
_CONCERNING = f"""
    SELECT {ADDITION_COLUMNS} FROM concerns k CROSS JOIN {ADDITION_TABLES}
    WHERE k.key IN (??) AND a.item = k.item AND {_AT}"""

_TAGGED = f"""
    SELECT {ADDITION_COLUMNS}, e.id FROM concerns k CROSS JOIN {ADDITION_TABLES} JOIN edits e ON e.seq = a.edit
    WHERE k.key IN (??) AND a.item = k.item AND {_AT}"""


@dataclass(frozen=True, slots=True)
class TouchedAddition:
    """An addition that edits touched: its number, and whether it was live before and after them."""

    number: int
    addition: Addition
    before: bool
    after: bool


class LiveAdditions:
    """The live additions of a corpus. `seq` is the number of an edit: what was live directly after it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def all(self, seq: int, kinds: Collection[str] = ()) -> Iterator[Addition]:
        """Yield all live additions, or those of some kinds of items (`Item.kind`)."""
        wanted = f"AND i.kind IN ({', '.join(repr(str(kind)) for kind in sorted(kinds))})" if kinds else ""
        with self._connections.reading() as connection:
            cursor = connection.execute(
                f"SELECT {ADDITION_COLUMNS} FROM {ADDITION_TABLES} WHERE {_AT} {wanted} ORDER BY a.id", {"seq": seq}
            )
            yield from AdditionReader().read(cursor)

    def concerning(self, iris: Iterable[str], seq: int) -> dict[int, Addition]:
        """Return the live additions that say something about one of the IRIs, by their numbers.

        Args:
            iris: IRIs of what is `kgqa.corpus.snapshot.concerned`, or results of `fact_iri` and `segment_iri`. A few
                additions about other IRIs may be found, too.
        """
        keys = sorted({concern_key(iri) for iri in iris})
        with self._connections.reading() as connection:
            rows = {row[0]: row for row in look_up(connection, _CONCERNING, keys, {"seq": seq})}
            return dict(zip(rows, AdditionReader().read(rows.values())))

    def tagged(self, iris: Iterable[str], seq: int) -> list[tuple[str, Addition]]:
        """Return the live additions that `concerning` finds, each after the id of the edit that added it."""
        keys = sorted({concern_key(iri) for iri in iris})
        with self._connections.reading() as connection:
            rows = list(dict.fromkeys(look_up(connection, _TAGGED, keys, {"seq": seq})))
            return [(row[-1], each) for row, each in zip(rows, AdditionReader().read(row[:-1] for row in rows))]

    def edited(self, kind: str, seq: int) -> list[tuple[str, Addition]]:
        """Return the live additions of a kind of items that no document says, each after the id of its edit."""
        query = f"""SELECT {ADDITION_COLUMNS}, e.id FROM {ADDITION_TABLES} JOIN edits e ON e.seq = a.edit
            WHERE a.document = (SELECT id FROM words WHERE text = '') AND i.kind = :kind AND {_AT} ORDER BY a.id"""
        with self._connections.reading() as connection:
            rows = connection.execute(query, {"kind": kind, "seq": seq}).fetchall()
            return [(row[-1], each) for row, each in zip(rows, AdditionReader().read(row[:-1] for row in rows))]

    def identities(self, entities: Iterable[str], seq: int) -> tuple[list[SameItem], list[LinkItem]]:
        """Return the live items that say what means the same as some entities, directly or over others.

        Args:
            entities: IRIs of names (`Party.iri`), or of entities of a knowledge graph.
        """
        found: set[SameItem | LinkItem] = set()
        known: set[str] = set()
        asked = set(entities)
        with self._connections.reading() as connection:
            while asked:
                known |= asked
                keys = sorted(concern_key(iri, identity=True) for iri in asked)
                rows = list(look_up(connection, _CONCERNING, keys, {"seq": seq}))
                items = {each.item for each in AdditionReader().read(rows)}
                found |= {item for item in items if isinstance(item, (SameItem, LinkItem))}
                asked = {iri for item in items for iri in _ends(item)} - known
        same = [item for item in found if isinstance(item, SameItem)]
        return same, [item for item in found if isinstance(item, LinkItem)]

    def named(self, iris: Iterable[str], seq: int) -> set[str]:
        """Return those of the IRIs that live additions say something about."""
        query = f"""SELECT DISTINCT k.key FROM concerns k WHERE k.key IN (??) AND EXISTS (
            SELECT 1 FROM additions a WHERE a.item = k.item AND {_AT})"""
        by_key = {concern_key(iri): iri for iri in iris}
        with self._connections.reading() as connection:
            return {by_key[key] for (key,) in look_up(connection, query, list(by_key), {"seq": seq})}

    def touched(self, after: int, until: int) -> list[TouchedAddition]:
        """Return the additions that edits with numbers above `after` up to `until` added, removed or brought back."""
        query = f"""SELECT {ADDITION_COLUMNS}, a.edit <= :after AND {LIVE.replace(":seq", ":after")},
            a.edit <= :until AND {LIVE.replace(":seq", ":until")} FROM {ADDITION_TABLES} WHERE a.id IN (
            SELECT id FROM additions WHERE edit <= :until AND id >= (
                SELECT COALESCE(MIN(first), 0) FROM edits WHERE seq > :after)
            UNION SELECT addition FROM flips WHERE seq > :after AND seq <= :until)"""
        with self._connections.reading() as connection:
            rows = connection.execute(query, {"after": after, "until": until}).fetchall()
            additions = AdditionReader().read(row[:-2] for row in rows)
            return [
                TouchedAddition(row[0], addition, bool(row[-2]), bool(row[-1]))
                for row, addition in zip(rows, additions)
            ]


def _ends(item: Item) -> tuple[str, ...]:
    if isinstance(item, SameItem):
        return item.left, item.right
    return (item.entity, item.target) if isinstance(item, LinkItem) else ()
