"""BM25 with the formula of SQLite's FTS5, so that indexes in SQLite and on a server rank names in the same order.

Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009). The constants are those of FTS5.
Words that occur in more than half of all names get the smallest weight, also that of FTS5.
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
    """The BM25 scores of one index of names.

    Attributes:
        names: the number of names.
        tokens: the number of words in all names, repeated words included.
    """

    names: int
    tokens: int

    def weight(self, frequency: int) -> float:
        """Return the inverse document frequency of a word that occurs in `frequency` names."""
        weight = math.log((self.names - frequency + 0.5) / (frequency + 0.5))
        return weight if weight > 0.0 else MIN_WEIGHT

    def score(self, weights: Sequence[float], counts: Sequence[int], length: int) -> float:
        """Return the score of a name; the lowest score is best.

        Args:
            weights: the weight of each query word.
            counts: how often each query word occurs in the name.
            length: the number of words in the name.
        """
        average = self.tokens / self.names
        total = 0.0
        # operations in the same order as in FTS5, so that floating-point results are equal
        for weight, count in zip(weights, counts, strict=True):
            total += weight * ((count * (K1 + 1.0)) / (count + K1 * (1 - B + B * length / average)))
        return -1.0 * total
