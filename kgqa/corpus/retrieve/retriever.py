"""The protocol of retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from kgqa.model import Piece


class Retriever(Protocol):
    """Finds the best pieces for queries, without a language model. Thread-safe."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Search for several queries at once.

        Args:
            queries: Questions, or parts of questions.
            k: How many pieces for each query.

        Returns:
            For each query at most k distinct pieces with their scores, best first; equal scores in the order of the
            IRIs.
        """
        ...


Ranking = list[tuple[str, float]]
"""IRIs of pieces with their scores, best first."""


@runtime_checkable
class RankingRetriever(Retriever, Protocol):
    """A retriever that also finds the IRIs of pieces alone, which takes a tenth of the time."""

    def rank(self, queries: Sequence[str], k: int) -> list[Ranking]:
        """Return the IRIs and scores of the pieces that `search` finds."""
        ...

    def piece(self, iri: str, score: float) -> Piece | None:
        """Return a piece that `rank` has found, with a score; None if the index is damaged."""
        ...
