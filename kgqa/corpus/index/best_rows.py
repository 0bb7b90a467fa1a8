"""The best rows of an array of scores."""

from __future__ import annotations

import numpy as np


def best_rows(scores: np.ndarray, k: int, *, above: float | None = None) -> list[tuple[int, float]]:
    """Return the rows with the k highest scores, best first, equal scores in the order of the rows.

    Args:
        scores: Scores of shape (n,).
        k: How many rows.
        above: Only rows with a higher score count.
    """
    if above is not None:
        rows = np.flatnonzero(scores > above)
        return [(int(rows[row]), score) for row, score in best_rows(scores[rows], k)]
    k = min(k, len(scores))
    if k <= 0:
        return []
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        rows = np.flatnonzero(scores >= least)
    else:
        rows = np.arange(len(scores))
    order = rows[np.argsort(-scores[rows], kind="stable")][:k]
    return [(int(row), float(scores[row])) for row in order]
