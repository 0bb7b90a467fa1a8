"""A chooser that knows the right order of candidates and errs with a known probability, to simulate tournaments."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import Acceptance, EntityGroup


class NoisyOracle:
    """Prefers the better candidate with probability `p`, independently in each call.

    Like a language model, the oracle may answer the same question differently in different calls. Its answers depend on
    the seed and on the order of calls. Not thread-safe.

    - Pairs: the better candidate is preferred with probability `p`.
    - Chunks: candidates are drawn one by one (Plackett-Luce). Each candidate is `p / (1 - p)` times as likely as the
      next worse one, so a chunk of two behaves like a pair.
    - Scores: Gumbel noise is added, so that two neighbours in `truth` keep their order with probability `p`.
    - Evidence: it is sufficient if it contains the best candidate. The verdict is right with probability `p`.

    Args:
        truth: the right order, best first, of candidates, or of `(prefix, entity)` for grouped entities. Candidates
            that are not in `truth` are worse than all in `truth`, and equal to each other.
        p: probability of a right preference, 0.5 to 1.
        others: with "order", `p` applies to every pair; with "coin", `p` applies to pairs with the best candidate, and
            all remaining candidates are equal.
        bias: probability that the first candidate of a pair is preferred regardless of `truth`.
        silent: probability that a reply is unusable.

    Attributes:
        calls: number of pairs, chunks, batches of evidence, and batches of scored candidates.
        rounds: number of batches of calls.

    Raises:
        ValueError: a probability is out of range.
    """

    def __init__(
        self,
        truth: Sequence[Hashable],
        *,
        p: float = 1.0,
        seed: int = 0,
        others: Literal["order", "coin"] = "order",
        bias: float = 0.0,
        silent: float = 0.0,
    ) -> None:
        if not 0.5 <= p <= 1 or not 0 <= bias <= 1 or not 0 <= silent <= 1:
            raise ValueError("`p` must be from 0.5 to 1, `bias` and `silent` from 0 to 1")
        if others not in ("order", "coin"):
            raise ValueError(f'`others` must be "order" or "coin", not {others!r}')
        self.name = f"an oracle that is right with the chance {p:g}"
        self.calls = 0
        self.rounds = 0
        self._p = p
        self._bias = bias
        self._silent = silent
        self._random = random.Random(seed)
        place = {item: i for i, item in enumerate(truth)}
        self._last = 1 if others == "coin" else len(place)
        self._place = {item: min(i, self._last) for item, i in place.items()}
        self._best = next(iter(place), None)

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        self._count(len(pairs))
        return [0 if self._chance(self._silent) else self._preferred(*pair) for pair in pairs]

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        self._count(len(chunks))
        return [self._picked(chunk, k) for chunk in chunks]

    def pick_grouped(self, question: str, chunks: Sequence[Sequence[EntityGroup]], k: int) -> list[list[int] | None]:
        self._count(len(chunks))
        return [self._picked([(g.prefix, entity) for g in chunk for entity in g.entities], k) for chunk in chunks]

    def score(self, question: str, candidates: Sequence[Candidate], *, batch_size: int | None = None) -> np.ndarray:
        if candidates:
            self._count(-(-len(candidates) // batch_size) if batch_size else 1)
        return np.array([math.nan if self._chance(self._silent) else self._scored(each) for each in candidates])

    def accept(self, question: str, batches: Sequence[Sequence[Candidate]]) -> list[Acceptance]:
        self._count(len(batches))
        return [
            "unparsed" if self._chance(self._silent) else
            "yes" if (self._best in batch) == self._chance(self._p) else "no"
            for batch in batches
        ]  # fmt: skip

    def _count(self, calls: int) -> None:
        self.calls += calls
        self.rounds += calls > 0

    def _chance(self, chance: float) -> bool:
        return self._random.random() < chance

    def _rank(self, item: Hashable) -> int:
        """Return the rank of a candidate, 0 for the best; equal candidates have equal ranks."""
        return self._place.get(item, self._last)

    def _preferred(self, first: Candidate, second: Candidate) -> int:
        if self._chance(self._bias):
            return 1
        gap = self._rank(second) - self._rank(first)
        first_wins = self._chance(self._p if gap > 0 else 1 - self._p if gap < 0 else 0.5)
        return 1 if first_wins else -1

    def _picked(self, chunk: Sequence[Hashable], k: int) -> list[int] | None:
        if self._chance(self._silent):
            return None
        left = list(range(len(chunk)))
        picked: list[int] = []
        while left and len(picked) < k:
            ranks = sorted({self._rank(chunk[i]) for i in left})
            # each rank is less likely than the next better one, always by the same factor
            weight = {rank: (1 / self._p - 1) ** place for place, rank in enumerate(ranks)}
            drawn = self._random.choices(left, [weight[self._rank(chunk[i])] for i in left])[0]
            left.remove(drawn)
            picked.append(drawn)
        return picked

    def _scored(self, item: Hashable) -> float:
        if self._p == 1:
            return -float(self._rank(item))
        gumbel = -math.log(-math.log(self._random.uniform(1e-12, 1 - 1e-12)))
        return gumbel - self._rank(item) * math.log(self._p / (1 - self._p))
