"""Tournaments of chunks: a chooser picks the best of several candidates (thesis, section 3.3.1), or scores them.

Each round sends all its decisions to the chooser in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import Chooser
from kgqa.rank.tournaments.pairwise import Recorder
from kgqa.trace import MatchPlayed

KEEP_SHARE = 0.5


def chunked(
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    chunk_size: int = 10,
    record: Recorder = lambda event: None,
) -> list[Candidate]:
    """Play the chunked tournament (section 3.3.1): each round keeps the better half of every chunk.

    The candidates kept are divided into new chunks until they all fit into one chunk; its best `k` candidates win.

    Args:
        question: The question's text.
        candidates: The pool in prefilter order. This order decides after an unusable reply.
        chooser: Picks the best of each chunk.
        k: How many winners to return.
        chunk_size: Number of candidates compared at once; at least 2 k - 2 is used, to keep at least `k` candidates.
        record: Called with a match per chunk.

    Returns:
        At most `k` of the candidates, best first; none if the chooser picks none.
    """
    pool = list(candidates)
    size = max(chunk_size, 2 * k - 2)  # halving a larger pool then never leaves fewer than k
    while len(pool) > size:
        count = -(-len(pool) // size)
        # dealt like cards, which puts the best candidates of the prefilter into different chunks
        chunks = [pool[start::count] for start in range(count)]
        halves = [math.ceil(len(chunk) * KEEP_SHARE) for chunk in chunks]
        survivors = [
            chosen[:half] for chosen, half in zip(_round(question, chunks, chooser, max(halves), record), halves)
        ]
        # the first places of all chunks come first, then all second places, and so on
        pool = [chunk[rank] for rank in range(max(halves)) for chunk in survivors if rank < len(chunk)]
    return _round(question, [pool], chooser, k, record)[0] if pool else []


def single(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, record: Recorder = lambda event: None
) -> list[Candidate]:
    """Let the chooser pick the best `k` of the whole pool in one decision; arguments and result as in `pairwise`."""
    return _round(question, [list(candidates)], chooser, k, record)[0] if candidates else []


def pointwise(
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    batch_size: int = 5,
    record: Recorder = lambda event: None,
) -> list[Candidate]:
    """Score the candidates, `batch_size` at a time, and return the `k` with the highest scores.

    Candidates with equal scores keep the prefilter order; a candidate without a usable score keeps its position.
    `record` is called once per batch of scores. The other arguments and the result are those of `chunked`.
    """
    pool = list(candidates)
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


def _round(
    question: str, chunks: list[list[Candidate]], chooser: Chooser, k: int, record: Recorder
) -> list[list[Candidate]]:
    result = []
    for chunk, indices in zip(chunks, chooser.pick(question, chunks, k), strict=True):
        # after an unusable reply the prefilter order decides; a pick of fewer than k candidates is taken as it is
        chosen = list(range(min(k, len(chunk)))) if indices is None else indices
        result.append([chunk[i] for i in chosen])
        words = tuple(c.words for c in chunk)
        record(MatchPlayed(candidates=words, picked=tuple(words[i] for i in chosen)))
    return result
