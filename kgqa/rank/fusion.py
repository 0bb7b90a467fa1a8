"""Reciprocal rank fusion (Cormack, Clarke & Buettcher 2009; thesis, section 2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

RRF_K = 60


def average_ranks(scores: np.ndarray) -> np.ndarray:
    """Rank scores from 1 for the highest; equal scores share the average of their ranks.

    BM25 gives score zero to most candidates of a pool; without averages, their positions would decide their ranks.
    """
    order = np.argsort(-scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    _, group = np.unique(scores, return_inverse=True)
    return (np.bincount(group, weights=ranks) / np.bincount(group))[group] if len(scores) else ranks


def reciprocal_rank_fusion(
    rankings: Sequence[np.ndarray], *, weights: Sequence[float] | None = None, k: int = RRF_K
) -> np.ndarray:
    """Fuse several arrays of scores, each of shape (n,), into one: the sum of weight / (k + rank) over all arrays."""
    fused = np.zeros(len(rankings[0]) if rankings else 0)
    for weight, scores in zip(weights or repeat(1.0), rankings):
        fused += weight / (k + average_ranks(scores))
    return fused
