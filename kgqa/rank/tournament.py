"""Tournaments: candidates are compared in small groups, never all at once (thesis, section 3.3).

Pure functions over a `Chooser`; every round is one batch of independent decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from kgqa.model import Candidate
from kgqa.rank.chooser import Chooser

KEEP_SHARE = 0.5


def chunked(
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    chunk_size: int = 10,
    note: Callable[..., None] = lambda kind, **detail: None,
) -> list[Candidate]:
    """Chunked tournament (section 3.3.1): each round keeps the better half of every chunk and regroups the
    survivors, until they fit one chunk, from which the top `k` are chosen.

    Args:
        candidates: in prefilter order, which breaks ties and stands in for answers that cannot be used.
        chunk_size: candidates compared at once; at least twice `k` are, whatever this says.
        note: called with `kind="match"` and what was decided, once a chunk.

    Returns:
        At most `k` candidates, best first, all of them from `candidates`.

    Raises:
        ValueError: `chunk_size` below 2, or `k` below 1.
    """
    if chunk_size < 2 or k < 1:
        raise ValueError("a chunk needs two candidates at least, and a tournament one winner")
    pool = list(candidates)
    size = max(chunk_size, 2 * k)  # so that halving never leaves fewer than k
    while len(pool) > size:
        chunks = _dealt(pool, size)
        halves = [math.ceil(len(chunk) * KEEP_SHARE) for chunk in chunks]
        survivors = [
            chosen[:half] for chosen, half in zip(_round(question, chunks, chooser, max(halves), note), halves)
        ]
        # in the order of their place within their chunk: the winners of all chunks first
        pool = [chunk[place] for place in range(max(halves)) for chunk in survivors if place < len(chunk)]
    return _round(question, [pool], chooser, k, note)[0] if pool else []


def _dealt(pool: Sequence[Any], size: int) -> list[list[Any]]:
    """Deal the pool out like cards, so that the strongest by prefilter do not meet in the first round."""
    count = -(-len(pool) // size)
    return [list(pool[start::count]) for start in range(count)]


def _round(
    question: str, chunks: list[list[Candidate]], chooser: Chooser, k: int, note: Callable[..., None]
) -> list[list[Candidate]]:
    picked = chooser.pick(question, chunks, k)
    result = []
    for chunk, indices in zip_longest(chunks, picked[: len(chunks)], fillvalue=()):
        valid = [i for i in dict.fromkeys(indices) if 0 <= i < len(chunk)][:k]
        # what a chooser leaves out without a word keeps its prefilter order; a shorter list it gave stands
        chosen = valid or list(range(min(k, len(chunk))))
        result.append([chunk[i] for i in chosen])
        note("match", candidates=[c.words for c in chunk], picked=[chunk[i].words for i in chosen])
    return result
