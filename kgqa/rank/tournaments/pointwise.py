"""Pointwise ranking, an alternative to tournaments: each candidate gets a score, and candidates are not compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import Chooser
from kgqa.rank.tournaments.pairwise import Recorder, record_nothing
from kgqa.trace import MatchPlayed

DEFAULT_BATCH_SIZE = 5


def pointwise(
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    batch_size: int = DEFAULT_BATCH_SIZE,
    record: Recorder = record_nothing,
) -> list[Candidate]:
    """Score the candidates, `batch_size` at a time, and return the `k` with the highest scores.

    Candidates with equal scores keep the prefilter order; a candidate without a usable score keeps its position.
    `record` is called once per batch of scores. The other arguments and the result are those of `pairwise`.
    """
    pool = list(candidates)
    if not pool:
        return []
    scores = np.asarray(chooser.score(question, pool, batch_size=batch_size), dtype=np.float64)
    usable = np.flatnonzero(np.isfinite(scores))
    order = np.arange(len(pool))
    order[usable] = usable[np.argsort(-scores[usable], kind="stable")]
    chosen = [int(i) for i in order[:k]]
    for start in range(0, len(pool), batch_size):
        batch = range(start, min(start + batch_size, len(pool)))
        given_scores = tuple(float(scores[i]) if np.isfinite(scores[i]) else None for i in batch)
        picked = tuple(pool[i].words for i in chosen if i in batch)
        record(MatchPlayed(candidates=tuple(pool[i].words for i in batch), picked=picked, scores=given_scores))
    return [pool[i] for i in chosen]
