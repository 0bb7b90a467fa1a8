"""Several retrievers in one: reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.corpus.retrieve.rows import Hit, Ranker
from kgqa.model import Piece
from kgqa.rank.fusion import RRF_K, average_ranks

DEPTH = 100
"""How many results of each channel are fused, at least."""
Key = TypeVar("Key", int, str)


def fuse(
    rankings: Sequence[Sequence[tuple[Key, float]]], weights: Sequence[float], k: int = RRF_K
) -> list[tuple[Key, float]]:
    """Fuse rankings: a result scores the sum of weight / (k + rank) over the rankings that contain it.

    Args:
        rankings: Pairs of a result and its score, best first; equal scores share the average of their ranks.
        weights: The weight of each ranking.
        k: The constant of reciprocal rank fusion.

    Returns:
        The results with their fused scores, best first, equal scores in the order of the results.
    """
    scores: dict[Key, float] = {}
    for weight, ranking in zip(weights, rankings, strict=True):
        ranks = average_ranks(np.array([score for _, score in ranking]))
        for (result, _), rank in zip(ranking, ranks.tolist()):
            scores[result] = scores.get(result, 0.0) + weight / (k + rank)
    return sorted(scores.items(), key=lambda each: (-round(each[1], 12), each[0]))


class FusedRanker:
    """Fuses rankers of the rows of one table."""

    def __init__(self, channels: Sequence[Ranker], weights: Sequence[float] = (), k: int = RRF_K) -> None:
        self._channels = tuple(channels)
        self._weights = _weights(weights, len(self._channels))
        self._k = k

    def rank(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the best rows for each query; see `Ranker`."""
        found = [channel.rank(queries, max(k, DEPTH)) for channel in self._channels]
        return [fuse([each[number] for each in found], self._weights, self._k)[:k] for number in range(len(queries))]


class FusedRetriever:
    """Fuses retrievers, of pieces of one or of several kinds."""

    def __init__(self, channels: Sequence[Retriever], weights: Sequence[float] = (), k: int = RRF_K) -> None:
        """Fuse retrievers.

        Args:
            channels: The retrievers.
            weights: The weight of each retriever; empty for equal weights.
            k: The constant of reciprocal rank fusion.
        """
        self._channels = tuple(channels)
        self._weights = _weights(weights, len(self._channels))
        self._k = k

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best pieces for each query; see `Retriever`."""
        if not queries:
            return []
        found = [channel.search(queries, max(k, DEPTH)) for channel in self._channels]
        return [self._fused([each[number] for each in found])[:k] for number in range(len(queries))]

    def _fused(self, rankings: Sequence[Sequence[Piece]]) -> list[Piece]:
        pieces = {piece.iri: piece for ranking in reversed(rankings) for piece in ranking}
        scored = [[(piece.iri, piece.score) for piece in ranking] for ranking in rankings]
        return [replace(pieces[iri], score=score) for iri, score in fuse(scored, self._weights, self._k)]


def _weights(weights: Sequence[float], count: int) -> tuple[float, ...]:
    if weights and len(weights) != count:
        raise ValueError(f"{count} retrievers need as many weights, not {len(weights)}")
    return tuple(weights) or (1.0,) * count
