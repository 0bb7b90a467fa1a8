"""Retrievers over the rows of one table of pieces; fusing them needs no pieces, only rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kgqa.corpus.index.piece_table import PieceTable
from kgqa.model import Piece

Hit = tuple[int, float]
"""A row and its score."""


class Ranker(Protocol):
    """Ranks the rows of a table for queries. Thread-safe."""

    def rank(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k rows for each query, best first, equal scores in the order of the rows."""
        ...


class RowRetriever:
    """A `Retriever` of the pieces of one kind, from a ranker of their rows."""

    def __init__(self, pieces: PieceTable, ranker: Ranker) -> None:
        self._pieces = pieces
        self._ranker = ranker

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best pieces for each query; see `Retriever`."""
        found = self._ranker.rank(queries, k) if queries else []
        return [[self._pieces.piece(row, score) for row, score in hits] for hits in found]
