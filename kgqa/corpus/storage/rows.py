"""Items, additions and edits as rows of the tables of a corpus."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from kgqa.corpus.edit_log import EDIT_KINDS, Edit, EditSource
from kgqa.corpus.items import (
    Addition,
    HyperedgeItem,
    Item,
    LinkItem,
    Party,
    SameItem,
    StatementItem,
    item_from,
    normal_name,
)
from kgqa.corpus.rdf.terms import stored_value
from kgqa.corpus.snapshot import concerned, relation_iri
from kgqa.errors import CorpusError
from kgqa.model.terms import Literal
from kgqa.storage.loading import parse_json

_RESTORE = "Restore corpus.sqlite from a copy, or build the corpus again."
BATCH = 500
"""How many values one query looks up."""
ADDITION_COLUMNS = """
    a.id, a.item, i.kind, i.body, d.text, c.text, a.start, a.stop, a.confidence, m.text, p.text, a.reason"""
ADDITION_TABLES = """
    additions a JOIN items i ON i.id = a.item JOIN words d ON d.id = a.document JOIN words c ON c.id = a.chunk
    JOIN words m ON m.id = a.model JOIN words p ON p.id = a.prompt"""
EDIT_COLUMNS = "seq, id, kind, agent, reason, session, question, sources, target, at, previous, content"
LIVE = """COALESCE((
    SELECT f.live FROM flips f WHERE f.addition = a.id AND f.seq <= :seq ORDER BY f.seq DESC LIMIT 1), 1)"""
"""Whether the addition `a` was live after edit `:seq`, if it was there."""


class AdditionReader:
    """Turns rows of ADDITION_COLUMNS into additions; each item is parsed once.

    Raises:
        CorpusError: a row is not an addition.
    """

    def __init__(self) -> None:
        self._items: dict[int, Item] = {}

    def read(self, rows: Iterable[Sequence[Any]]) -> Iterator[Addition]:
        """Yield the additions of rows."""
        items = self._items
        for _, number, kind, body, document, chunk, begin, end, confidence, model, prompt, reason in rows:
            item = items.get(number)
            if item is None:
                item = items[number] = item_of(kind, body)
            if (
                not (isinstance(begin, int) and isinstance(end, int) and isinstance(confidence, (float, type(None))))
                or not type(document) is type(chunk) is type(model) is type(prompt) is type(reason) is str
            ):
                raise CorpusError("The corpus is damaged: a place or an origin has a wrong type.", _RESTORE)
            yield Addition(item, document, chunk, begin, end, confidence, model, prompt, reason)


def item_of(kind: Any, body: Any) -> Item:
    """Read an item. Raises CorpusError if it is damaged."""
    try:
        return item_from(str(kind), str(body))
    except ValueError as error:
        raise CorpusError(f"The corpus is damaged: {error}.", _RESTORE) from error


def concern_keys(item: Item) -> set[int]:
    """Return the keys under which an item is found by what it says something about; see `concern_key`."""
    if isinstance(item, SameItem):
        return {concern_key(item.left, identity=True), concern_key(item.right, identity=True)}
    if isinstance(item, LinkItem):
        return {concern_key(item.entity, identity=True), concern_key(item.target, identity=True)}
    iris = set(concerned(item))
    if isinstance(item, StatementItem):
        value = item.object.iri if isinstance(item.object, Party) else item.object
        iris.add(fact_iri(item.subject.iri, item.relation, value))
    elif isinstance(item, HyperedgeItem):
        iris.add(segment_iri(item.segment))
    return set(map(concern_key, iris))


def segment_iri(segment: str) -> str:
    """Return what stands for the hyperedges that have the same segment."""
    return f"segment:{normal_name(segment)}"


def fact_iri(subject: str, relation: str, value: str | Literal) -> str:
    """Return what stands for the statements that have the same subject, relation and object before resolution.

    Args:
        subject: the IRI of a name (`Party.iri`).
        relation: the relation in words.
        value: the IRI of a name, or a literal.
    """
    if isinstance(value, Literal):
        stored = stored_value(value)
        value = f'"{stored.value}" {stored.datatype} {stored.language}'
    return f"fact:{subject} {relation_iri(relation)} {value}"


@lru_cache(1 << 16)
def concern_key(iri: str, *, identity: bool = False) -> int:
    """Return a hash of an IRI of 64 bits. In the rare case of equal hashes, more is read than needed.

    Args:
        identity: whether the key finds what else means the same entity (`SameItem`, `LinkItem`).
    """
    text = f"={iri}" if identity else iri
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def edit_row(edit: Edit) -> tuple[Any, ...]:
    """Return the values of EDIT_COLUMNS."""
    sources = msgspec.to_builtins(edit.sources)
    return (
        edit.seq,
        edit.id,
        edit.kind,
        edit.agent,
        edit.reason,
        edit.session,
        edit.question,
        json.dumps(sources, ensure_ascii=False),
        edit.target,
        edit.at,
        " ".join(edit.previous),
        edit.content,
    )


def edit_of(row: Sequence[Any]) -> Edit:
    """Return an edit without its additions and removals from a row of EDIT_COLUMNS. Raises CorpusError."""
    seq, id, kind, agent, reason, session, question, sources, target, at, previous, content = row
    texts = (id, kind, agent, reason, session, question, sources, target, at, previous, content)
    try:
        if kind not in EDIT_KINDS or not all(isinstance(text, str) for text in texts):
            raise ValueError("a field of an edit is not a text")
        read: tuple[EditSource, ...] = parse_json(sources, tuple[EditSource, ...])
    except (ValueError, TypeError) as error:
        raise CorpusError(f"The corpus is damaged: edit {seq} cannot be read ({error}).") from error
    return Edit(
        id, seq, kind, agent, reason, session, question, read, target, at, tuple(previous.split()), content
    )  # fmt: skip


def look_up(connection: sqlite3.Connection, query: str, values: Sequence[Any], *more: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query whose first `??` stands for a list of values, asked in batches.

    Args:
        more: named parameters, as one mapping.
    """
    named = dict(more[0]) if more else {}
    for start in range(0, len(values), BATCH):
        batch = values[start : start + BATCH]
        names = {f"v{number}": value for number, value in enumerate(batch)}
        marks = ", ".join(f":{name}" for name in names)
        yield from connection.execute(query.replace("??", marks), {**named, **names})
