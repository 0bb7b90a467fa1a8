"""What a corpus contains now: the records that its RDF graphs, indexes and retrievers are made from.

Records follow from the live items (`kgqa.corpus.items`): names that mean the same entity are one entity, and statements
with the same subject, relation and object are one statement with several places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from kgqa.model.terms import Value


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how something was found; see `kgqa.corpus.items.Addition`. `begin`, `end` count in the document."""

    document: str
    chunk: str
    begin: int
    end: int
    confidence: float | None = None
    model: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document of the corpus. `digest`: hash of the content of its present version."""

    iri: str
    source: str
    title: str
    media_type: str
    digest: str


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A chunk: `begin` and `end` count in the text of the document, in code points."""

    iri: str
    document: str
    begin: int
    end: int
    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """An entity after resolution.

    `iri`: the smallest IRI of its names, or the IRI of the entity of a knowledge graph that it is linked to. `name`:
    its most frequent name. `types`: in words. `members`: the IRIs of its names (`Party.iri`).
    """

    iri: str
    name: str
    types: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    description: str = ""
    members: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def is_linked(self) -> bool:
        """Whether the entity is one of a knowledge graph."""
        return self.iri not in self.members


@dataclass(frozen=True, slots=True)
class StatementRecord:
    """A fact about entities after resolution. `relation`: an IRI, `relation_name` its words."""

    iri: str
    subject: str
    relation: str
    relation_name: str
    object: Value
    words: str
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class HyperedgeRecord:
    """A hyperedge: a segment of knowledge and its participants, as pairs (role in words, entity IRI)."""

    iri: str
    segment: str
    participants: tuple[tuple[str, str], ...]
    completeness: float | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class CommunityRecord:
    """A group of entities that are closely connected. `level`: 0 for the largest groups. `parent`: "" at level 0.

    `members`: entity IRIs, sorted. `members_hash`: changes with the members and what is known about them.
    """

    iri: str
    level: int
    parent: str
    members: tuple[str, ...]
    members_hash: str
    title: str
    summary: str


@dataclass(frozen=True, slots=True)
class RelationRecord:
    """A relation of statements, or a role of hyperedges. `name`: its words in normal form."""

    iri: str
    name: str


@dataclass(frozen=True, slots=True)
class TypeRecord:
    """A type of entities. `name`: its words in normal form."""

    iri: str
    name: str


class CorpusReader(Protocol):
    """What indexes and retrievers read. Records come in the order of their IRIs."""

    @property
    def seq(self) -> int:
        """The number of the last edit that the records contain; 0 for an empty corpus."""
        ...

    def documents(self) -> Iterator[DocumentRecord]: ...

    def chunks(self) -> Iterator[ChunkRecord]: ...

    def entities(self) -> Iterator[EntityRecord]: ...

    def statements(self) -> Iterator[StatementRecord]: ...

    def hyperedges(self) -> Iterator[HyperedgeRecord]: ...

    def communities(self) -> Iterator[CommunityRecord]: ...
