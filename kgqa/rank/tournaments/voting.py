"""A chooser that asks an inner chooser several times, with the candidates in different orders; the majority decides.

A language model favours some positions in a prompt, for example the first candidate. With several orders, each
candidate is in a favoured position about equally often.
"""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import NEITHER, Acceptance, AnsweringPick, Chooser, EntityGroup


class VotingChooser:
    """A chooser that lets an inner chooser decide `votes` times; all votes of a round are sent in one batch.

    Pairs: the majority of usable replies; `NEITHER` needs more than half of all votes. The order is reversed from vote
    to vote; the first order is random for each pair, because with a single vote a fixed order would favour the
    candidates that the prefilter ranked higher.

    Chunks and grouped entities: candidates get points by Borda count; the first of k picks gets k points, the last pick
    one point. A chunk is shown in its order, in reverse order, and with its halves exchanged. The number of winners is
    the median length of the usable replies. Entities answer the question if most of the usable replies say so.

    Evidence: "yes" or "no" needs more than half of all votes. Evidence is shown in the same three orders as a chunk.

    With a single vote, chunks and evidence keep their order. Scores are passed on without a vote.

    Args:
        chooser: The inner chooser.
        votes: The number of votes, 1 or 3.
    """

    def __init__(self, chooser: Chooser, votes: int = 3) -> None:
        self.name = chooser.name if votes == 1 else f"{chooser.name}, majority of {votes}"
        self.votes = votes
        self._chooser = chooser

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        swaps = [[_starts_swapped(question, *pair) ^ (vote % 2 == 1) for vote in range(self.votes)] for pair in pairs]
        ordered = [
            (second, first) if swapped else (first, second)
            for (first, second), votes in zip(pairs, swaps)
            for swapped in votes
        ]
        replies = iter(self._chooser.prefer(question, ordered))
        return [_majority([(next(replies), swapped) for swapped in votes]) for votes in swaps]

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        orders = [_orders(len(chunk), self.votes) for chunk in chunks]
        reordered = [[chunk[i] for i in order] for chunk, several in zip(chunks, orders) for order in several]
        return _counted(self._chooser.pick(question, reordered, k), orders, k)

    def pick_grouped(self, question: str, chunks: Sequence[Sequence[EntityGroup]], k: int) -> list[list[int] | None]:
        reordered = [[_reordered(chunk, vote) for vote in range(self.votes)] for chunk in chunks]
        flat = [groups for chunk in reordered for groups, _ in chunk]
        orders = [[order for _, order in chunk] for chunk in reordered]
        return _counted(self._chooser.pick_grouped(question, flat, k), orders, k)

    def score(self, question: str, candidates: Sequence[Candidate], *, batch_size: int | None = None) -> np.ndarray:
        return self._chooser.score(question, candidates, batch_size=batch_size)

    def accept(self, question: str, batches: Sequence[Sequence[Candidate]]) -> list[Acceptance]:
        orders = [_orders(len(batch), self.votes) for batch in batches]
        reordered = [[batch[i] for i in order] for batch, several in zip(batches, orders) for order in several]
        replies = iter(self._chooser.accept(question, reordered))
        decided: list[Acceptance] = []
        for votes in orders:
            ((verdict, count),) = Counter(next(replies) for _ in votes).most_common(1)
            decided.append(verdict if count > self.votes / 2 else "unparsed")
        return decided


def _majority(votes: Sequence[tuple[int, bool]]) -> int:
    """Return the preference of most votes; each vote is a reply and whether its pair was swapped."""
    if sum(reply == NEITHER for reply, _ in votes) > len(votes) / 2:
        return NEITHER
    total = sum(int(reply) * (-1 if swapped else 1) for reply, swapped in votes if reply in (1, -1))
    return (total > 0) - (total < 0)


def _starts_swapped(question: str, first: Candidate, second: Candidate) -> bool:
    text = f"{question}\0{first!r}\0{second!r}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2 == 1


def _orders(size: int, votes: int) -> list[list[int]]:
    """Return one list of indices per vote: in order, in reverse order, and with the halves exchanged."""
    forward = list(range(size))
    middle = size // 2
    return [forward, forward[::-1], forward[middle:] + forward[:middle]][:votes]


def _reordered(groups: Sequence[EntityGroup], vote: int) -> tuple[list[EntityGroup], list[int]]:
    """Return groups and entities in the order of a vote, and the original index of each entity."""
    starts = [0, *accumulate(len(group.entities) for group in groups)]
    reordered, order = [], []
    for number in _orders(len(groups), 3)[vote]:
        inner = _orders(len(groups[number].entities), 3)[vote]
        reordered.append(EntityGroup(groups[number].prefix, tuple(groups[number].entities[i] for i in inner)))
        order += [starts[number] + i for i in inner]
    return reordered, order


def _counted(replies: Sequence[Sequence[int] | None], orders: list[list[list[int]]], k: int) -> list[list[int] | None]:
    """Return one list of indices per chunk, by a Borda count of the replies to all orders of the chunk."""
    rest = iter(replies)
    result: list[list[int] | None] = []
    for several in orders:
        usable = [(order, pick) for order, pick in zip(several, rest) if pick is not None]
        if not usable:
            result.append(None)
            continue
        points: Counter[int] = Counter()
        for order, pick in usable:
            points.update({order[i]: max(k, len(pick)) - rank for rank, i in enumerate(pick)})
        length = int(statistics.median_high([len(pick) for _, pick in usable]))
        best = sorted(points, key=lambda index: (-points[index], index))[:length]
        answering = sum(isinstance(pick, AnsweringPick) for _, pick in usable) > len(usable) / 2
        result.append(AnsweringPick(best) if answering else best)
    return result
