"""Pools for training: the paths of a question's topic; the ranker learns to find the gold path among them.

If the topic is in a graph, the pool contains its paths of up to two edges in that graph, except paths that end at
mediators. For other topics, the pool is simulated with an ontology: it contains the paths that an entity of the topic's
type could have.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kgqa.errors import StoreTimeout
from kgqa.model import Step
from kgqa.rank.trained_ranker import path_table
from kgqa.training.fitting import Example
from kgqa.training.questions import TrainingQuestion
from kgqa.training.sources import MAX_EDGES, Source, Steps
from kgqa.training.templates import templates

_Pool = tuple[Mapping[Steps, int], np.ndarray]
"""Paths with the numbers of their rows, and the rows, as in `Example`."""


class PoolBuilder:
    """Builds training examples and numbers the steps of their paths.

    Attributes:
        used: Number of examples with a pool from each source.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        self._numbers: dict[Step, int] = {}
        self._pools: dict[tuple[Source, Any], _Pool] = {}  # by source and start
        self.used: Counter[Source] = Counter()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all examples built so far; a step's number is its index."""
        return tuple(self._numbers)

    def example(self, question: TrainingQuestion) -> Example | None:
        """Build a training example with the first source that has the gold path; return None if none has it."""
        for source in self._sources:
            if example := self._example(source, question):
                self.used[source] += 1
                return example
        return None

    def _example(self, source: Any, question: TrainingQuestion) -> Example | None:
        start = source.start(question.path)
        if start is None:
            return None
        try:
            if (source, start) not in self._pools:
                self._pools[source, start] = self._pool(())  # a topic that takes too long is not explored again
                self._pools[source, start] = self._pool(source.paths(start))
            rows, table = self._pools[source, start]
            gold = source.folded(question.path.steps, rows)
            if gold not in rows and (not source.complete or gold[:MAX_EDGES] in rows):
                starts = [gold[:length] for length in range(MAX_EDGES, len(gold))]
                beside = [(*steps, step) for steps in starts for step in source.onward(start, steps)]
                rows, table = self._pool([*rows, *beside, *([] if source.complete else [gold])])
        except StoreTimeout:
            return None
        return Example(question.asked, table, rows[gold]) if gold in rows and len(rows) > 1 else None

    def templates(self, source: Source, count: int, seed: int) -> Iterator[Example]:
        """Yield about `count` examples of template questions over a source."""
        for question, paths in templates(source, count, random.Random(seed)):
            yield Example(question, self._pool(paths)[1], 0)

    def _pool(self, paths: Iterable[Steps]) -> _Pool:
        rows = {path: row for row, path in enumerate(dict.fromkeys(paths))}
        return rows, path_table(list(rows), self._numbers, width=MAX_EDGES)
