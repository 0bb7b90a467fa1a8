"""Chains of nodes along paths, which both searches of Think-on-Graph follow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kgqa.model import Candidate, Entity, RelationPath, Value


@dataclass(frozen=True, slots=True)
class Chain:
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

    def from_end(self) -> RelationPath:
        """Return the empty path that starts at the last node."""
        assert isinstance(self.end, Entity)
        return RelationPath(self.end)


def paths_to(wanted: Collection[Value], every: Sequence[Chain]) -> Iterator[Candidate]:
    """Yield the chains that lead to wanted nodes, as paths restricted to the nodes of the chains.

    Each chain is yielded separately first; then all chains along the same path are yielded together.
    """
    along: dict[RelationPath, dict[tuple[Value, ...], None]] = {}
    for chain in every:
        for length in range(1, len(chain.nodes) + 1):
            if chain.nodes[length - 1] in wanted:
                path = RelationPath(chain.path.topic, chain.path.steps[:length])
                along.setdefault(path, {})[chain.nodes[: length - 1]] = None
    single = [(path, [nodes]) for path, chains in along.items() for nodes in chains]
    together = [(path, list(chains)) for path, chains in along.items() if len(chains) > 1]
    for path, several in (*single, *together):
        restricted = tuple(
            (position, tuple(dict.fromkeys(node for node in nodes if isinstance(node, Entity))))
            for position, nodes in enumerate(zip(*several), 1)
        )
        yield Candidate(path, restricted=restricted)
