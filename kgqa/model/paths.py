"""Relation paths, and candidates for an answer.

A relation path names no entity except its topic (Tournament on Path, Xiang & Wu 2026, section 3.2). Two walks belong to
the same path if and only if they start at the same topic and follow the same sequence of relations. Two
`RelationPath`s are equal if their topics and steps are equal, so a set of paths is a set of equivalence classes of
walks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.model.conditions import Condition, Operation
from kgqa.model.terms import Entity, Step, Value


@dataclass(frozen=True, slots=True)
class RelationPath:
    """A topic entity and a sequence of steps; these determine whether paths are equal (Tournament on Path, 3.2)."""

    topic: Entity
    steps: tuple[Step, ...] = ()

    def __hash__(self) -> int:
        return hash((self.topic.iri, *[step.relation for step in self.steps]))

    def __len__(self) -> int:
        return len(self.steps)

    def then(self, *steps: Step) -> RelationPath:
        return RelationPath(self.topic, self.steps + steps)

    def triples_along(self, walk: Sequence[Value]) -> Iterator[tuple[Value, str, Value]]:
        """Yield subject, relation and object of each triple along a walk, which starts with the topic."""
        for step, here, there in zip(self.steps, walk, walk[1:]):
            yield (here, step.relation, there) if step.direction == "out" else (there, step.relation, here)


@dataclass(frozen=True, slots=True)
class Join:
    """A second path that must meet a first path.

    `at`: position in the walks of the first path where both paths meet. If `at` is the length of the first path, the
    paths meet at the answer; otherwise they meet at an inner node, such as a mediator.
    """

    at: int
    path: RelationPath


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path and its wording for ranking.

    `hops`: the words of each logical hop; the two edges through a mediator are one logical hop. `kinds`: the types or
    datatypes of the path's end nodes, if known. `leads_to`: what describes the end nodes, in words. `approximate`:
    whether the path was found from a limited number of nodes.
    `joins`: paths from other topics that the walks of this path must meet. `restricted`: one pair (position, entities)
    for each inner position at which a chooser selected entities. `conditions`: what nodes of the walks must fulfil.
    `operation`: what is computed from the end nodes, or which of them are the answers.
    """

    path: RelationPath
    words: str = ""
    approximate: bool = False
    hops: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    leads_to: str = ""
    joins: tuple[Join, ...] = ()
    restricted: tuple[tuple[int, tuple[Entity, ...]], ...] = ()
    conditions: tuple[Condition, ...] = ()
    operation: Operation | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """What limits the walks along the path, as keyword arguments of a `Candidate`."""
        return {"joins": self.joins, "restricted": self.restricted, "conditions": self.conditions}

    @property
    def identity(self) -> tuple[Any, ...]:
        """What the candidate asks the graph, without the wording."""
        return self.path, self.joins, self.restricted, self.conditions, self.operation
