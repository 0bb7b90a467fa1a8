"""Tournaments: candidates are compared in small groups rather than all at once (thesis, section 3.3).

Pure functions over a `Chooser`; every round is one batch of independent decisions. `TOURNAMENTS` has them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import Chooser, usable_indices
from kgqa.rank.tournaments.pairwise import Recorder, record_nothing

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
    """Chunked tournament (section 3.3.1): each round keeps the better half of every chunk and regroups the
    survivors, until they fit one chunk, from which the top `k` are chosen.

    Args:
        candidates: in prefilter order, which breaks ties and stands in for answers that cannot be used.
        chunk_size: candidates compared at once; where half of them would be fewer than `k`, as many more as it takes.
        record: called with `kind="match"` and what was decided, once a chunk.

    Returns:
        At most `k` candidates, best first, all of them from `candidates`.

    Raises:
        ValueError: `chunk_size` below 2, or `k` below 1.
    """
    if chunk_size < 2 or k < 1:
        raise ValueError("a chunk needs two candidates at least, and a tournament one winner")
    pool = list(candidates)
    size = max(chunk_size, 2 * k - 2)  # so that halving more than this never leaves fewer than k
    while len(pool) > size:
        chunks = _dealt(pool, size)
        halves = [math.ceil(len(chunk) * KEEP_SHARE) for chunk in chunks]
        survivors = [
            chosen[:half] for chosen, half in zip(_round(question, chunks, chooser, max(halves), record), halves)
        ]
        # in the order of their place within their chunk: the winners of all chunks first
        pool = [chunk[place] for place in range(max(halves)) for chunk in survivors if place < len(chunk)]
    return _round(question, [pool], chooser, k, record)[0] if pool else []


def single(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, record: Recorder = record_nothing
) -> list[Candidate]:
    """No tournament: one decision over the whole pool. Arguments, result and errors as in `pairwise`."""
    _check(k)
    return _round(question, [list(candidates)], chooser, k, record)[0] if candidates else []


def _check(k: int) -> None:
    if k < 1:
        raise ValueError("a tournament needs one winner at least")


def _dealt(pool: Sequence[Any], size: int) -> list[list[Any]]:
    """Deal the pool out like cards, so that the strongest by prefilter do not meet in the first round."""
    count = -(-len(pool) // size)
    return [list(pool[start::count]) for start in range(count)]


def _round(
    question: str, chunks: list[list[Candidate]], chooser: Chooser, k: int, record: Recorder
) -> list[list[Candidate]]:
    picked = chooser.pick(question, chunks, k)
    result = []
    for chunk, indices in zip_longest(chunks, picked[: len(chunks)], fillvalue=()):
        # a reply without use leaves the prefilter order; a shorter list than was asked for stands
        chosen = usable_indices(indices, len(chunk), k) or list(range(min(k, len(chunk))))
        result.append([chunk[i] for i in chosen])
        record("match", candidates=[c.words for c in chunk], picked=[chunk[i].words for i in chosen])
    return result
