"""Listwise tournaments: a chooser picks the best of several candidates at once (thesis, section 3.3.1).

Each round sends all its decisions to the chooser in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import Chooser, usable_indices
from kgqa.rank.tournaments.pairwise import Recorder, record_nothing
from kgqa.trace import MatchPlayed

KEEP_SHARE = 0.5


def chunked(
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    chunk_size: int = 10,
    record: Recorder = record_nothing,
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
        chunks = _dealt(pool, size)
        halves = [math.ceil(len(chunk) * KEEP_SHARE) for chunk in chunks]
        survivors = [
            chosen[:half] for chosen, half in zip(_round(question, chunks, chooser, max(halves), record), halves)
        ]
        # the first places of all chunks come first, then all second places, and so on
        pool = [chunk[rank] for rank in range(max(halves)) for chunk in survivors if rank < len(chunk)]
    return _round(question, [pool], chooser, k, record)[0] if pool else []


def single(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, record: Recorder = record_nothing
) -> list[Candidate]:
    """Let the chooser pick the best `k` of the whole pool in one decision; arguments and result as in `pairwise`."""
    return _round(question, [list(candidates)], chooser, k, record)[0] if candidates else []


def _dealt(pool: Sequence[Any], size: int) -> list[list[Any]]:
    """Deal the pool into chunks like cards; this puts the best candidates of the prefilter into different chunks."""
    count = -(-len(pool) // size)
    return [list(pool[start::count]) for start in range(count)]


def _round(
    question: str, chunks: list[list[Candidate]], chooser: Chooser, k: int, record: Recorder
) -> list[list[Candidate]]:
    result = []
    for chunk, indices in zip(chunks, chooser.pick(question, chunks, k), strict=True):
        # after an unusable reply the prefilter order decides; a pick of fewer than k candidates is taken as it is
        usable = usable_indices(indices, len(chunk), k)
        chosen = list(range(min(k, len(chunk)))) if usable is None else usable
        result.append([chunk[i] for i in chosen])
        words = tuple(c.words for c in chunk)
        record(MatchPlayed(candidates=words, picked=tuple(words[i] for i in chosen)))
    return result
