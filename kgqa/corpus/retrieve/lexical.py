"""Retrieval by words: BM25."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgqa.corpus.index.best_rows import best_rows
from kgqa.corpus.index.piece_table import PieceTable
from kgqa.corpus.index.word_index import WordIndex
from kgqa.corpus.retrieve.retriever import Ranking
from kgqa.model import Piece


class LexicalRetriever:
    """Ranks the pieces of one kind by BM25. A piece that shares no word with the query is not returned."""

    def __init__(self, pieces: PieceTable, words: WordIndex) -> None:
        self._pieces = pieces
        self._words = words

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best pieces for each query; see `Retriever`."""
        return [[self._pieces.piece(row, score) for row, score in rows] for rows in self._rows(queries, k)]

    def rank(self, queries: Sequence[str], k: int) -> list[Ranking]:
        iris = self._pieces.iris
        return [[(iris[row], score) for row, score in rows] for rows in self._rows(queries, k)]

    def piece(self, iri: str, score: float) -> Piece | None:
        return self._pieces.get(iri, score)

    def _rows(self, queries: Sequence[str], k: int) -> Iterator[list[tuple[int, float]]]:
        return (best_rows(self._words.scores(query), k, above=0.0) for query in queries)
