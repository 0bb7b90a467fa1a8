"""Retrieval by meaning: embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.corpus.index.piece_table import PieceTable
from kgqa.corpus.index.vector_store import VectorSnapshot
from kgqa.corpus.index.windows import TextEncoder
from kgqa.corpus.retrieve.rows import Hit, RowRetriever


class DenseRanker:
    """Ranks rows by the cosine of their embeddings and the query's."""

    def __init__(self, pieces: PieceTable, vectors: VectorSnapshot, encoder: TextEncoder) -> None:
        self._pieces = pieces
        self._vectors = vectors
        self._encoder = encoder

    def rank(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the best rows for each query; see `Ranker`."""
        found = self._vectors.search(self._pieces.kind, self._encoder.encode_questions(list(queries)), k)
        row_of = self._pieces.row
        return [[(row, score) for iri, score in hits if (row := row_of(iri)) is not None] for hits in found]


class DenseRetriever(RowRetriever):
    """Finds pieces by embeddings."""

    def __init__(self, pieces: PieceTable, vectors: VectorSnapshot, encoder: TextEncoder) -> None:
        super().__init__(pieces, DenseRanker(pieces, vectors, encoder))
