"""The first pass over a graph of GRBench: which nodes exist, and which edges only one of their ends lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kgqa.graph.rdf.grbench.edge_sides import EdgeSides, Hashes, edge_hashes, hashes_of, is_member
from kgqa.graph.rdf.grbench.nodes import NodePart
from kgqa.graph.rdf.grbench.tables import LinkRule, LinkTables

_BATCH = 50_000
"""About how many ids are hashed at once."""
_NONE: Hashes = np.empty(0, dtype=np.uint64)


@dataclass
class Links:
    """The links of a graph: the rule of each by type and name, and the numbers of the links that are written."""

    tables: LinkTables
    rules: dict[tuple[str, str], LinkRule]
    numbers: dict[str, int]

    def rule(self, source: str, link: str) -> LinkRule:
        """Return the rule of a link that nodes of the type `source` list."""
        known = self.rules.get((source, link))
        if known is None:
            known = self.rules[source, link] = self.tables.rule(source, link)
            self.numbers.setdefault(known.of or known.name, len(self.numbers))
        return known

    def number(self, rule: LinkRule) -> int:
        """Return the number of the link that is written: the link itself, or the one whose inverse it is."""
        return self.numbers[rule.of or rule.name]


@dataclass(frozen=True)
class Scan:
    """What the first pass finds.

    `ids`: ordered hashes of all ids, 8 bytes each. `clashing`: those that nodes of several types have. `repeated`: by
    type and hash, how often the file has a node, if more than once. `types`: number of nodes by type. `alone`: ordered
    hashes of the edges that only the inverse of a link has. `one_sided`: by number of link, how many edges only the
    link has and only its inverse has. `parts`: number of parts that were read.
    """

    links: Links
    ids: Hashes
    clashing: Hashes
    repeated: dict[tuple[str, int], int]
    types: dict[str, int]
    alone: Hashes
    one_sided: dict[int, tuple[int, int]]
    parts: int

    def exist(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return which ids are those of nodes."""
        return is_member(hashes, self.ids)


class _Ids:
    """The hashes of the ids of one type."""

    def __init__(self) -> None:
        self._packed: list[Hashes] = []
        self._new: list[int] = []

    def add(self, ident: str) -> None:
        self._new.append(hash(ident))
        if len(self._new) >= _BATCH:
            self._pack()

    def _pack(self) -> None:
        self._packed.append(np.array(self._new, dtype=np.int64).view(np.uint64))
        self._new = []

    def ordered(self) -> Hashes:
        """Return all hashes in order, and forget them."""
        self._pack()
        found = np.concatenate(self._packed)
        self._packed = []
        found.sort()
        return found


def scan_nodes(parts: Iterable[NodePart], tables: LinkTables, folder: Path) -> Scan:
    """Read a graph once.

    Args:
        folder: an empty folder for temporary files.
    """
    ids: dict[str, _Ids] = {}
    links = Links(tables, {}, {})
    edges = _PairedEdges(links, EdgeSides(folder))
    count = 0
    for part in parts:
        count += 1
        if part.first:
            ids.setdefault(part.type, _Ids()).add(part.id)
        for link, listed in part.links.items():
            edges.add(part, links.rule(part.type, link), listed)
    edges.flush()
    by_type: dict[str, Hashes] = {}
    repeated: dict[tuple[str, int], int] = {}
    for type_ in list(ids):
        ordered = ids.pop(type_).ordered()
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        for each in again.tolist():
            repeated[type_, each] = repeated.get((type_, each), 1) + 1
        by_type[type_] = np.unique(ordered) if len(again) else ordered
    types = {type_: len(each) for type_, each in by_type.items()}
    everything = np.concatenate([*by_type.values(), _NONE])
    by_type.clear()
    everything.sort()
    clashing = np.unique(everything[1:][everything[1:] == everything[:-1]])
    known = np.unique(everything) if len(clashing) else everything
    alone, only_written, only_inverse = edges.sides.alone(known)
    paired = {links.number(rule) for rule in links.rules.values() if rule.role != "written"}
    one_sided = {each: (only_written.get(each, 0), only_inverse.get(each, 0)) for each in paired}
    return Scan(links, known, clashing, repeated, types, alone, one_sided, count)


class _PairedEdges:
    """Collects the edges of links that both ends list."""

    def __init__(self, links: Links, sides: EdgeSides) -> None:
        self.sides = sides
        self._links = links
        self._kept: dict[str, tuple[LinkRule, list[int], list[int], list[str]]] = {}
        self._count = 0

    def add(self, part: NodePart, rule: LinkRule, listed: list[str]) -> None:
        """Add the edges of a node."""
        if not listed or (rule.role == "written" and not rule.paired):
            return
        _, subjects, lengths, ids = self._kept.setdefault(f"{rule.source}\0{rule.name}", (rule, [], [], []))
        subjects.append(hash(part.id))
        lengths.append(len(listed))
        ids += (
            [each if each.startswith(rule.prefix) else rule.prefix + each for each in listed] if rule.prefix else listed
        )
        self._count += len(listed)
        if self._count >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Hash what was added."""
        for rule, subjects, lengths, ids in self._kept.values():
            here = np.repeat(np.array(subjects, dtype=np.int64).view(np.uint64), lengths)
            there = hashes_of(ids)
            number = self._links.number(rule)
            if rule.role != "inverse":
                self.sides.add("written", edge_hashes(here, there, number), there, number)
            if rule.role != "written":
                self.sides.add("inverse", edge_hashes(there, here, number), there, number)
        self._kept, self._count = {}, 0
