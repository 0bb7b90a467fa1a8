"""The records that follow from live items: resolved entities, statements, hyperedges, and the places they come from.

`snapshot_of` is a pure function of the set of additions; their order and repetitions do not matter. From a part of the
additions it derives the same record of an entity as from all of them, if the part contains all additions that name the
entity; the same holds for statements and hyperedges. `concerned` tells which additions these are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from kgqa.corpus.items import (
    HYPEREDGE,
    RELATION,
    ROLE,
    STATEMENT,
    TYPE,
    Addition,
    ChunkItem,
    DocumentItem,
    EntityItem,
    HyperedgeItem,
    Item,
    LinkItem,
    Party,
    SameItem,
    StatementItem,
    digest,
    name_iri,
    normal_name,
)
from kgqa.corpus.rdf.terms import stored_value
from kgqa.corpus.records import (
    ChunkRecord,
    DocumentRecord,
    EntityRecord,
    HyperedgeRecord,
    Place,
    RelationRecord,
    StatementRecord,
    TypeRecord,
)
from kgqa.model.terms import Entity, Literal, Value

_Record = TypeVar("_Record", DocumentRecord, ChunkRecord, EntityRecord, StatementRecord, HyperedgeRecord)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Records in the order of their IRIs."""

    documents: tuple[DocumentRecord, ...] = ()
    chunks: tuple[ChunkRecord, ...] = ()
    entities: tuple[EntityRecord, ...] = ()
    statements: tuple[StatementRecord, ...] = ()
    hyperedges: tuple[HyperedgeRecord, ...] = ()
    relations: tuple[RelationRecord, ...] = ()
    types: tuple[TypeRecord, ...] = ()

    def limited_to(self, entities: Collection[str]) -> Snapshot:
        """Return a snapshot without the records of other entities; statements and hyperedges are kept."""
        return replace(self, entities=tuple(each for each in self.entities if each.iri in entities))


class Identities:
    """Which entity IRIs mean the same entity: those joined by `SameItem`s, or linked to the same entity of a graph."""

    def __init__(self, same: Iterable[SameItem] = (), links: Iterable[LinkItem] = ()) -> None:
        self._parent: dict[str, str] = {}
        self._targets: dict[str, str] = {}
        for each in same:
            self._join(each.left, each.right)
        known = sorted(set(links), key=lambda link: (link.target, link.entity))
        first: dict[str, str] = {}
        for link in known:
            self._join(link.entity, first.setdefault(link.target, link.entity))
        for link in reversed(known):
            self._targets[self._root(link.entity)] = link.target  # the smallest target comes last
        self._members: dict[str, list[str]] = defaultdict(list)
        for iri in sorted(self._parent):
            self._members[self._root(iri)].append(iri)

    def canonical(self, entity: str) -> str:
        """Return the IRI of the entity that `entity` means: a knowledge graph's, or the smallest of its IRIs."""
        root = self._root(entity) if entity in self._parent else entity
        return self._targets.get(root, root)

    def members(self, entity: str) -> tuple[str, ...]:
        """Return all IRIs that mean the same as `entity` (an IRI of a name, not a target of a link), sorted."""
        return tuple(self._members[self._root(entity)]) if entity in self._parent else (entity,)

    def _root(self, iri: str) -> str:
        root = iri
        while (above := self._parent.setdefault(root, root)) != root:
            root = above
        while (above := self._parent[iri]) != root:
            self._parent[iri], iri = root, above
        return root

    def _join(self, one: str, other: str) -> None:
        low, high = sorted((self._root(one), self._root(other)))
        self._parent[high] = low  # so that the root is the smallest member


def concerned(item: Item) -> frozenset[str]:
    """Return the IRIs, before resolution, of what an item says something about.

    They are IRIs of a document, a chunk, entities (`Party.iri`), relations, roles and types. All additions that concern
    an entity are all additions that concern one of `Identities.members`.
    """
    if isinstance(item, DocumentItem):
        return frozenset((item.document,))
    if isinstance(item, ChunkItem):
        return frozenset((item.document, item.chunk))
    if isinstance(item, SameItem):
        return frozenset((item.left, item.right))
    if isinstance(item, LinkItem):
        return frozenset((item.entity,))
    found = set()
    for party in parties_of(item):
        found |= {party.iri, type_iri(party.type)} if normal_name(party.type) else {party.iri}
    if isinstance(item, StatementItem):
        found.add(relation_iri(item.relation))
    elif isinstance(item, HyperedgeItem):
        found |= {role_iri(role) for role, _ in item.participants if normal_name(role)}
    return frozenset(found)


def relation_iri(words: str) -> str:
    """Return the IRI of the relation with these words."""
    return name_iri(RELATION, words)


