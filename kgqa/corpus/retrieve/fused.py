"""Several retrievers in one: reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kgqa.corpus.retrieve.retriever import Ranking, RankingRetriever, Retriever
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
        found = self._ranked(queries, k)
        return [[piece for each in ranking if (piece := self._piece(*each))] for ranking in found]

    def rank(self, queries: Sequence[str], k: int) -> list[Ranking]:
        return [[(iri, score) for iri, score, _ in ranking] for ranking in self._ranked(queries, k)]

    def piece(self, iri: str, score: float) -> Piece | None:
        found = (each.piece(iri, score) for each in self._channels if isinstance(each, RankingRetriever))
        return next((piece for piece in found if piece), None)

    def _ranked(self, queries: Sequence[str], k: int) -> list[list[tuple[str, float, Piece | int]]]:
        """Return for each query the best IRIs with their scores, and the piece or the number of the first channel."""
        depth = max(k, self._depth)
        found: list[list[list[tuple[str, float, Piece | int]]]] = []
        for number, channel in enumerate(self._channels):
            if isinstance(channel, RankingRetriever):
                found.append([[(*each, number) for each in ranking] for ranking in channel.rank(queries, depth)])
            else:
                pieces = channel.search(queries, depth)
                found.append([[(each.iri, each.score, each) for each in ranking] for ranking in pieces])
        return [self._fuse([of_channel[number] for of_channel in found])[:k] for number in range(len(queries))]

    def _fuse(
        self, rankings: Sequence[Sequence[tuple[str, float, Piece | int]]]
    ) -> list[tuple[str, float, Piece | int]]:
        first: dict[str, Piece | int] = {}
        scores: dict[str, float] = {}
        for weight, ranking in zip(self._weights, rankings):
            ranks = average_ranks(np.array([score for _, score, _ in ranking])).tolist()
            for rank, (iri, _, origin) in zip(ranks, ranking):
                first.setdefault(iri, origin)
                scores[iri] = scores.get(iri, 0.0) + weight / (self._k + rank)
        order = sorted(first, key=lambda iri: (-round(scores[iri], 12), iri))
        return [(iri, scores[iri], first[iri]) for iri in order]

    def _piece(self, iri: str, score: float, origin: Piece | int) -> Piece | None:
        if isinstance(origin, Piece):
            return replace(origin, score=score)
        channel = self._channels[origin]
        return channel.piece(iri, score) if isinstance(channel, RankingRetriever) else None
