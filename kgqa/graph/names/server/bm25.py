"""BM25 as SQLite's FTS5 computes it, so that the indexes in SQLite and on a server rank names equally.

Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), with the constants of FTS5 and
its lower bound for the weight of words that are in more than half of all names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

K1 = 1.2
B = 0.75
MIN_WEIGHT = 1e-6


@dataclass(frozen=True, slots=True)
class NameBM25:
    """The BM25 scores of an index with `names` names, which have `tokens` words in all, repeated ones included."""

    names: int
    tokens: int

    def weight(self, frequency: int) -> float:
        """Return the weight of a word that is in `frequency` names: its inverse document frequency."""
        weight = math.log((self.names - frequency + 0.5) / (frequency + 0.5))
        return weight if weight > 0.0 else MIN_WEIGHT

    def score(self, weights: Sequence[float], counts: Sequence[int], length: int) -> float:
        """Score a name; lowest is best.

        Args:
            weights, counts: of each query word, its weight and how often it is in the name.
            length: of the name, in words.
        """
        average = self.tokens / self.names
        total = 0.0
        # in the order of operations of FTS5, for equal floating point results
        for weight, count in zip(weights, counts, strict=True):
            total += weight * ((count * (K1 + 1.0)) / (count + K1 * (1 - B + B * length / average)))
        return -1.0 * total