def role_iri(words: str) -> str:
    """Return the IRI of the role with these words."""
    return name_iri(ROLE, words)


def type_iri(words: str) -> str:
    """Return the IRI of the type with these words."""
    return name_iri(TYPE, words)


def statement_iri(subject: str, relation: str, value: Entity | Literal) -> str:
    """Return the IRI of the statement of a triple, which is a hash of its parts."""
    if isinstance(value, Entity):
        return f"{STATEMENT}{digest(subject, relation, value.iri, length=24)}"
    return f"{STATEMENT}{digest(subject, relation, value.value, value.datatype, value.language, length=24)}"


def hyperedge_iri(item: HyperedgeItem, identities: Identities) -> str:
    """Return the IRI of the hyperedge that an item is, a hash of its normalised segment and its participants."""
    participants = {(normal_name(role), identities.canonical(party.iri)) for role, party in item.participants}
    return _hyperedge_iri(normal_name(item.segment), tuple(sorted(participants)))


def _hyperedge_iri(normal_segment: str, participants: tuple[tuple[str, str], ...]) -> str:
    return f"{HYPEREDGE}{digest(normal_segment, *chain.from_iterable(participants), length=24)}"


def snapshot_of(
    additions: Iterable[Addition], *, same: Iterable[SameItem] = (), links: Iterable[LinkItem] = ()
) -> Snapshot:
    """Derive the records of live additions.

    Args:
        additions: the additions; those of `SameItem`s and `LinkItem`s are used like `same` and `links`.
        same, links: more of them, such as all that are live, beside a part of the additions.
    """
    unique = set(additions)
    items = {addition.item for addition in unique}
    identities = Identities(
        [*same, *(item for item in items if isinstance(item, SameItem))],
        [*links, *(item for item in items if isinstance(item, LinkItem))],
    )
    documents: dict[str, list[DocumentItem]] = defaultdict(list)
    chunks: dict[str, ChunkItem] = {}
    entities: dict[str, list[_Mention]] = defaultdict(list)
    statements: dict[tuple[str, str, Value], list[tuple[StatementItem, Place]]] = defaultdict(list)
    hyperedges: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[HyperedgeItem, Place]]] = defaultdict(list)
    iris: dict[Party, str] = {}
    for addition in unique:
        item, place = addition.item, place_of(addition)
        description = item.description if isinstance(item, EntityItem) else ""
        for party in parties_of(item):
            iri = iris.get(party)
            if iri is None:
                iri = iris[party] = identities.canonical(party.iri)
            entities[iri].append((party, place, description))
        if isinstance(item, StatementItem):
            value = Entity(iris[item.object]) if isinstance(item.object, Party) else stored_value(item.object)
            statements[iris[item.subject], relation_iri(item.relation), value].append((item, place))
        elif isinstance(item, HyperedgeItem):
            participants = {(normal_name(role), iris[party]) for role, party in item.participants}
            hyperedges[normal_name(item.segment), tuple(sorted(participants))].append((item, place))
        elif isinstance(item, ChunkItem):
            chunks[item.chunk] = item
        elif isinstance(item, DocumentItem):
            documents[item.document].append(item)
    return Snapshot(
        documents=_sorted(_document(iri, versions) for iri, versions in documents.items()),
        chunks=_sorted(_chunk(iri, item) for iri, item in chunks.items()),
        entities=_sorted(_entity(iri, mentions, identities) for iri, mentions in entities.items()),
        statements=_sorted(_statement(triple, found) for triple, found in statements.items()),
        hyperedges=_sorted(_hyperedge(parts, found) for parts, found in hyperedges.items()),
        relations=_relations(items),
        types=tuple(TypeRecord(iri, name) for iri, name in _named(items, TYPE)),
    )


def entity_records(
    additions: Iterable[Addition], identities: Identities, entities: Collection[str]
) -> tuple[EntityRecord, ...]:
    """Derive the records of some entities, and nothing else.

    Args:
        additions: all additions that name one of the entities, and perhaps others.
        identities: which names mean the same entity, for the names of these entities.
        entities: the IRIs of the entities, after resolution.
    """
    mentions: dict[str, list[_Mention]] = defaultdict(list)
    iris: dict[Party, str] = {}
    for addition in set(additions):
        item = addition.item
        for party in parties_of(item):
            iri = iris.get(party)
            if iri is None:
                iri = iris[party] = identities.canonical(party.iri)
            if iri in entities:
                description = item.description if isinstance(item, EntityItem) else ""
                mentions[iri].append((party, place_of(addition), description))
    return _sorted(_entity(iri, found, identities) for iri, found in mentions.items())


def place_of(addition: Addition) -> Place:
    """Return the place of an addition."""
    return Place(
        addition.document,
        addition.chunk,
        addition.begin,
        addition.end,
        addition.confidence,
        addition.model,
        addition.prompt,
    )


