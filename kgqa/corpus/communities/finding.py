"""Communities: groups of entities that share many facts, found by Leiden clustering.

Edges are weighted by the number of facts that connect two entities. Clusters larger than the limit are clustered again,
which gives the levels; a cluster that Leiden cannot split, such as a hub with its neighbours, is cut into parts. A
community is named by a hash of its members, so it keeps its IRI as long as they stay the same.

Leiden has many solutions of nearly equal quality: computed anew, 17% of the 4,291 communities of 1,890 passages changed
with each document that was left out. So after a small change all entities stay where they are but those that the change
touches, which join the community to which they are connected best (`touched`). What costs money, the summaries, is made
again only where `members_hash` changed (`kgqa.corpus.communities.summaries`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import fsum

from kgqa.corpus.communities.clustering import Cluster, Clustering, Edge
from kgqa.corpus.items import COMMUNITY, digest
from kgqa.corpus.records import CommunityRecord, CorpusReader, EntityRecord, HyperedgeRecord, StatementRecord
from kgqa.errors import SettingsError
from kgqa.model.terms import Entity

MAX_SIZE = 10
"""Most entities in a community without communities inside."""
_UNIT = 840  # divisible by 1 to 8: weights are whole numbers, so their sums do not depend on an order
_MAX_CLIQUE = 9
_MAX_TOUCHED = 0.2


def communities_of(
    reader: CorpusReader,
    *,
    max_size: int = MAX_SIZE,
    resolution: float = 1.0,
    seed: int = 0,
    previous: Iterable[CommunityRecord] = (),
    touched: Collection[str] | None = None,
) -> tuple[CommunityRecord, ...]:
    """Find the communities of a corpus, with titles; their summaries are empty. See `find_communities`."""
    entities = {entity.iri: entity for entity in reader.entities()}
    statements, hyperedges = list(reader.statements()), list(reader.hyperedges())
    edges = entity_edges(statements, hyperedges)
    found = find_communities(
        edges, max_size=max_size, resolution=resolution, seed=seed, previous=previous, touched=touched
    )
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
    edges: Iterable[Edge],
    *,
    max_size: int = MAX_SIZE,
    resolution: float = 1.0,
    seed: int = 0,
    previous: Iterable[CommunityRecord] = (),
    touched: Collection[str] | None = None,
) -> tuple[CommunityRecord, ...]:
    """Group the ends of weighted edges; the result depends only on the edges, as a set, and the options.

    Args:
        edges: Pairs of entity IRIs with a positive weight. Several edges of a pair add up; the direction does not
            matter.
        max_size: Most members of a community that has no communities inside.
        resolution: A larger value gives more and smaller communities at level 0.
        seed: Seed of the random numbers.
        previous: The communities found before, with the same options.
        touched: The entities whose edges have changed since `previous`, at least. All others stay in their communities,
            unless more than a fifth of the entities are new or touched. None to compute all communities anew.

    Returns:
        Communities with at least two members, by level and IRI, without title and summary.

    Raises:
        SettingsError: `max_size` is smaller than 2, or the package graspologic-native is missing.
    """
    if max_size < 2:
        raise SettingsError("The largest size of a community must be at least 2.")
    given: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one, other, weight in edges:
        if one != other:
            given[_pair(one, other)].append(weight)
    weights = {pair: given[pair][0] if len(given[pair]) == 1 else fsum(given[pair]) for pair in sorted(given)}
    paths = _paths(previous, touched) if touched is not None else {}
    entities = {entity for pair in weights for entity in pair}
    if len(entities - paths.keys()) > _MAX_TOUCHED * len(entities):
        paths = {}
    clustering = Clustering(max_size, resolution, seed, paths)
    return _records(clustering.clusters([(one, other, weight) for (one, other), weight in weights.items()]))


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


def _paths(communities: Iterable[CommunityRecord], touched: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the IRIs of the communities of each entity that is not touched, the largest first."""
    found: dict[str, list[str]] = defaultdict(list)
    for community in sorted(communities, key=lambda each: (each.level, each.iri)):
        for member in community.members:
            if member not in touched:
                found[member].append(community.iri)
    return {member: tuple(iris) for member, iris in found.items()}


def _records(clusters: Iterable[Cluster]) -> tuple[CommunityRecord, ...]:
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
