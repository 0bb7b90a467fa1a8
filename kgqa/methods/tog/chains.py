"""Chains of nodes along paths, which both searches of Think-on-Graph follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.model import Entity, RelationPath, Step, Value


@dataclass(frozen=True, slots=True)
class NodeChain:
    """A chain of nodes along a path.

    Attributes:
        path: The path, which starts at a topic.
        nodes: The nodes after the topic, one per step.
        score: The score of the last hop.
    """

    path: RelationPath
    nodes: tuple[Value, ...] = ()
    score: float = 1.0

    @property
    def end(self) -> Value:
        """The last node."""
        return self.nodes[-1] if self.nodes else self.path.topic

    def onward(self, *steps: Step) -> RelationPath:
        """Return the path of some steps that starts at the last node."""
        assert isinstance(self.end, Entity)
        return RelationPath(self.end, steps)

    def then(self, steps: Sequence[Step], nodes: Sequence[Value], score: float) -> NodeChain:
        """Return the chain with further steps and their nodes."""
        return NodeChain(self.path.then(*steps), (*self.nodes, *nodes), score)