_Mention = tuple[Party, Place, str]
"""A name of an entity, where it stands, and a description; "" for none."""


def _entity(iri: str, mentions: Sequence[_Mention], identities: Identities) -> EntityRecord:
    names = most_frequent([" ".join(party.name.split()) for party, _, _ in mentions])
    kinds = [kind for party, _, _ in mentions if party.type and (kind := normal_name(party.type))]
    types: Mapping[str, int] = Counter(kinds) if kinds else {}
    descriptions = most_frequent([text for _, _, each in mentions if each and (text := " ".join(each.split()))])
    aliases = {normal_name(name): name for name in reversed(names)} if len(names) > 1 else {}
    aliases.pop(normal_name(names[0]), None)
    return EntityRecord(
        iri,
        names[0],
        tuple(sorted(types, key=lambda name: (-types[name], name))),
        tuple(sorted(aliases.values())),
        descriptions[0] if descriptions else "",
        identities.members(mentions[0][0].iri),
        _places([place for _, place, _ in mentions]),
    )


def _statement(triple: tuple[str, str, Value], found: Sequence[tuple[StatementItem, Place]]) -> StatementRecord:
    subject, relation, value = triple
    words = most_frequent([_words(item) for item, _ in found])[0]
    name, places = normal_name(found[0][0].relation), _places([place for _, place in found])
    return StatementRecord(statement_iri(subject, relation, value), subject, relation, name, value, words, places)


def _words(item: StatementItem) -> str:
    value = item.object.name if isinstance(item.object, Party) else item.object.value
    return " ".join(f"{item.subject.name} {item.relation} {value}".split())


def _hyperedge(
    parts: tuple[str, tuple[tuple[str, str], ...]], found: Sequence[tuple[HyperedgeItem, Place]]
) -> HyperedgeRecord:
    normal_segment, participants = parts
    iri = _hyperedge_iri(normal_segment, participants)
    segment = most_frequent([item.segment.strip() for item, _ in found])[0]
    completeness = max((item.completeness for item, _ in found if item.completeness is not None), default=None)
    return HyperedgeRecord(iri, segment, participants, completeness, _places([place for _, place in found]))


def _document(iri: str, versions: list[DocumentItem]) -> DocumentRecord:
    latest = max(versions, key=lambda item: (item.digest, item.title, item.media_type, item.source))
    return DocumentRecord(iri, latest.source, latest.title, latest.media_type, latest.digest)


def _chunk(iri: str, item: ChunkItem) -> ChunkRecord:
    return ChunkRecord(iri, item.document, item.begin, item.end, item.text, item.page)


def _relations(items: Iterable[Item]) -> tuple[RelationRecord, ...]:
    found = [*_named(items, RELATION), *_named(items, ROLE)]
    return tuple(RelationRecord(iri, name) for iri, name in sorted(found))


def _named(items: Iterable[Item], prefix: str) -> list[tuple[str, str]]:
    """Return the IRIs with a prefix and the normal forms of the relations, roles or types that items use."""
    words: set[str] = set()
    for item in items:
        if prefix == TYPE:
            words.update(party.type for party in parties_of(item))
        elif prefix == RELATION and isinstance(item, StatementItem):
            words.add(item.relation)
        elif prefix == ROLE and isinstance(item, HyperedgeItem):
            words.update(role for role, _ in item.participants)
    return sorted({(name_iri(prefix, each), normal_name(each)) for each in words if normal_name(each)})


def parties_of(item: Item) -> tuple[Party, ...]:
    """Return the entities that an item names."""
    if isinstance(item, EntityItem):
        return (item.party,)
    if isinstance(item, StatementItem):
        return (item.subject, item.object) if isinstance(item.object, Party) else (item.subject,)
    if isinstance(item, HyperedgeItem):
        return tuple(party for _, party in item.participants)
    return ()


def most_frequent(texts: Sequence[str]) -> list[str]:
    """Return the distinct texts by their number, then by their length, largest first, then in code point order."""
    if len(set(texts)) < 2:
        return list(texts[:1])
    counts = Counter(texts)
    return sorted(counts, key=lambda text: (-counts[text], -len(text), text))


def _sorted(records: Iterable[_Record]) -> tuple[_Record, ...]:
    return tuple(sorted(records, key=lambda record: record.iri))


def _places(places: Sequence[Place]) -> tuple[Place, ...]:
    return tuple(places) if len(places) == 1 else tuple(sorted(set(places), key=_place_key))


def _place_key(place: Place) -> tuple[object, ...]:
    confidence = -1.0 if place.confidence is None else place.confidence
    return place.document, place.begin, place.end, place.chunk, place.model, place.prompt, confidence
