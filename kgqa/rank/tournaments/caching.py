"""A chooser that caches and counts the decisions of an inner chooser within one question."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import NEITHER, Acceptance, Chooser, EntityGroup

T = TypeVar("T")


class CachingChooser:
    """A chooser that never asks its inner chooser for the same decision twice; for use by one question in one thread.

    For pairs, chunks and evidence, the order of the candidates is ignored: a reversed pair is the same decision. For
    scores and grouped entities, a different order is a different decision. A chunk of one candidate is not sent to the
    inner chooser. Unusable replies are also cached.

    Attributes:
        picked: The candidates that the inner chooser picked from chunks, in the order in which it picked them.
        calls: Number of decisions sent to the inner chooser (pairs, chunks, batches of evidence or of scored
            candidates).
    """

    def __init__(self, chooser: Chooser) -> None:
        self.name = chooser.name
        self.calls = 0
        self.picked: dict[Candidate, None] = {}
        self._chooser = chooser
        self._decisions: dict[Hashable, Any] = {}

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        def ask(missing: Sequence[tuple[Candidate, Candidate]]) -> list[dict[Candidate, int]]:
            replies = self._chooser.prefer(question, missing)
            return [
                {first: reply, second: reply if reply == NEITHER else -reply}
                for (first, second), reply in zip(missing, replies, strict=True)
            ]

        keys = [("prefer", question, frozenset(pair)) for pair in pairs]
        return [known[first] for known, (first, _) in zip(self._decide(keys, pairs, ask), pairs)]

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        def ask(missing: Sequence[Sequence[Candidate]]) -> list[list[Candidate] | None]:
            picked = self._chooser.pick(question, missing, k)
            chosen = [
                None if indices is None else [chunk[i] for i in indices]
                for chunk, indices in zip(missing, picked, strict=True)
            ]
            self.picked |= dict.fromkeys(candidate for each in chosen for candidate in each or ())
            return chosen

        keys = [None if len(chunk) < 2 else ("pick", question, k, frozenset(chunk)) for chunk in chunks]
        return [
            list(range(len(chunk))) if key is None else known and [list(chunk).index(candidate) for candidate in known]
            for key, known, chunk in zip(keys, self._decide(keys, chunks, ask), chunks)
        ]

    def pick_grouped(self, question: str, chunks: Sequence[Sequence[EntityGroup]], k: int) -> list[list[int] | None]:
        sizes = [sum(len(group.entities) for group in chunk) for chunk in chunks]
        keys = [None if size < 2 else ("grouped", question, k, tuple(chunk)) for chunk, size in zip(chunks, sizes)]
        found = self._decide(keys, chunks, lambda missing: self._chooser.pick_grouped(question, missing, k))
        return [list(range(size)) if key is None else known for key, known, size in zip(keys, found, sizes)]

    def score(self, question: str, candidates: Sequence[Candidate], *, batch_size: int | None = None) -> np.ndarray:
        if not candidates:
            return np.zeros(0)
        key = ("score", question, batch_size, tuple(candidates))
        if key not in self._decisions:
            self.calls += -(-len(candidates) // batch_size) if batch_size else 1
            self._decisions[key] = self._chooser.score(question, candidates, batch_size=batch_size)
        return np.array(self._decisions[key], dtype=np.float64)

    def accept(self, question: str, batches: Sequence[Sequence[Candidate]]) -> list[Acceptance]:
        keys = [("accept", question, frozenset(batch)) for batch in batches]
        return self._decide(keys, batches, lambda missing: self._chooser.accept(question, missing))

    def _decide(
        self, keys: Sequence[Hashable | None], items: Sequence[T], ask: Callable[[Sequence[T]], Sequence[Any]]
    ) -> list[Any]:
        """Return the decision for each key (None for the key None); ask for all missing decisions in one batch."""
        missing = {key: item for key, item in zip(keys, items) if key is not None and key not in self._decisions}
        if missing:
            self.calls += len(missing)
            self._decisions.update(zip(missing, ask(list(missing.values())), strict=True))
        return [None if key is None else self._decisions[key] for key in keys]
