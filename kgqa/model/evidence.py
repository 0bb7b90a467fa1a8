"""What an answer rests on: paths, statements, hyperedges and quotes, and the pieces that retrievers return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar
from typing import Literal as OneOf

import msgspec

from kgqa.model.conditions import Condition, Operation
from kgqa.model.paths import RelationPath
from kgqa.model.terms import Entity, Value

PieceKind = OneOf["chunk", "statement", "entity", "community", "hyperedge", "path"]


@dataclass(frozen=True, slots=True)
class Triple:
    """One triple of the graph."""

    subject: Entity
    relation: str
    object: Value


@dataclass(frozen=True, slots=True)
class Named:
    """A value with its name. `id`: the short id in the schema. `name`: the label, or the id if there is no label.

    A literal has an empty `id`, and its text is its `name`. `unit`: the unit of a number, if it is known.
    `description`: what is known of an entity without a label, to be shown in place of its id. It is no name, and is
    never compared.
    """

    value: Value
    id: str
    name: str
    unit: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text: `text[begin:end]`, in code points.

    `document`, `chunk`: IRIs. The positions count in the text of the chunk; if `chunk` is empty, in that of the
    document. `source`: path or address of the document, for people; may be empty.
    """

    document: str
    chunk: str
    begin: int
    end: int
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a retriever returns: a chunk of text, a statement, an entity, a hyperedge, a community or a path.

    `score`: the retriever's score; scores of different retrievers are not comparable. `spans`: the parts of documents
    that the piece comes from.
    """

    iri: str
    kind: PieceKind
    text: str
    score: float = 0.0
    spans: tuple[Span, ...] = ()
    triples: tuple[Triple, ...] = ()


class PathEvidence(msgspec.Struct, frozen=True, tag_field="kind", tag="path"):
    """A path that leads to the answers, in words, and some walks along it.

    `walks`: some walks from the topic to an answer, each a tuple of named nodes. `mediators`: positions of mediators in
    each walk; 0 is the topic. `score`: the chooser's score; scores of different questions are not comparable.
    `conditions`, `operation`: those of the query. A computed answer is not on the walks, which lead to some of the
    nodes that it was computed from. `condition_words`, `operation_words`: the same in words, one text a condition.
    `step_words`: the relation of each step in words.
    """

    kind: ClassVar = "path"
    path: RelationPath
    words: str
    walks: tuple[tuple[Named, ...], ...] = ()
    mediators: tuple[int, ...] = ()
    triples: tuple[Triple, ...] = ()
    score: float | None = None
    approximate: bool = False
    conditions: tuple[Condition, ...] = ()
    operation: Operation | None = None
    condition_words: tuple[str, ...] = ()
    operation_words: str = ""
    step_words: tuple[str, ...] = ()


class StatementEvidence(msgspec.Struct, frozen=True, tag_field="kind", tag="statement"):
    """A statement extracted from text.

    `iri`: the statement's IRI. `words`: the triple in words. `spans`: where the statement stands. `confidence`: from 0
    to 1, None if unknown. `model`: the model that extracted the statement. `quotes`: the words at each of the spans.
    """

    kind: ClassVar = "statement"
    iri: str
    triple: Triple
    words: str
    spans: tuple[Span, ...] = ()
    confidence: float | None = None
    model: str = ""
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Participant:
    """A node of a hyperedge and its role, an IRI or a word."""

    role: str
    node: Named


class HyperedgeEvidence(msgspec.Struct, frozen=True, tag_field="kind", tag="hyperedge"):
    """A fact with any number of participants, and the segment of text that states it."""

    kind: ClassVar = "hyperedge"
    iri: str
    words: str
    participants: tuple[Participant, ...] = ()
    spans: tuple[Span, ...] = ()


class QuoteEvidence(msgspec.Struct, frozen=True, tag_field="kind", tag="quote"):
    """Words quoted from a text. `verified`: whether they stand at `span` (see `kgqa.text.quotes`)."""

    kind: ClassVar = "quote"
    span: Span
    words: str
    verified: bool


Evidence = PathEvidence | StatementEvidence | HyperedgeEvidence | QuoteEvidence
"""What an answer rests on. All have `words`, a text for people. In JSON, `kind` distinguishes them."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim of a response and the piece that it cites.

    `piece`: IRI of the piece. `span`: where the quote stands, None if it was not found. `verified`: whether `quote`
    stands at `span`.
    """

    claim: str
    piece: str
    span: Span | None = None
    quote: str = ""
    verified: bool = False
