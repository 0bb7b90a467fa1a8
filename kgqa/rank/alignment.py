"""Alignment of a question's words with the hops of a path: each hop is matched with a run of consecutive words.

A question such as "what is the gender of X's mother's father" names one hop after the other. An embedding of the
whole path does not show whether the path has the hops in that order; the alignment does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

NOT_ALIGNED = 0.0
Encode = Callable[[Sequence[str]], np.ndarray]


class HopAligner:
    """The content words of one question, prepared for alignment with many paths.

    Args:
        words: The content words of the question, in the order of the hops; about ten at most.
        encode_questions: Encodes runs of the question's words as unit vectors, float32 of shape (n, size).
        encode: Encodes hops in words as unit vectors, float32 of shape (n, size).
    """

    def __init__(self, words: Sequence[str], *, encode_questions: Encode, encode: Encode) -> None:
        self._count = len(words)
        self._encode = encode
        self._stretches = [(i, j) for i in range(self._count) for j in range(i + 1, self._count + 1)]
        texts = [" ".join(words[i:j]) for i, j in self._stretches]
        self._vectors = encode_questions(texts) if texts else np.empty((0, 0), dtype=np.float32)
        self._cosines: dict[str, np.ndarray] = {}
        self._sums: dict[tuple[str, ...], np.ndarray] = {}

    def scores(self, chains: Sequence[tuple[str, ...]]) -> np.ndarray:
        """Return each chain's mean cosine between hops and their runs of words, for the best division into runs.

        Every word belongs to a hop. The result is float64 of shape (n,). A chain with more hops than words gets the
        score `NOT_ALIGNED`.
        """
        self._prepare(chains)
        return np.array([self._mean(chain, self._best(chain)[-1]) for chain in chains])

    def promises(self, chains: Sequence[tuple[str, ...]]) -> np.ndarray:
        """Return the scores of unfinished chains: like `scores`, but the last words may belong to later hops."""
        self._prepare(chains)
        return np.array([self._mean(chain, self._best(chain)[1:].max(initial=-np.inf)) for chain in chains])

    @staticmethod
    def _mean(chain: tuple[str, ...], total: float) -> float:
        return float(total) / len(chain) if chain and np.isfinite(total) else NOT_ALIGNED

    def _best(self, chain: tuple[str, ...]) -> np.ndarray:
        """Return a chain's best sum of cosines over exactly the first i words, for each i; shape (words + 1,)."""
        if chain not in self._sums:
            best = np.full(self._count + 1, -np.inf)
            if not chain:
                best[0] = 0.0
            else:
                before = self._best(chain[:-1])
                for (start, end), cosine in zip(self._stretches, self._cosines[chain[-1]]):
                    best[end] = max(best[end], before[start] + cosine)
            self._sums[chain] = best
        return self._sums[chain]

    def _prepare(self, chains: Sequence[tuple[str, ...]]) -> None:
        texts = list(dict.fromkeys(text for chain in chains for text in chain if text not in self._cosines))
        if texts:
            cosines = self._vectors @ self._encode(texts).T if self._count else np.empty((0, len(texts)))
            self._cosines.update(zip(texts, cosines.T))
