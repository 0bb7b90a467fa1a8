"""Pools for training: the paths of a question's topic; the ranker learns to find the gold path among them.

If the topic is in a graph, the pool contains its paths of up to two edges in that graph, except paths that end at
mediators. For other topics, the pool is simulated with an ontology: it contains the paths that an entity of the topic's
type could have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kgqa.errors import StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.trained_ranker import path_table
from kgqa.search.tolerance import TOLERATED
from kgqa.training.fitting import Example
from kgqa.training.ontology import Ontology
from kgqa.training.questions import TrainingQuestion

MAX_EDGES = 2
MAX_POOL = 60_000


class PoolBuilder:
    """Builds training examples and numbers the steps of their paths.

    Attributes:
        from_graph: Number of examples with a pool from a graph.
        from_ontology: Number of examples with a pool from the ontology.
    """

    def __init__(self, *, graphs: Sequence[KnowledgeGraph] = (), ontology: Ontology | None = None) -> None:
        self._graphs = tuple(graphs)
        self._ontology = ontology
        self._numbers: dict[Step, int] = {}
        self._simulated: dict[str, np.ndarray] = {}
        self._explored: dict[Entity, np.ndarray] = {}
        self.from_graph = 0
        self.from_ontology = 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all examples built so far; a step's number is its index."""
        return tuple(self._numbers)

    def example(self, question: TrainingQuestion) -> Example | None:
        """Build a training example; return None if neither a graph nor the ontology has the gold path."""
        if example := self._from_graph(question):
            self.from_graph += 1
        elif example := self._from_ontology(question):
            self.from_ontology += 1
        return example

    def _from_graph(self, question: TrainingQuestion) -> Example | None:
        topic = question.path.topic
        graph = next((graph for graph in self._graphs if topic in graph.paths.present([topic])), None)
        if graph is None:
            return None

        def onward(start: tuple[Step, ...]) -> list[Step]:
            (found,) = graph.paths.steps([Candidate(RelationPath(topic, start))], tolerated=TOLERATED)
            steps = () if isinstance(found, TOLERATED) else found.steps
            return [step for step in steps if not graph.tables.leads_to_mediator(step)]

        try:
            if topic not in self._explored:
                self._explored[topic] = self._rows([])  # a topic that takes too long is not explored again
                self._explored[topic] = self._rows(_paths_in(graph, topic))
            pool = self._explored[topic]
            steps = _as_explored(graph, question.path.steps, pool, self._numbers)
            is_reached = self._gold_row(pool[:, :MAX_EDGES], steps[:MAX_EDGES]) is not None
            return self._example(question, pool, steps, _continuations(steps, onward) if is_reached else ())
        except StoreTimeout:
            return None

    def _from_ontology(self, question: TrainingQuestion) -> Example | None:
        ontology = self._ontology
        if ontology is None:
            return None
        steps = tuple(ontology.folded(step) for step in question.path.steps)
        start = ontology.start(steps[0])
        if start is None:
            return None
        if start not in self._simulated:
            self._simulated[start] = self._rows(_paths_of(ontology, start))
        # an ontology is incomplete, so a gold path that it lacks is added to the pool
        beside = [steps, *_continuations(steps, lambda start: _ontology_onward(ontology, start[-1]))]
        return self._example(question, self._simulated[start], steps, beside)

    # --- rows of step numbers

    def _rows(self, paths: Sequence[tuple[Step, ...]], width: int = MAX_EDGES) -> np.ndarray:
        return path_table(paths, self._numbers, width=width)

    def _example(
        self, question: TrainingQuestion, pool: np.ndarray, gold: tuple[Step, ...], beside: Sequence[tuple[Step, ...]]
    ) -> Example | None:
        """Build an example from a pool; if the pool lacks the gold path, add the paths in `beside` to it."""
        row = self._gold_row(pool, gold)
        if row is None and beside:
            added = self._rows(beside, pool.shape[1])
            padding = ((0, 0), (0, added.shape[1] - pool.shape[1]))
            pool = np.unique(np.concatenate([np.pad(pool, padding, constant_values=-1), added]), axis=0)
            row = self._gold_row(pool, gold)
        return None if row is None or len(pool) < 2 else Example(question.asked, pool, row)

    def _gold_row(self, pool: np.ndarray, steps: tuple[Step, ...]) -> int | None:
        if len(steps) > pool.shape[1]:
            return None
        found = np.flatnonzero((pool == self._rows([steps], pool.shape[1])).all(axis=1))
        return int(found[0]) if found.size else None


def _paths_in(graph: KnowledgeGraph, topic: Entity) -> list[tuple[Step, ...]]:
    """Return an entity's paths of at most `MAX_EDGES` edges, except paths whose end nodes are all mediators."""
    found: list[tuple[Step, ...]] = []
    frontier = [RelationPath(topic)]
    for _ in range(MAX_EDGES):
        onward = [path.then(step) for path in frontier for step in graph.paths.steps([Candidate(path)])[0].steps]
        found += [path.steps for path in onward if not graph.paths.ends_on_mediators(path)]
        frontier = onward
        if len(found) > MAX_POOL:
            break
    return found[:MAX_POOL]


def _as_explored(
    graph: KnowledgeGraph, steps: tuple[Step, ...], pool: np.ndarray, numbers: Mapping[Step, int]
) -> tuple[Step, ...]:
    """Return the gold path, with each relation replaced by its inverse if the pool contains only the inverse."""
    here = set(np.unique(pool).tolist())

    def either(step: Step) -> Step:
        twins = [inverse] if (inverse := graph.tables.inverses.get(step.relation)) else []
        twins += graph.tables.inverse_of.get(step.relation, ())
        every = [step, *(Step(twin, step.reversed().direction) for twin in twins)]
        return next((each for each in every if numbers.get(each) in here), step)

    return tuple(either(step) for step in steps)


def _paths_of(ontology: Ontology, start: str) -> list[tuple[Step, ...]]:
    """Return the paths of one or two edges that an entity of a type could have, except paths that end at mediators."""
    found: list[tuple[Step, ...]] = []
    for first in ontology.steps_from(start, widened=True):
        if not ontology.leads_to_mediator(first):
            found.append((first,))
        found += [(first, second) for second in _ontology_onward(ontology, first)]
    return found[:MAX_POOL]


def _ontology_onward(ontology: Ontology, step: Step) -> list[Step]:
    return [each for each in ontology.steps_from(ontology.end(step)) if not ontology.leads_to_mediator(each)]


def _continuations(
    steps: tuple[Step, ...], onward: Callable[[tuple[Step, ...]], Sequence[Step]]
) -> list[tuple[Step, ...]]:
    """Return the paths that consist of at least the first `MAX_EDGES` edges of a gold path and one further edge."""
    starts = [steps[:length] for length in range(MAX_EDGES, len(steps))]
    return [(*start, step) for start in starts for step in onward(start)]
