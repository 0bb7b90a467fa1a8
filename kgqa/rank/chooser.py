"""Who decides between candidates: the `Chooser` protocol, and the offline chooser that needs no language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.lexical import bm25
from kgqa.rank.semantic import CachedEncoder


class Chooser(Protocol):
    """Makes batches of independent decisions about one question. It may be wrong, and it may not answer.

    `name` says who decided, for people.
    """

    name: str

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int]]:
        """For each chunk, the indices of its best candidates, best first, at most `k`."""
        ...

    def score(self, question: str, candidates: Sequence[Candidate]) -> np.ndarray:
        """A score for each candidate, float64 of shape (len(candidates),); higher is better."""
        ...


class OfflineChooser:
    """Ranks by similarity of words: cosine of embeddings, or BM25 where there are none.

    The question is given with the mention of its topic left out; a name pulls an embedding away from what is
    asked about it.
    """

    def __init__(self, encoder: CachedEncoder | None) -> None:
        self._encoder = encoder
        self.name = "similarity of embeddings" if encoder else "similarity of words (BM25)"

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int]]:
        every = [candidate for chunk in chunks for candidate in chunk]
        scores = self.score(question, every)
        picked, start = [], 0
        for chunk in chunks:
            part = scores[start : start + len(chunk)]
            picked.append([int(i) for i in np.argsort(-part, kind="stable")[:k]])
            start += len(chunk)
        return picked

    def score(self, question: str, candidates: Sequence[Candidate]) -> np.ndarray:
        if not candidates:
            return np.zeros(0)
        words = [candidate.words for candidate in candidates]
        if self._encoder is None:
            scores = bm25(question, words)
            return scores / scores.max() if scores.max() > 0 else scores
        query = self._encoder.encode_once([question])[0]
        return (self._encoder.encode(words) @ query).astype(np.float64)
