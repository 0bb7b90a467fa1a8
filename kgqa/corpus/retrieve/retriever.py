"""The protocol of retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
