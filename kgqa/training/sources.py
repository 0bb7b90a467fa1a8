"""Sources of paths for training: a graph, whose entities have paths, or an ontology, whose types could have them.

Both have the same methods. A path starts at an entity or at a type.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import cache

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.tables.labels import is_blank_node
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.schema import Schema
from kgqa.search.tolerance import TOLERATED
from kgqa.text.words import local_name, property_words, type_words
from kgqa.training.ontology import Ontology

MAX_EDGES = 2
MAX_POOL = 60_000
SAMPLED = 40
"""How many edges of a relation are read to find entities."""

Steps = tuple[Step, ...]


class GraphSource:
    """The paths of a graph; a gold path that the graph lacks is not used.

    All methods raise `StoreError`; a path that takes too long has no extension.
    """

    complete = True

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._tables = graph.tables
        self.schema = graph.schema

    def start(self, path: RelationPath) -> Entity | None:
        """Return the topic of a gold path; None if it is not in the graph."""
        return path.topic if self._graph.paths.present([path.topic]) else None

    def starts(self, draw: random.Random, tries: int) -> Iterator[Entity]:
        """Yield at most `tries` random entities: each relation is equally likely to be at one of them."""
        pairs = cache(lambda relation: self._graph.paths.pairs(Entity(relation), limit=SAMPLED))
        relations = [relation for relation in self._tables.relations if not self._tables.is_noise(relation)]
        steps = [step for relation in relations for step in (Step(relation), Step(relation, "in"))]
        steps = [step for step in steps if not self._tables.leads_to_mediator(step)]
        for step in draw.choices(steps, k=tries) if steps else ():
            nodes = [pair[step.direction == "out"] for pair in pairs(step.relation)]
            if named := [node for node in nodes if isinstance(node, Entity) and not is_blank_node(node)]:
                yield draw.choice(named)

    def paths(self, start: Entity) -> list[Steps]:
        """Return the paths of at most `MAX_EDGES` edges, except paths whose end nodes are all mediators."""
        found: list[Steps] = []
        frontier = [RelationPath(start)]
        for _ in range(MAX_EDGES):
            onward = [p.then(step) for p in frontier for step in self._graph.paths.steps([Candidate(p)])[0].steps]
            found += [path.steps for path in onward if not self._graph.paths.ends_on_mediators(path)]
            frontier = onward
            if len(found) > MAX_POOL:
                break
        return found[:MAX_POOL]

    def onward(self, start: Entity, steps: Steps) -> list[Step]:
        """Return the steps that extend a path, except steps to mediators."""
        (found,) = self._graph.paths.steps([Candidate(RelationPath(start, steps))], tolerated=TOLERATED)
        further = () if isinstance(found, TOLERATED) else found.steps
        return [step for step in further if not self._tables.leads_to_mediator(step)]

    def folded(self, steps: Steps, paths: Iterable[Steps]) -> Steps:
        """Return a path, with each relation replaced by its inverse if the paths contain only the inverse."""
        here = {step for path in paths for step in path}

        def either(step: Step) -> Step:
            twins = [inverse] if (inverse := self._tables.inverses.get(step.relation)) else []
            twins += self._tables.declarations.inverse_of.get(step.relation, ())
            every = [step, *(Step(twin, step.reversed().direction) for twin in twins)]
            return next((each for each in every if each in here), step)

        return tuple(either(step) for step in steps)

    def words(self, relation: str) -> str:
        """Return a relation as a question names it."""
        return self._tables.relation_labels.get(relation) or _plain_words(relation)

    def type_words(self, step: Step) -> str:
        """Return the type of the nodes to which a step leads in words; "" if it is not declared."""
        type_ = self._tables.target_type(step)
        return type_words(type_, self.schema) if type_ else ""


class OntologySource:
    """The paths of an ontology; a gold path that it lacks is added, because an ontology is incomplete."""

    complete = False

    def __init__(self, ontology: Ontology, schema: Schema) -> None:
        self._ontology = ontology
        self.schema = schema

    def start(self, path: RelationPath) -> str | None:
        """Return the type at which a gold path starts; None if its first relation is unknown."""
        return self._ontology.start(self._ontology.folded(path.steps[0]))

    def starts(self, draw: random.Random, tries: int) -> Iterator[str]:
        """Yield `tries` random types."""
        yield from draw.choices(sorted(self._ontology.leaving), k=tries)

    def paths(self, start: str) -> list[Steps]:
        """Return the paths of one or two edges that an entity of a type could have, except to mediators."""
        found: list[Steps] = []
        for first in self._ontology.steps_from(start, widened=True):
            if not self._ontology.leads_to_mediator(first):
                found.append((first,))
            found += [(first, second) for second in self.onward(start, (first,))]
        return found[:MAX_POOL]

    def onward(self, start: str, steps: Steps) -> list[Step]:
        """Return the steps that extend a path, except steps to mediators."""
        further = self._ontology.steps_from(self._ontology.end(steps[-1]))
        return [step for step in further if not self._ontology.leads_to_mediator(step)]

    def folded(self, steps: Steps, paths: Iterable[Steps]) -> Steps:
        """Return a path in the form of `Ontology.steps_from`."""
        return tuple(map(self._ontology.folded, steps))

    def words(self, relation: str) -> str:
        """Return a relation as a question names it."""
        return _plain_words(relation)

    def type_words(self, step: Step) -> str:
        """Return the type to which a step leads in words; "" if it is unknown."""
        type_ = self._ontology.end(step)
        return type_words(type_, self.schema) if type_ else ""


def _plain_words(relation: str) -> str:
    return property_words(local_name(relation).rsplit(".", 1)[-1])


Source = GraphSource | OntologySource
