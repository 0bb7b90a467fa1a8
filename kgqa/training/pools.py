"""Pools for training: the paths of a question's topic; the ranker learns to find the gold path among them.

If the topic is in a graph, the pool contains its paths of up to two edges in that graph, except paths that end at
mediators. For other topics, the pool is simulated with an ontology: it contains the paths that an entity of the topic's
type could have.

A ranker that learns from the questions of one data set learns its habits too, such as a preference for short paths.
Template questions counteract this: random paths of one to three edges, worded with the names of their relations and
types. Each is compared with paths of its start, and with paths that differ from it in one respect.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kgqa.errors import StoreTimeout
from kgqa.model import Step
from kgqa.rank.trained_ranker import path_table
from kgqa.training.fitting import Example
from kgqa.training.questions import TrainingQuestion
from kgqa.training.sources import MAX_EDGES, Source, Steps

EACH = 6
"""How many template questions are made of the paths of one start."""
OTHERS = 50
"""How many paths of the start, longer paths, and paths with another last step a template question has, at most."""
FRAMES = ("what is {}?", "what are {}?", "which is {}?", "who is {}?", "name {}", "{}?", "tell me {}")
FORWARD = ("the {0} of {1}", "{1}'s {0}", "the {0} that {1} has", "{1} {0}")
BACKWARD = ("the {2} that has {1} as {0}", "the {2} whose {0} is {1}", "the {2} with {0} {1}", "what {1} is the {0} of")
STARTS = ("", "", "it", "the {}", "this {}")
"""The topic; its name is removed from questions, and only its type may remain."""

Template = tuple[str, list[Steps]]
"""A template question, its path, and other paths of the same start."""
_Pool = tuple[Mapping[Steps, int], np.ndarray]
"""Paths with the numbers of their rows, and the rows, as in `Example`."""


class PoolBuilder:
    """Builds training examples and numbers the steps of their paths.

    All methods raise `StoreError` if a graph cannot be read.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        self._numbers: dict[Step, int] = {}
        self._pools: dict[tuple[Source, Any], _Pool] = {}  # by source and start

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all examples built so far; a step's number is its index."""
        return tuple(self._numbers)

    def example(self, question: TrainingQuestion) -> Example | None:
        """Build a training example with the first source that has the gold path; return None if none has it."""
        found = (self._example(source, question) for source in self._sources)
        return next((example for example in found if example), None)

    def _example(self, source: Source, question: TrainingQuestion) -> Example | None:
        start: Any = source.start(question.path)
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

    def lengthened(self, question: TrainingQuestion, draw: random.Random) -> Template | None:
        """Return a question about the answers of a question, worded with it; None if nothing is known of them."""
        for source in self._sources:
            start: Any = source.start(question.path)
            gold = source.folded(question.path.steps, ())
            if further := [(*gold, step) for step in (source.onward(start, gold) if start else ())]:
                path = draw.choice(further)
                text = question_of(path[-1:], source, draw, question.asked.rstrip("? "))
                return text, [path, gold, *_some(draw, list(self._pools.get((source, start), ((), ()))[0]), further)]
        return None

    def template_example(self, template: Template, *, near: bool) -> Example:
        """Build the example of a template question; with `near`, its path is compared with its `variants`, too.

        Most variants are not in a graph, so no search would find them.
        """
        question, (path, *others) = template
        return Example(question, self._pool([path, *(variants(path) if near else ()), *others])[1], 0)

    def _pool(self, paths: Iterable[Steps]) -> _Pool:
        rows = {path: row for row, path in enumerate(dict.fromkeys(paths))}
        return rows, path_table(list(rows), self._numbers, width=MAX_EDGES)


def templates(source: Source, count: int, seed: int) -> list[Template]:
    """Return at most `count` template questions over a source; a start that takes too long is left out.

    Raises:
        StoreError: A graph cannot be read.
    """
    draw = random.Random(seed)
    found: list[Template] = []
    for start in source.starts(draw, count):
        try:
            found += _templates_at(source, start, draw) if len(found) < count else ()
        except StoreTimeout:
            continue
    return found[:count]


def _templates_at(source: Source, start: Any, draw: random.Random) -> Iterator[Template]:
    """Yield template questions about random paths of a start, each with other paths of this start."""
    pool = source.paths(start)
    by_length = [[path for path in pool if len(path) == length] for length in range(1, MAX_EDGES + 1)]
    for _ in range(EACH if len(pool) > 1 else 0):
        path, siblings = draw.choice(draw.choice(by_length) or pool), []
        further = [(*path, step) for step in source.onward(start, path)]
        if further and len(path) == MAX_EDGES and draw.random() < 0.5:
            path, siblings = draw.choice(further), further
            further = [(*path, step) for step in source.onward(start, path)]
        yield question_of(path, source, draw), [path, *_some(draw, pool, siblings, further)]


def _some(draw: random.Random, *groups: Sequence[Steps]) -> list[Steps]:
    return [path for paths in groups for path in draw.sample(paths, min(OTHERS, len(paths)))]


def question_of(path: Steps, source: Source, draw: random.Random, topic: str = "") -> str:
    """Word a path as a question about a topic; without its name, the topic is left out or named by its type."""
    type_ = source.type_words(path[0].reversed())
    text = topic or draw.choice(STARTS if type_ else STARTS[:3]).format(type_)
    for step in path:
        forms = FORWARD if step.direction == "out" else BACKWARD
        text = draw.choice(forms).format(source.words(step.relation), text, source.type_words(step) or "thing")
    return " ".join(draw.choice(FRAMES).format(text).split())


def variants(path: Steps) -> list[Steps]:
    """Return paths with two neighbouring steps swapped, without the first or last step, or with a step turned round."""
    pairs = range(len(path) - 1)
    swapped = [(*path[:at], path[at + 1], path[at], *path[at + 2 :]) for at in pairs]
    shorter = [path[1:], path[:-1]] if pairs else []
    turned = [(*path[:at], step.reversed(), *path[at + 1 :]) for at, step in enumerate(path)]
    return [*swapped, *shorter, *turned]
