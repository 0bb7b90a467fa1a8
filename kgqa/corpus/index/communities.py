"""Communities: groups of entities that share many facts, found by hierarchical Leiden clustering.

Edges are weighted by the number of facts that connect two entities. Clusters larger than the limit are clustered again,
which gives the levels; a cluster that Leiden cannot split, such as a hub with its neighbours, is cut into parts. A
community is named by a hash of its members, so it keeps its IRI as long as they stay the same.

The whole clustering is computed anew after a change, since it takes about a second for 10^5 edges; what costs money,
the summaries, is made again only where `members_hash` changed (`kgqa.corpus.index.summaries`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kgqa.corpus.items import COMMUNITY, digest
from kgqa.corpus.records import CommunityRecord, CorpusReader, EntityRecord, HyperedgeRecord, StatementRecord
from kgqa.errors import SettingsError
from kgqa.terms import Entity

MAX_SIZE = 10
"""Most entities in a community without communities inside."""
_UNIT = 840  # divisible by 1 to 8: weights are whole numbers, so their sums do not depend on an order
_MAX_CLIQUE = 9
Edge = tuple[str, str, float]


@dataclass(frozen=True)
class _Cluster:
    members: tuple[str, ...]
    level: int
    parent: _Cluster | None


def communities_of(
    reader: CorpusReader, *, max_size: int = MAX_SIZE, resolution: float = 1.0, seed: int = 0
) -> tuple[CommunityRecord, ...]:
    """Find the communities of a corpus, with titles; their summaries are empty.

    Raises:
        SettingsError: As `find_communities`.
    """
    entities = {entity.iri: entity for entity in reader.entities()}
    statements, hyperedges = list(reader.statements()), list(reader.hyperedges())
    edges = entity_edges(statements, hyperedges)
    found = find_communities(edges, max_size=max_size, resolution=resolution, seed=seed)
    return described(found, edges, entities, statements, hyperedges)


def entity_edges(
    statements: Iterable[StatementRecord], hyperedges: Iterable[HyperedgeRecord] = ()
) -> list[tuple[str, str, float]]:
    """Return the weighted edges between entities, sorted.

    A statement counts 1. A hyperedge counts 1 for each participant: it connects all pairs of up to 9 participants;
    more participants are each connected to the one with the most statements.
    """
    weights: Counter[tuple[str, str]] = Counter()
    degrees: Counter[str] = Counter()
    for statement in statements:
        if isinstance(statement.object, Entity) and statement.object.iri != statement.subject:
            weights[_pair(statement.subject, statement.object.iri)] += _UNIT
            degrees.update((statement.subject, statement.object.iri))
    for hyperedge in hyperedges:
        members = sorted({entity for _, entity in hyperedge.participants})
        if len(members) <= _MAX_CLIQUE:
            for position, one in enumerate(members):
                for other in members[position + 1 :]:
                    weights[one, other] += _UNIT // (len(members) - 1)
        else:
            centre = min(members, key=lambda iri: (-degrees[iri], iri))
            for other in members:
                if other != centre:
                    weights[_pair(centre, other)] += _UNIT
    return [(one, other, weight / _UNIT) for (one, other), weight in sorted(weights.items())]


def find_communities(
    edges: Sequence[Edge], *, max_size: int = MAX_SIZE, resolution: float = 1.0, seed: int = 0
) -> tuple[CommunityRecord, ...]:
    """Group the ends of weighted edges; the result depends only on the set of edges and the options.

    Args:
        edges: Pairs of entity IRIs with a positive weight. Several edges of a pair add up; the direction does not
            matter.
        max_size: Most members of a community that has no communities inside.
        resolution: A larger value gives more and smaller communities at level 0.
        seed: Seed of the random numbers.

    Returns:
        Communities with at least two members, by level and IRI, without title and summary.

    Raises:
        SettingsError: `max_size` is smaller than 2, or the package graspologic-native is missing.
    """
    if max_size < 2:
        raise SettingsError("The largest size of a community must be at least 2.")
    weights: dict[tuple[str, str], float] = defaultdict(float)
    for one, other, weight in sorted(edges):
        if one != other:
            weights[_pair(one, other)] += weight
    if not weights:
        return ()
    clusters = _leiden(weights, max_size, resolution, seed)
    neighbours = _Neighbours(weights)
    parents = {id(cluster.parent) for cluster in clusters}
    for cluster in list(clusters):
        if id(cluster) not in parents and len(cluster.members) > max_size:
            parts = neighbours.cut(cluster.members, max_size)
            clusters += [_Cluster(part, cluster.level + 1, cluster) for part in parts]
    return _records(clusters)


def described(
    communities: Iterable[CommunityRecord],
    edges: Iterable[Edge],
    entities: Mapping[str, EntityRecord],
    statements: Iterable[StatementRecord],
    hyperedges: Iterable[HyperedgeRecord] = (),
) -> tuple[CommunityRecord, ...]:
    """Return communities with titles, and with a hash of the members, their names, and what is said of them.

    Said of a community are the statements and hyperedges of which all entities are members, and the statements of
    members whose object is a literal.
    """
    communities = tuple(communities)
    facts = _facts_inside(communities, statements, hyperedges)
    strength: Counter[str] = Counter()
    for one, other, weight in edges:
        strength[one] += weight  # type: ignore[assignment]
        strength[other] += weight  # type: ignore[assignment]
    names = {iri: entity.name for iri, entity in entities.items()}
    result = []
    for community in communities:
        ranked = sorted(community.members, key=lambda iri: (-strength[iri], iri))
        named = [names.get(iri, "") for iri in community.members]
        found = digest(*community.members, *named, *sorted(facts.get(community.iri, ())), length=24)
        title = ", ".join(dict.fromkeys(names.get(iri, iri) for iri in ranked[:3]))
        result.append(replace(community, members_hash=found, title=title))
    return tuple(result)


def _facts_inside(
    communities: Iterable[CommunityRecord],
    statements: Iterable[StatementRecord],
    hyperedges: Iterable[HyperedgeRecord],
) -> dict[str, list[str]]:
    """Return the IRIs of the statements and hyperedges inside each community."""
    of_entity: dict[str, list[str]] = defaultdict(list)
    for community in communities:
        for member in community.members:
            of_entity[member].append(community.iri)
    found: dict[str, list[str]] = defaultdict(list)
    for statement in statements:
        inside = of_entity.get(statement.subject, [])
        if isinstance(statement.object, Entity) and statement.object.iri != statement.subject:
            others = of_entity.get(statement.object.iri, [])
            inside = [each for each in inside if each in others]
        for community_iri in inside:
            found[community_iri].append(statement.iri)
    for hyperedge in hyperedges:
        groups = [of_entity.get(entity, []) for entity in {entity for _, entity in hyperedge.participants}]
        for community_iri in groups[0] if groups else ():
            if all(community_iri in group for group in groups):
                found[community_iri].append(hyperedge.iri)
    return found


def _leiden(weights: Mapping[tuple[str, str], float], max_size: int, resolution: float, seed: int) -> list[_Cluster]:
    """Return all clusters of at least two members, each parent before its parts."""
    try:
        from graspologic_native import hierarchical_leiden
    except ImportError as error:
        raise SettingsError(
            "Communities need the package graspologic-native.", "Install it: pip install 'kgqa[corpus]'"
        ) from error
    rows = hierarchical_leiden(
        [(one, other, weight) for (one, other), weight in weights.items()],
        resolution=resolution,
        max_cluster_size=max_size,
        seed=seed,
    )
    members: dict[int, list[str]] = defaultdict(list)
    levels: dict[int, tuple[int, int | None]] = {}
    for row in rows:
        members[row.cluster].append(row.node)
        levels[row.cluster] = (row.level, row.parent_cluster)
    made: dict[int, _Cluster] = {}
    for number in sorted(levels, key=lambda number: levels[number][0]):
        above = levels[number][1]
        parent = made.get(above) if above is not None else None
        if len(members[number]) < 2:
            continue
        if parent is not None and len(parent.members) == len(members[number]):
            made[number] = parent
        else:
            level = parent.level + 1 if parent is not None else 0
            made[number] = _Cluster(tuple(sorted(members[number])), level, parent)
    return list({id(cluster): cluster for cluster in made.values()}.values())


class _Neighbours:
    """The neighbours of each entity, to cut a cluster where its entities are least connected."""

    def __init__(self, weights: Mapping[tuple[str, str], float]) -> None:
        self._of: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for (one, other), weight in weights.items():
            self._of[one].append((-weight, other))
            self._of[other].append((-weight, one))
        for found in self._of.values():
            found.sort()

    def cut(self, members: Sequence[str], max_size: int) -> list[tuple[str, ...]]:
        """Cut a cluster into parts of nearly equal size, entities in the order of a breadth-first search."""
        waiting = sorted(members, key=lambda iri: (-len(self._of[iri]), iri))
        inside, seen = set(members), dict[str, None]()
        for start in waiting:
            queue = [] if start in seen else [start]
            seen.setdefault(start)
            for entity in queue:
                for _, other in self._of[entity]:
                    if other in inside and other not in seen:
                        seen[other] = None
                        queue.append(other)
        ordered = list(seen)
        count = -(-len(ordered) // max_size)
        bounds = [len(ordered) * part // count for part in range(count + 1)]
        return [tuple(sorted(ordered[begin:end])) for begin, end in pairwise(bounds)]


def _records(clusters: Iterable[_Cluster]) -> tuple[CommunityRecord, ...]:
    iris: dict[int, str] = {}
    records = []
    for cluster in clusters:
        found = digest(*cluster.members, length=24)
        iris[id(cluster)] = f"{COMMUNITY}{found}"
        parent = iris[id(cluster.parent)] if cluster.parent else ""
        records.append(CommunityRecord(iris[id(cluster)], cluster.level, parent, cluster.members, found, "", ""))
    return tuple(sorted(records, key=lambda record: (record.level, record.iri)))


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
