"""Several retrievers in one: reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.model import Piece
from kgqa.rank.fusion import RRF_K, average_ranks

MIN_DEPTH = 100
"""How many pieces of each channel are fused, at least."""


class FusedRetriever:
    """Fuses the rankings of several retrievers: a piece scores the sum of weight / (k + rank) over the retrievers.

    A retriever that did not find a piece adds nothing to its score.
    """

    def __init__(
        self,
        channels: Sequence[Retriever],
        weights: Sequence[float] | None = None,
        k: int = RRF_K,
        *,
        depth: int = MIN_DEPTH,
    ) -> None:
        """Fuse retrievers.

        Args:
            channels: The retrievers.
            weights: The weight of each retriever; None for equal weights.
            k: The constant of reciprocal rank fusion.
            depth: How many pieces of each retriever are fused, or as many as are asked for, if these are more.
        """
        self._channels = tuple(channels)
        self._weights = tuple(weights) if weights is not None else (1.0,) * len(self._channels)
        if len(self._weights) != len(self._channels):
            raise ValueError(f"{len(self._channels)} retrievers need as many weights, not {len(self._weights)}")
        self._k = k
        self._depth = depth

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best pieces for each query; see `Retriever`."""
        depth = max(k, self._depth)
        found = [channel.search(queries, depth) for channel in self._channels]
        return [self._fuse([of_channel[number] for of_channel in found])[:k] for number in range(len(queries))]

    def _fuse(self, rankings: Sequence[Sequence[Piece]]) -> list[Piece]:
        pieces: dict[str, Piece] = {}
        scores: dict[str, float] = {}
        for weight, ranking in zip(self._weights, rankings):
            for rank, piece in zip(average_ranks(np.array([piece.score for piece in ranking])), ranking):
                pieces.setdefault(piece.iri, piece)
                scores[piece.iri] = scores.get(piece.iri, 0.0) + weight / (self._k + rank)
        order = sorted(pieces, key=lambda iri: (-round(scores[iri], 12), iri))
        return [replace(pieces[iri], score=scores[iri]) for iri in order]
