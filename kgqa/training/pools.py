"""Pools for training: the paths of a question's topic; the ranker learns to find the gold path among them.

If the topic is in a graph, the pool contains its paths of up to two edges in that graph, except paths that end at
mediators. For other topics, the pool is simulated with an ontology: it contains the paths that an entity of the topic's
type could have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

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


_Path = tuple[Step, ...]
_Pool = tuple[Mapping[_Path, int], np.ndarray]
"""Paths with the numbers of their rows, and the rows, as in `Example`."""


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
        self._pools: dict[Entity | str, _Pool] = {}  # by topic, or by the type of topics that are in no graph
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

        def onward(start: _Path) -> list[Step]:
            (found,) = graph.paths.steps([Candidate(RelationPath(topic, start))], tolerated=TOLERATED)
            steps = () if isinstance(found, TOLERATED) else found.steps
            return [step for step in steps if not graph.tables.leads_to_mediator(step)]

        try:
            if topic not in self._pools:
                self._pools[topic] = self._pool(())  # a topic that takes too long is not explored again
                self._pools[topic] = self._pool(_paths_in(graph, topic))
            pool = self._pools[topic]
            steps = _as_explored(graph, question.path.steps, pool[0])
            beside = _continuations(steps, onward) if steps[:MAX_EDGES] in pool[0] else ()
            return self._example(question, pool, steps, beside)
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
        if start not in self._pools:
            self._pools[start] = self._pool(_paths_of(ontology, start))
        # an ontology is incomplete, so a gold path that it lacks is added to the pool
        beside = [steps, *_continuations(steps, lambda start: _ontology_onward(ontology, start[-1]))]
        return self._example(question, self._pools[start], steps, beside)

    def _pool(self, paths: Iterable[_Path]) -> _Pool:
        rows = {path: row for row, path in enumerate(dict.fromkeys(paths))}
        return rows, path_table(list(rows), self._numbers, width=MAX_EDGES)

    def _example(self, question: TrainingQuestion, pool: _Pool, gold: _Path, beside: Sequence[_Path]) -> Example | None:
        """Build an example from a pool; if the pool lacks the gold path, add the paths in `beside` to it."""
        rows, table = pool if gold in pool[0] or not beside else self._pool([*pool[0], *beside])
        return Example(question.asked, table, rows[gold]) if gold in rows and len(rows) > 1 else None


def _paths_in(graph: KnowledgeGraph, topic: Entity) -> list[_Path]:
    """Return an entity's paths of at most `MAX_EDGES` edges, except paths whose end nodes are all mediators."""
    found: list[_Path] = []
    frontier = [RelationPath(topic)]
    for _ in range(MAX_EDGES):
        onward = [path.then(step) for path in frontier for step in graph.paths.steps([Candidate(path)])[0].steps]
        found += [path.steps for path in onward if not graph.paths.ends_on_mediators(path)]
        frontier = onward
        if len(found) > MAX_POOL:
            break
    return found[:MAX_POOL]


def _as_explored(graph: KnowledgeGraph, steps: _Path, pool: Iterable[_Path]) -> _Path:
    """Return the gold path, with each relation replaced by its inverse if the pool contains only the inverse."""
    here = {step for path in pool for step in path}

    def either(step: Step) -> Step:
        twins = [inverse] if (inverse := graph.tables.inverses.get(step.relation)) else []
        twins += graph.tables.declarations.inverse_of.get(step.relation, ())
        every = [step, *(Step(twin, step.reversed().direction) for twin in twins)]
        return next((each for each in every if each in here), step)

    return tuple(either(step) for step in steps)


def _paths_of(ontology: Ontology, start: str) -> list[_Path]:
    """Return the paths of one or two edges that an entity of a type could have, except paths that end at mediators."""
    found: list[_Path] = []
    for first in ontology.steps_from(start, widened=True):
        if not ontology.leads_to_mediator(first):
            found.append((first,))
        found += [(first, second) for second in _ontology_onward(ontology, first)]
    return found[:MAX_POOL]


def _ontology_onward(ontology: Ontology, step: Step) -> list[Step]:
    return [each for each in ontology.steps_from(ontology.end(step)) if not ontology.leads_to_mediator(each)]


def _continuations(steps: _Path, onward: Callable[[_Path], Sequence[Step]]) -> list[_Path]:
    """Return the paths that consist of at least the first `MAX_EDGES` edges of a gold path and one further edge."""
    starts = [steps[:length] for length in range(MAX_EDGES, len(steps))]
    return [(*start, step) for start in starts for step in onward(start)]
