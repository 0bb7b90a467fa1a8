"""The first pass over a graph of GRBench: which nodes exist, and which edges only one of their ends lists."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kgqa.errors import LoadError
from kgqa.evaluation.datasets.grbench.edges import EdgeSides, Hashes, edge_hashes, hashes_of
from kgqa.evaluation.datasets.grbench.links import LinkRule, link_rule
from kgqa.evaluation.datasets.grbench.nodes import Node

BATCH = 20_000
"""About how many features and neighbours are handled at once."""


@dataclass
class Listed:
    """The neighbours that nodes list under one link: one list of ids for all, and for each node its length.

    `sizes`: the same length with ids that a list repeats.
    """

    rule: LinkRule
    nodes: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    repeated: int = 0

    def add(self, node: str, ids: list[str]) -> None:
        """Add the list of a node, each id once."""
        unique = list(dict.fromkeys(ids)) if len(ids) > 1 else ids
        self.nodes.append(node)
        self.lengths.append(len(unique))
        self.sizes.append(len(ids))
        self.ids += unique
        self.repeated += len(ids) - len(unique)

    def full_ids(self) -> list[str]:
        """Return the ids with the prefix that the link leaves out."""
        prefix = self.rule.prefix
        return [each if each.startswith(prefix) else prefix + each for each in self.ids] if prefix else self.ids


def batches(nodes: Iterable[Node]) -> Iterator[tuple[list[Node], list[Listed]]]:
    """Yield some nodes at once, and the neighbours that they list."""
    batch: list[Node] = []
    links: dict[tuple[str, str], Listed] = {}
    size = 0
    for node in nodes:
        batch.append(node)
        size += 1 + len(node.features)
        for link, ids in node.links.items():
            if (listed := links.get((node.type, link))) is None:
                listed = links[node.type, link] = Listed(link_rule(node.type, link))
            listed.add(node.id, ids)
            size += len(ids)
        if size >= BATCH:
            yield batch, list(links.values())
            batch, links, size = [], {}, 0
    yield batch, list(links.values())


@dataclass(frozen=True)
class Scan:
    """What the first pass finds.

    `types`: number of nodes by type. `ids`: ordered hashes of all ids, 8 bytes each. `shared`: those that nodes of
    several types have. `alone`: ordered hashes of the edges that only the inverse of a link has. `one_sided`: how many
    edges only one side has, see `EdgeSides.one_sided`. `rules`: the links.
    """

    types: dict[str, int]
    ids: Hashes
    shared: Hashes
    alone: Hashes
    one_sided: Counter[tuple[int, bool]]
    rules: list[LinkRule]


def scan_nodes(nodes: Iterable[Node], folder: Path) -> Scan:
    """Read a graph once.

    Args:
        folder: an empty folder for temporary files.

    Raises:
        LoadError: the graph has no nodes, or a node twice.
    """
    hashes: dict[str, array[int]] = {}
    sides = EdgeSides(folder)
    rules: dict[LinkRule, None] = {}
    for batch, links in batches(nodes):
        for node in batch:
            hashes.setdefault(node.type, array("q")).append(hash(node.id))
        for listed in links:
            rules.setdefault(listed.rule)
            if listed.rule.compared:
                _compare(listed, sides)
    if not hashes:
        raise LoadError("The graph contains no nodes.")
    types = {type_: len(each) for type_, each in hashes.items()}
    by_type = [np.sort(np.frombuffer(hashes.pop(type_), dtype=np.uint64)) for type_ in types]
    if any(len(_repeated(each)) for each in by_type):
        raise LoadError("An id stands twice in its section.", "Download the file again.")
    ids = np.concatenate(by_type)
    ids.sort()
    alone, one_sided = sides.one_sided(ids)
    return Scan(types, ids, _repeated(ids), alone, one_sided, list(rules))


def _repeated(ordered: Hashes) -> Hashes:
    return np.compress(ordered[1:] == ordered[:-1], ordered[1:])


def _compare(listed: Listed, sides: EdgeSides) -> None:
    rule = listed.rule
    here, there = np.repeat(hashes_of(listed.nodes), listed.lengths), hashes_of(listed.full_ids())
    if rule.role != "inverse":
        sides.add(edge_hashes(here, there, rule.written), there, rule.written, inverse=False)
    if rule.role != "written":
        sides.add(edge_hashes(there, here, rule.written), there, rule.written, inverse=True)
