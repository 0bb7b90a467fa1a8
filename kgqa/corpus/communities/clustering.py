"""Leiden clustering of a weighted graph in levels, with a limit on the size of the smallest clusters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kgqa.errors import SettingsError
from kgqa.text.hints import Install

Edge = tuple[str, str, float]
"""Two nodes and the weight of their connection."""


@dataclass(frozen=True, eq=False, slots=True)
class Cluster:
    """A group of nodes. `level`: 0 for the largest groups. `parent`: the group it is a part of; None at level 0."""

    members: tuple[str, ...]
    level: int
    parent: Cluster | None


class Clustering:
    """Groups nodes, and the nodes of groups that are too large.

    Args:
        max_size: Most members of a group without groups inside.
        resolution: A larger value gives smaller groups.
        seed: Seed of the random numbers. Equal parts of a graph are split in the same way, whatever else it contains.
        paths: The groups in which each node is and stays, the largest first; a node without a path is placed anew.
    """

    def __init__(
        self, max_size: int, resolution: float, seed: int, paths: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self._max_size = max_size
        self._options: dict[str, Any] = {"resolution": resolution, "seed": seed}
        self._paths = paths or {}

    def clusters(self, edges: Sequence[Edge]) -> list[Cluster]:
        """Return all groups of at least two nodes, each before its parts. `edges` are sorted and without loops."""
        found = [Cluster(part, 0, None) for part in self._parts(edges, 0)]
        level = found
        while large := [cluster for cluster in level if len(cluster.members) > self._max_size]:
            inside = _edges_inside(large, edges)
            level = []
            for cluster in large:
                parts = self._parts(inside[cluster], cluster.level + 1)
                if not parts or len(parts[0]) == len(cluster.members):
                    parts = _cut(cluster.members, inside[cluster], self._max_size)
                level += [Cluster(part, cluster.level + 1, cluster) for part in parts]
            found += level
            edges = [edge for cluster in large for edge in inside[cluster]]
        return found

    def _parts(self, edges: Sequence[Edge], level: int) -> list[tuple[str, ...]]:
        """Return the groups of one level, largest first: the nodes that stay, and those placed anew."""
        groups = self._staying(edges, level)
        kept = {node for group in groups.values() for node in group}
        rest = [edge for edge in edges if edge[0] not in kept and edge[1] not in kept] if kept else edges
        if rest:
            _, group_of = _leiden()(list(rest), **self._options)
            for node, number in group_of.items():
                groups[f"{number}"].append(node)
        return sorted(
            (tuple(sorted(group)) for group in groups.values() if len(group) > 1), key=lambda part: (-len(part), part)
        )

    def _staying(self, edges: Sequence[Edge], level: int) -> dict[str, list[str]]:
        """Return the groups of nodes with a path; other nodes join the group to which they are connected best."""
        groups: dict[str, list[str]] = defaultdict(list)
        group_of: dict[str, str] = {}
        neighbours: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for one, other, weight in edges if self._paths else ():
            for node, near in ((one, other), (other, one)):
                path = self._paths.get(node, ())
                if level < len(path):
                    group_of[node] = path[level]
                else:
                    neighbours[node].append((near, weight))
        waiting = sorted(neighbours)
        while waiting:
            placed = {}
            for node in waiting:
                weights: dict[str, float] = defaultdict(float)
                for near, weight in neighbours[node]:
                    if near in group_of:
                        weights[group_of[near]] += weight
                if weights:
                    placed[node] = min(weights, key=lambda group: (-weights[group], group))
            if not placed:
                break
            group_of |= placed
            waiting = [node for node in waiting if node not in placed]
        for node in sorted(group_of):
            groups[group_of[node]].append(node)
        return groups


def _edges_inside(clusters: Iterable[Cluster], edges: Iterable[Edge]) -> dict[Cluster, list[Edge]]:
    cluster_of = {node: cluster for cluster in clusters for node in cluster.members}
    found: dict[Cluster, list[Edge]] = defaultdict(list)
    for edge in edges:
        cluster = cluster_of.get(edge[0])
        if cluster is not None and cluster is cluster_of.get(edge[1]):
            found[cluster].append(edge)
    return found


def _cut(nodes: Sequence[str], edges: Iterable[Edge], max_size: int) -> list[tuple[str, ...]]:
    """Cut a group into parts of nearly equal size, in the order of a breadth-first search."""
    ordered = _breadth_first(nodes, edges)
    count = -(-len(ordered) // max_size)
    bounds = [-(-len(ordered) * number // count) for number in range(count + 1)]
    return [tuple(sorted(ordered[begin:end])) for begin, end in pairwise(bounds) if end - begin > 1]


def _breadth_first(nodes: Iterable[str], edges: Iterable[Edge]) -> list[str]:
    """Return nodes so that connected ones are near each other, beginning with the one with the most neighbours."""
    neighbours: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for one, other, weight in edges:
        neighbours[one].append((-weight, other))
        neighbours[other].append((-weight, one))
    seen: dict[str, None] = {}
    for start in sorted(nodes, key=lambda node: (-len(neighbours[node]), node)):
        queue = [] if start in seen else [start]
        seen.setdefault(start)
        for node in queue:
            for _, other in sorted(neighbours[node]):
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
    return list(seen)


def _leiden() -> Any:
    try:
        from graspologic_native import leiden
    except ImportError as error:
        raise SettingsError(
            "Communities need the package graspologic-native.", f"Install it: {Install('corpus')}"
        ) from error
    return leiden
