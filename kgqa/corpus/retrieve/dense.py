"""Retrieval by meaning: embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.corpus.index.piece_table import PieceTable
from kgqa.corpus.index.vector_store import VectorSnapshot
from kgqa.corpus.index.windows import TextEncoder
from kgqa.corpus.retrieve.retriever import Ranking
from kgqa.model import Piece


class DenseRetriever:
    """Ranks the pieces of one kind by the cosine of their embeddings and the query's."""

    def __init__(self, pieces: PieceTable, vectors: VectorSnapshot, encoder: TextEncoder) -> None:
        self._pieces = pieces
        self._vectors = vectors
        self._encoder = encoder

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best pieces for each query; see `Retriever`."""
        return [[piece for each in hits if (piece := self._pieces.get(*each))] for hits in self.rank(queries, k)]

    def rank(self, queries: Sequence[str], k: int) -> list[Ranking]:
        if not queries:
            return []
        return self._vectors.search(self._pieces.kind, self._encoder.encode_questions(list(queries)), k)

    def piece(self, iri: str, score: float) -> Piece | None:
        return self._pieces.get(iri, score)
