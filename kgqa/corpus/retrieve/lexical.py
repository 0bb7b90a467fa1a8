"""Retrieval by words: BM25."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.corpus.index.best_rows import best_rows
from kgqa.corpus.index.piece_table import PieceTable
from kgqa.corpus.index.word_index import WordIndex
from kgqa.corpus.retrieve.rows import Hit, RowRetriever


class LexicalRanker:
    """Ranks rows by BM25. A row that shares no word with the query is not ranked."""

    def __init__(self, words: WordIndex) -> None:
        self._words = words

    def rank(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the best rows for each query; see `Ranker`."""
        return [best_rows(self._words.scores(query), k, above=0.0) for query in queries]


class LexicalRetriever(RowRetriever):
    """Finds pieces by BM25."""

    def __init__(self, pieces: PieceTable, words: WordIndex) -> None:
        super().__init__(pieces, LexicalRanker(words))
