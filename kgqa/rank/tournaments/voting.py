"""Asks a chooser the same thing more than once, in other orders, and takes the majority.

A model favours places in a prompt as well as candidates. Asked in several orders, it favours each candidate about as
often by its place, and what is left of that is noise.
"""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import Acceptance, Chooser, EntityGroup, usable_indices

VOTES = (1, 3)


class VotingChooser:
    """A chooser that lets another one decide `votes` times; all votes of a round are one batch.

    Pairs: the majority of usable replies, each vote in the other order than the one before; the first order is
    drawn for each pair, so that with a single vote favouring one place does not favour the earlier candidates.
    Chunks, also grouped: Borda counts (a first place gives k points) over the chunk as given, backwards, and from
    its middle on, as many as the median of the usable replies names. Evidence: more than half of all votes, in the
    same orders. With a single vote chunks and evidence stay in their order. Scores are passed through.

    Raises:
        ValueError: `votes` is neither 1 nor 3.
    """

    def __init__(self, chooser: Chooser, votes: int = 3) -> None:
        if votes not in VOTES:
            raise ValueError(f"votes are {' or '.join(map(str, VOTES))}, not {votes}")
        self.name = chooser.name if votes == 1 else f"{chooser.name}, majority of {votes}"
        self.votes = votes
        self._chooser = chooser

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        turned = [[_drawn(question, *pair) ^ (vote % 2 == 1) for vote in range(self.votes)] for pair in pairs]
        asked = [
            (second, first) if turn else (first, second)
            for (first, second), turns in zip(pairs, turned)
            for turn in turns
        ]
        replies = list(self._chooser.prefer(question, asked))
        votes = iter(replies[: len(asked)] + [0] * (len(asked) - len(replies)))
        sums = [sum(_usable(next(votes)) * (-1 if turn else 1) for turn in turns) for turns in turned]
        return [(total > 0) - (total < 0) for total in sums]

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int]]:
        orders = [_orders(len(chunk), self.votes) for chunk in chunks]
        asked = [[chunk[i] for i in order] for chunk, order in _each(chunks, orders)]
        return _counted(self._chooser.pick(question, asked, k), orders, k)

    def pick_grouped(self, question: str, chunks: Sequence[Sequence[EntityGroup]], k: int) -> list[list[int]]:
        turned = [[_turned(chunk, vote) for vote in range(self.votes)] for chunk in chunks]
        asked = [groups for chunk in turned for groups, _ in chunk]
        orders = [[order for _, order in chunk] for chunk in turned]
        return _counted(self._chooser.pick_grouped(question, asked, k), orders, k)

    def score(self, question: str, candidates: Sequence[Candidate], *, batch_size: int | None = None) -> np.ndarray:
        return self._chooser.score(question, candidates, batch_size=batch_size)

    def accept(self, question: str, batches: Sequence[Sequence[Candidate]]) -> list[Acceptance]:
        orders = [_orders(len(batch), self.votes) for batch in batches]
        asked = [[batch[i] for i in order] for batch, order in _each(batches, orders)]
        replies = list(self._chooser.accept(question, asked))
        decided: list[Acceptance] = []
        for start in range(0, len(asked), self.votes):
            counts = Counter(replies[start : start + self.votes])
            clear: list[Acceptance] = [verdict for verdict in ("yes", "no") if counts[verdict] > self.votes / 2]
            decided.append(clear[0] if clear else "unparsed")
        return decided


def _drawn(question: str, first: Candidate, second: Candidate) -> bool:
    text = f"{question}\0{first!r}\0{second!r}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2 == 1


def _usable(reply: int) -> int:
    return int(reply) if reply in (1, -1) else 0


def _orders(size: int, votes: int) -> list[list[int]]:
    """As given, backwards, and from the middle on."""
    as_given = list(range(size))
    middle = size // 2
    return [as_given, as_given[::-1], as_given[middle:] + as_given[:middle]][:votes]


def _turned(groups: Sequence[EntityGroup], vote: int) -> tuple[list[EntityGroup], list[int]]:
    """Groups and their entities in one of the three orders, and the old index of each entity in the new order."""
    starts = [0, *accumulate(len(group.entities) for group in groups)]
    turned, order = [], []
    for place in _orders(len(groups), 3)[vote]:
        inner = _orders(len(groups[place].entities), 3)[vote]
        turned.append(EntityGroup(groups[place].prefix, tuple(groups[place].entities[i] for i in inner)))
        order += [starts[place] + i for i in inner]
    return turned, order


def _each(
    chunks: Sequence[Sequence[Candidate]], orders: list[list[list[int]]]
) -> Iterator[tuple[Sequence[Candidate], list[int]]]:
    return ((chunk, order) for chunk, several in zip(chunks, orders) for order in several)


def _counted(replies: Sequence[Sequence[int]], orders: list[list[list[int]]], k: int) -> list[list[int]]:
    """One list of indices for each chunk out of the replies to all its orders."""
    rest = iter(replies)
    result = []
    for several in orders:
        lists = [[order[i] for i in usable_indices(next(rest, ()), len(order), k)] for order in several]
        usable = [indices for indices in lists if indices]
        points: Counter[int] = Counter()
        for indices in usable:
            points.update({index: k - place for place, index in enumerate(indices)})
        length = int(statistics.median_high([len(indices) for indices in usable])) if usable else 0
        result.append(sorted(points, key=lambda index: (-points[index], index))[:length])
    return result
