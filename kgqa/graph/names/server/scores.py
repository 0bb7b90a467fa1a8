"""Okapi BM25 exactly as SQLite's FTS5 computes it, so that two indexes of the same names put them in the same order.

Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), with FTS5's constants and its
floor for the weight of words that stand in more than half of all names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

K1 = 1.2
B = 0.75
LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, slots=True)
class NameScores:
    """Scores names of an index that has so many `names` with so many `tokens` (words, repeated ones too)."""

    names: int
    tokens: int

    def weight(self, holding: int) -> float:
        """How telling a word is that stands in `holding` names."""
        weight = math.log((self.names - holding + 0.5) / (holding + 0.5))
        return weight if weight > 0.0 else LEAST_WEIGHT

    def score(self, weights: Sequence[float], counts: Sequence[int], length: int) -> float:
        """The score of a name of `length` words, in which words of these weights stand so often; lowest is best."""
        average = self.tokens / self.names
        total = 0.0
        # the order of operations is FTS5's: floating point numbers depend on it
        for weight, count in zip(weights, counts, strict=True):
            total += weight * ((count * (K1 + 1.0)) / (count + K1 * (1 - B + B * length / average)))
        return -1.0 * total
