"""Aligns the words of a question with the hops of a path: each hop takes one stretch of them, in order.

A question such as "what is the gender of X's mother's father" says one hop after the other. Whether a path says
them in that order the embedding of the whole cannot tell; the alignment can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

NOT_ALIGNED = 0.0
Encode = Callable[[Sequence[str]], np.ndarray]


class HopAligner:
    """The content words of one question, ready to be aligned with many paths.

    Args:
        words: content words in the order in which hops leave the topic, at most some ten.
        encode_questions, encode: texts to vectors of length one, float32 of shape (n, size): of stretches of a question,
            and of hops, which come again.
    """

    def __init__(self, words: Sequence[str], *, encode_questions: Encode, encode: Encode) -> None:
        self._count = len(words)
        self._encode = encode
        self._stretches = [(i, j) for i in range(self._count) for j in range(i + 1, self._count + 1)]
        texts = [" ".join(words[i:j]) for i, j in self._stretches]
        self._vectors = encode_questions(texts) if texts else np.empty((0, 0), dtype=np.float32)
        self._cosines: dict[str, np.ndarray] = {}
        self._known: dict[tuple[str, ...], np.ndarray] = {}

    def scores(self, chains: Sequence[tuple[str, ...]]) -> np.ndarray:
        """The mean cosine of each chain's hops with their stretches in the best division of all words, float64 of shape
        (n,); `NOT_ALIGNED` for a chain of more hops than there are words.
        """
        self._prepare(chains)
        return np.array([self._mean(chain, self._best(chain)[-1]) for chain in chains])

    def promises(self, chains: Sequence[tuple[str, ...]]) -> np.ndarray:
        """As `scores`, but words at the end may be left for hops to come."""
        self._prepare(chains)
        return np.array([self._mean(chain, self._best(chain)[1:].max(initial=-np.inf)) for chain in chains])

    @staticmethod
    def _mean(chain: tuple[str, ...], total: float) -> float:
        return float(total) / len(chain) if chain and np.isfinite(total) else NOT_ALIGNED

    def _best(self, chain: tuple[str, ...]) -> np.ndarray:
        """For each number of words, the best sum of cosines when this chain takes exactly so many of the first."""
        if chain not in self._known:
            best = np.full(self._count + 1, -np.inf)
            if not chain:
                best[0] = 0.0
            else:
                before = self._best(chain[:-1])
                for (start, end), cosine in zip(self._stretches, self._cosines[chain[-1]]):
                    best[end] = max(best[end], before[start] + cosine)
            self._known[chain] = best
        return self._known[chain]

    def _prepare(self, chains: Sequence[tuple[str, ...]]) -> None:
        texts = list(dict.fromkeys(text for chain in chains for text in chain if text not in self._cosines))
        if texts:
            cosines = self._vectors @ self._encode(texts).T if self._count else np.empty((0, len(texts)))
            self._cosines.update(zip(texts, cosines.T))
