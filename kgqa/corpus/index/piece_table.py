"""The pieces of one kind in the index, by row; rows are in the order of the pieces' IRIs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter, DamagedIndex
from kgqa.model import Entity, Literal, Piece, PieceKind, Span, Triple, Value

IN_MEMORY = 500_000
"""Pieces of a table up to which their rows are kept in memory, about 100 MB; those of a larger one are read."""


def write_pieces(writer: ArrayWriter, kind: PieceKind, pieces: Iterable[Piece]) -> None:
    """Write the pieces of one kind, which must be in the order of their IRIs."""
    iris: list[str] = []

    def lines() -> Iterator[str]:
        for piece in pieces:
            iris.append(piece.iri)
            yield _line(piece)

    writer.add_texts(f"{kind}.pieces", lines())
    writer.add_texts(f"{kind}.iris", iris)


class PieceTable:
    """The pieces of one kind.

    Raises:
        ValueError: The files are not what `write_pieces` writes.
    """

    def __init__(self, folder: ArrayFolder, kind: PieceKind) -> None:
        self.kind: PieceKind = kind
        self.iris = folder.texts(f"{kind}.iris")
        self._lines = folder.texts(f"{kind}.pieces")
        if len(self.iris) != len(self._lines):
            raise ValueError(f"there are {len(self.iris)} IRIs and {len(self._lines)} pieces of the kind {kind}")

    def __len__(self) -> int:
        return len(self.iris)

    def piece(self, row: int, score: float = 0.0) -> Piece:
        """Return the piece in a row, with a score.

        Raises:
            DamagedIndex: The row is damaged.
        """
        try:
            text, spans, triples = json.loads(self._lines[row])
            return Piece(
                self.iris[row],
                self.kind,
                str(text),
                score,
                tuple(Span(str(d), str(c), int(begin), int(end)) for d, c, begin, end in spans),
                tuple(Triple(Entity(str(s)), str(p), _value(o)) for s, p, o in triples),
            )
        except (TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
            raise DamagedIndex(f"row {row} of the pieces of the kind {self.kind}") from error

    def row(self, iri: str) -> int | None:
        """Return the row of a piece; None if there is no such piece."""
        return self._rows.get(iri) if len(self) <= IN_MEMORY else self.iris.find(iri)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {self.iris[row]: row for row in range(len(self))}

    def get(self, iri: str, score: float = 0.0) -> Piece | None:
        """Return a piece by its IRI; None if there is no such piece."""
        row = self.row(iri)
        return None if row is None else self.piece(row, score)


def _line(piece: Piece) -> str:
    spans = [[each.document, each.chunk, each.begin, each.end] for each in piece.spans]
    triples = [[each.subject.iri, each.relation, _plain(each.object)] for each in piece.triples]
    return json.dumps([piece.text, spans, triples], ensure_ascii=False, separators=(",", ":"))


def _plain(value: Value) -> str | list[str]:
    return value.iri if isinstance(value, Entity) else [value.value, value.datatype, value.language]


def _value(value: Any) -> Value:
    return Entity(value) if isinstance(value, str) else Literal(*map(str, value))
