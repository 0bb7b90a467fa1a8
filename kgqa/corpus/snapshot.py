"""The records that follow from live items: resolved entities, statements, hyperedges, and the places they come from.

`snapshot_of` is a pure function of the set of additions; their order and repetitions do not matter. From a part of the
additions it derives the same record of an entity as from all of them, if the part contains all additions that name the
entity; the same holds for statements and hyperedges. `concerned` tells which additions these are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

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
from kgqa.terms import Entity, Literal


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
    for party in _parties(item):
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
    entities: dict[str, _Entity] = {}
    of_party: dict[Party, _Entity] = {}
    statements: dict[str, _Statement] = {}
    hyperedges: dict[str, _Hyperedge] = {}
    for addition in unique:
        item, place = addition.item, place_of(addition)
        for party in _parties(item):
            entity = of_party.get(party)
            if entity is None:
                iri = identities.canonical(party.iri)
                if iri not in entities:
                    entities[iri] = _Entity(iri, identities.members(party.iri))
                entity = of_party[party] = entities[iri]
            entity.add(party, place, item.description if isinstance(item, EntityItem) else "")
        if isinstance(item, StatementItem):
            _add_statement(statements, item, place, of_party)
        elif isinstance(item, HyperedgeItem):
            _add_hyperedge(hyperedges, item, place, of_party)
        elif isinstance(item, ChunkItem):
            chunks[item.chunk] = item
        elif isinstance(item, DocumentItem):
            documents[item.document].append(item)
    return Snapshot(
        documents=tuple(_document(iri, documents[iri]) for iri in sorted(documents)),
        chunks=tuple(_chunk(iri, chunks[iri]) for iri in sorted(chunks)),
        entities=tuple(entities[iri].record() for iri in sorted(entities)),
        statements=tuple(statements[iri].record(iri) for iri in sorted(statements)),
        hyperedges=tuple(hyperedges[iri].record(iri) for iri in sorted(hyperedges)),
        relations=_relations(items),
        types=tuple(TypeRecord(iri, name) for iri, name in _named(items, TYPE)),
    )


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


class _Entity:
    """Collects what additions say about one entity."""

    def __init__(self, iri: str, members: tuple[str, ...]) -> None:
        self.iri = iri
        self._members = members
        self._names: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._descriptions: Counter[str] = Counter()
        self._places: set[Place] = set()

    def add(self, party: Party, place: Place, description: str) -> None:
        self._names[" ".join(party.name.split())] += 1
        if kind := normal_name(party.type):
            self._types[kind] += 1
        if description := " ".join(description.split()):
            self._descriptions[description] += 1
        self._places.add(place)

    def record(self) -> EntityRecord:
        names = most_frequent(self._names)
        aliases = {normal_name(name): name for name in reversed(names)}
        aliases.pop(normal_name(names[0]), None)
        types = sorted(self._types, key=lambda name: (-self._types[name], name))
        descriptions = most_frequent(self._descriptions)
        return EntityRecord(
            self.iri,
            names[0],
            tuple(types),
            tuple(sorted(aliases.values())),
            descriptions[0] if descriptions else "",
            self._members,
            _sorted_places(self._places),
        )


class _Statement:
    """Collects the additions of one statement."""

    def __init__(self, subject: str, relation: str, name: str, value: Entity | Literal) -> None:
        self._subject = subject
        self._relation = relation
        self._name = name
        self._value = value
        self._words: Counter[str] = Counter()
        self._places: set[Place] = set()

    def add(self, item: StatementItem, place: Place) -> None:
        value = item.object.name if isinstance(item.object, Party) else item.object.value
        self._words[" ".join(f"{item.subject.name} {item.relation} {value}".split())] += 1
        self._places.add(place)

    def record(self, iri: str) -> StatementRecord:
        words = most_frequent(self._words)[0]
        places = _sorted_places(self._places)
        return StatementRecord(iri, self._subject, self._relation, self._name, self._value, words, places)


class _Hyperedge:
    """Collects the additions of one hyperedge."""

    def __init__(self, participants: tuple[tuple[str, str], ...]) -> None:
        self._participants = participants
        self._segments: Counter[str] = Counter()
        self._completeness: set[float] = set()
        self._places: set[Place] = set()

    def add(self, item: HyperedgeItem, place: Place) -> None:
        self._segments[item.segment.strip()] += 1
        if item.completeness is not None:
            self._completeness.add(item.completeness)
        self._places.add(place)

    def record(self, iri: str) -> HyperedgeRecord:
        segment = most_frequent(self._segments)[0]
        completeness = max(self._completeness, default=None)
        return HyperedgeRecord(iri, segment, self._participants, completeness, _sorted_places(self._places))


def _add_statement(
    statements: dict[str, _Statement], item: StatementItem, place: Place, entities: dict[Party, _Entity]
) -> None:
    subject, relation = entities[item.subject].iri, relation_iri(item.relation)
    value: Entity | Literal
    value = Entity(entities[item.object].iri) if isinstance(item.object, Party) else stored_value(item.object)
    iri = statement_iri(subject, relation, value)
    if iri not in statements:
        statements[iri] = _Statement(subject, relation, normal_name(item.relation), value)
    statements[iri].add(item, place)


def _add_hyperedge(
    hyperedges: dict[str, _Hyperedge], item: HyperedgeItem, place: Place, entities: dict[Party, _Entity]
) -> None:
    found = {(normal_name(role), entities[party].iri) for role, party in item.participants}
    participants = tuple(sorted(found))
    iri = (
        f"{HYPEREDGE}{digest(normal_name(item.segment), *(part for each in participants for part in each), length=24)}"
    )
    if iri not in hyperedges:
        hyperedges[iri] = _Hyperedge(participants)
    hyperedges[iri].add(item, place)


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
            words.update(party.type for party in _parties(item))
        elif prefix == RELATION and isinstance(item, StatementItem):
            words.add(item.relation)
        elif prefix == ROLE and isinstance(item, HyperedgeItem):
            words.update(role for role, _ in item.participants)
    return sorted({(name_iri(prefix, each), normal_name(each)) for each in words if normal_name(each)})


def _parties(item: Item) -> tuple[Party, ...]:
    if isinstance(item, EntityItem):
        return (item.party,)
    if isinstance(item, StatementItem):
        return (item.subject, item.object) if isinstance(item.object, Party) else (item.subject,)
    if isinstance(item, HyperedgeItem):
        return tuple(party for _, party in item.participants)
    return ()


def most_frequent(texts: Counter[str]) -> list[str]:
    """Return texts by their number, then by their length, largest first, then in code point order."""
    return sorted(texts, key=lambda text: (-texts[text], -len(text), text))


def _sorted_places(places: set[Place]) -> tuple[Place, ...]:
    if len(places) == 1:
        return tuple(places)
    return tuple(sorted(places, key=_place_key))


def _place_key(place: Place) -> tuple[object, ...]:
    confidence = -1.0 if place.confidence is None else place.confidence
    return place.document, place.begin, place.end, place.chunk, place.model, place.prompt, confidence
