"""Tournaments: candidates are compared in small groups rather than all at once (thesis, section 3.3).

Pure functions over a `Chooser`; every round is one batch of independent decisions. `TOURNAMENTS` has them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import Chooser, usable_indices
from kgqa.rank.tournaments.pairwise import Note, knockout, pairwise, unnoted

KEEP_SHARE = 0.5
SCORED_AT_ONCE = 5


def chunked(
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    chunk_size: int = 10,
    note: Note = unnoted,
) -> list[Candidate]:
    """Chunked tournament (section 3.3.1): each round keeps the better half of every chunk and regroups the
    survivors, until they fit one chunk, from which the top `k` are chosen.

    Args:
        candidates: in prefilter order, which breaks ties and stands in for answers that cannot be used.
        chunk_size: candidates compared at once; where half of them would be fewer than `k`, as many more as it takes.
        note: called with `kind="match"` and what was decided, once a chunk.

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
            chosen[:half] for chosen, half in zip(_round(question, chunks, chooser, max(halves), note), halves)
        ]
        # in the order of their place within their chunk: the winners of all chunks first
        pool = [chunk[place] for place in range(max(halves)) for chunk in survivors if place < len(chunk)]
    return _round(question, [pool], chooser, k, note)[0] if pool else []


def single(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, note: Note = unnoted
) -> list[Candidate]:
    """No tournament: one decision over the whole pool. Arguments, result and errors as in `pairwise`."""
    _check(k)
    return _round(question, [list(candidates)], chooser, k, note)[0] if candidates else []


def pointwise(
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    batch_size: int = SCORED_AT_ONCE,
    note: Note = unnoted,
) -> list[Candidate]:
    """No comparison: each candidate is given a score, `batch_size` of them at once, and the highest are taken.

    Equal scores keep the prefilter order; a candidate without a usable score keeps its place. `note` is called once
    for each batch of scores. Otherwise as in `pairwise`.

    Raises:
        ValueError: `batch_size` or `k` below 1.
    """
    _check(min(k, batch_size))
    pool = list(candidates)
    if not pool:
        return []
    given = np.asarray(chooser.score(question, pool, batch_size=batch_size), dtype=np.float64).ravel()[: len(pool)]
    scores = np.full(len(pool), np.nan)
    scores[: len(given)] = given
    usable = np.flatnonzero(np.isfinite(scores))
    order = np.arange(len(pool))
    order[usable] = usable[np.argsort(-scores[usable], kind="stable")]
    chosen = [int(i) for i in order[:k]]
    for start in range(0, len(pool), batch_size):
        batch = range(start, min(start + batch_size, len(pool)))
        note(
            "match",
            candidates=[pool[i].words for i in batch],
            picked=[pool[i].words for i in chosen if i in batch],
            scores=[float(scores[i]) if np.isfinite(scores[i]) else None for i in batch],
        )
    return [pool[i] for i in chosen]


TOURNAMENTS: Mapping[str, Callable[..., list[Candidate]]] = MappingProxyType(
    {"chunked": chunked, "pairwise": pairwise, "knockout": knockout, "pointwise": pointwise, "single": single}
)
"""By name. Each is called `(question, candidates, chooser, *, k, note=...)`."""


def _check(k: int) -> None:
    if k < 1:
        raise ValueError("a tournament needs one winner at least")


def _dealt(pool: Sequence[Any], size: int) -> list[list[Any]]:
    """Deal the pool out like cards, so that the strongest by prefilter do not meet in the first round."""
    count = -(-len(pool) // size)
    return [list(pool[start::count]) for start in range(count)]


def _round(question: str, chunks: list[list[Candidate]], chooser: Chooser, k: int, note: Note) -> list[list[Candidate]]:
    picked = chooser.pick(question, chunks, k)
    result = []
    for chunk, indices in zip_longest(chunks, picked[: len(chunks)], fillvalue=()):
        # a reply without use leaves the prefilter order; a shorter list than was asked for stands
        chosen = usable_indices(indices, len(chunk), k) or list(range(min(k, len(chunk))))
        result.append([chunk[i] for i in chosen])
        note("match", candidates=[c.words for c in chunk], picked=[chunk[i].words for i in chosen])
    return result
