"""Writes the records of a corpus as triples, one named graph per view.

A triple is first a text, `subject predicate object` in N-Triples; `texts_of` returns these texts, `triples_of` typed
triples for `Store.edit`, and `quad_blocks` N-Quads for bulk loads. The lines are in the canonical form of
`kgqa.graph.rdf.lines`, so that a load checks them by one regular expression.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from kgqa.corpus.items import ROLE, digest
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.rdf.terms import decimal_term, integer_term, iri_term, text_term, triple_of, value_term
from kgqa.corpus.records import (
    ChunkRecord,
    CommunityRecord,
    DocumentRecord,
    EntityRecord,
    HyperedgeRecord,
    Place,
    RelationRecord,
    StatementRecord,
    TypeRecord,
)
from kgqa.corpus.snapshot import Snapshot, role_iri, type_iri
from kgqa.model import Triple

LINES_PER_BLOCK = 4096


def _constant(iri: str) -> str:
    return f"<{iri}>"


_TYPE, _LABEL, _ALIAS = _constant(v.TYPE_OF), _constant(v.LABEL), _constant(v.ALIAS)
_IN_DOCUMENT, _BEGIN, _END = _constant(v.IN_DOCUMENT), _constant(v.BEGIN), _constant(v.END)
_DERIVED_FROM, _PARTY = _constant(v.DERIVED_FROM), _constant(v.PARTY)
_PARTY_LABELS = (
    f"{_PARTY} {_LABEL} {text_term(v.PARTY_LABEL)}",
    f"{_constant(v.HYPEREDGE_TYPE)} {_LABEL} {text_term('hyperedge')}",
)
CONSTANTS: Mapping[str, tuple[str, ...]] = {
    view: (f"{_constant(v.CORPUS)} {_constant(v.VIEW)} {text_term(view)}", *(_PARTY_LABELS if view == "hyper" else ()))
    for view in v.VIEWS
}
"""The triples of each view that do not depend on the content of the corpus, as texts."""


def texts_of(snapshot: Snapshot, *, parties: Collection[str] = ()) -> dict[str, set[str]]:
    """Return the triples of a snapshot as texts, by view, without `CONSTANTS`.

    Args:
        snapshot: the records. The labels of an entity are in the view `hyper` only if one of the hyperedges has it.
        parties: the IRIs of entities that hyperedges beside the snapshot have.
    """
    found: dict[str, set[str]] = {view: set() for view in v.VIEWS}
    for view, texts in _parts(snapshot, parties):
        found[view].update(texts)
    return found


def triples_of(snapshot: Snapshot) -> dict[str, set[Triple]]:
    """Return the triples of a snapshot by view, without `CONSTANTS`; see `texts_of`."""
    return {view: set(map(triple_of, texts)) for view, texts in texts_of(snapshot).items()}


def constant_triples() -> dict[str, set[Triple]]:
    """Return the triples of each view that do not depend on the content of the corpus."""
    return {view: set(map(triple_of, CONSTANTS[view])) for view in v.VIEWS}


def quad_blocks(snapshot: Snapshot, *, base: str = v.KC) -> Iterator[bytes]:
    """Yield the N-Quads lines of a snapshot, `CONSTANTS` included, in blocks of some thousand lines."""
    parts = chain(CONSTANTS.items(), _parts(snapshot))
    return quad_lines(parts, base=base)


def quad_lines(parts: Iterable[tuple[str, Iterable[str]]], *, base: str = v.KC) -> Iterator[bytes]:
    """Yield triples, given as pairs of a view and texts, as N-Quads lines in blocks of some thousand lines."""
    ends = {view: f" {iri_term(iri)} .\n" for view, iri in v.graph_iris(base).items()}
    lines: list[str] = []
    for view, texts in parts:
        end = ends[view]
        lines += [text + end for text in texts]
        if len(lines) >= LINES_PER_BLOCK:
            yield "".join(lines).encode()
            lines = []
    if lines:
        yield "".join(lines).encode()


def _parts(snapshot: Snapshot, others: Collection[str] = ()) -> Iterator[tuple[str, list[str]]]:
    """Yield the triples of each record, by view."""
    parties = {iri for hyperedge in snapshot.hyperedges for _, iri in hyperedge.participants}.union(others)
    for document in snapshot.documents:
        yield "text", _document(document)
    for chunk in snapshot.chunks:
        yield "text", _chunk(chunk)
    for entity in snapshot.entities:
        names = _names(entity)
        yield "facts", names
        yield "text", _mentions(entity)
        if entity.iri in parties:
            yield "hyper", names
    for statement in snapshot.statements:
        fact = f"{iri_term(statement.subject)} {iri_term(statement.relation)} {value_term(statement.object)}"
        yield "facts", [fact]
        yield "statements", _statement(statement, fact)
    for hyperedge in snapshot.hyperedges:
        yield "hyper", _hyperedge(hyperedge)
        yield "statements", _derivations(hyperedge.iri, hyperedge.places)
    for each in snapshot.types:
        yield "facts", _type(each)
        yield "hyper", _type(each)
    for relation_record in snapshot.relations:
        yield ("hyper" if relation_record.iri.startswith(ROLE) else "facts"), _relation(relation_record)


def _names(entity: EntityRecord) -> list[str]:
    iri = iri_term(entity.iri)
    return [
        f"{iri} {_LABEL} {text_term(entity.name)}",
        *(f"{iri} {_ALIAS} {text_term(alias)}" for alias in entity.aliases),
        *(f"{iri} {_TYPE} <{type_iri(kind)}>" for kind in entity.types),
    ]


def _mentions(entity: EntityRecord) -> list[str]:
    iri = iri_term(entity.iri)
    chunks = {place.chunk for place in entity.places if place.chunk}
    found = [f"{iri_term(chunk)} <{v.MENTIONS}> {iri}" for chunk in chunks]
    if entity.description:
        found.append(f"{iri} <{v.DESCRIPTION}> {text_term(entity.description)}")
    return found


def _document(document: DocumentRecord) -> list[str]:
    iri = iri_term(document.iri)
    return [
        *(f"{iri} {_TYPE} <{kind}>" for kind in v.DOCUMENT_TYPES),
        f"{iri} <{v.TITLE}> {text_term(document.title)}",
        f"{iri} <{v.SOURCE}> {text_term(document.source)}",
        f"{iri} <{v.FORMAT}> {text_term(document.media_type)}",
        f"{iri} <{v.DIGEST}> {text_term(document.digest)}",
    ]


def _chunk(chunk: ChunkRecord) -> list[str]:
    iri = iri_term(chunk.iri)
    found = [
        f"{iri} {_TYPE} <{v.TEXT_TYPE}>",
        f"{iri} {_IN_DOCUMENT} {iri_term(chunk.document)}",
        f"{iri} {_BEGIN} {integer_term(chunk.begin)}",
        f"{iri} {_END} {integer_term(chunk.end)}",
        f"{iri} <{v.TEXT}> {text_term(chunk.text)}",
    ]
    if chunk.page is not None:
        found.append(f"{iri} <{v.PAGE}> {integer_term(chunk.page)}")
    return found


def _statement(statement: StatementRecord, fact: str) -> list[str]:
    iri = iri_term(statement.iri)
    subject, relation, value = fact.split(" ", 2)
    return [
        f"{iri} {_TYPE} <{v.STATEMENT_TYPE}>",
        f"{iri} <{v.RDF}subject> {subject}",
        f"{iri} <{v.RDF}predicate> {relation}",
        f"{iri} <{v.RDF}object> {value}",
        *_derivations(statement.iri, statement.places),
    ]


def _hyperedge(hyperedge: HyperedgeRecord) -> list[str]:
    iri = iri_term(hyperedge.iri)
    found = [
        f"{iri} {_TYPE} <{v.HYPEREDGE_TYPE}>",
        f"{iri} <{v.SEGMENT}> {text_term(hyperedge.segment)}",
        *(
            f"{iri} {f'<{role_iri(role)}>' if role else _PARTY} {iri_term(party)}"
            for role, party in hyperedge.participants
        ),
    ]
    if hyperedge.completeness is not None:
        found.append(f"{iri} <{v.COMPLETENESS}> {decimal_term(hyperedge.completeness)}")
    return found


def _derivations(iri: str, places: Iterable[Place]) -> list[str]:
    """Return the places of a statement or a hyperedge, each a node of its own with its confidence and model."""
    found = []
    for place in places:
        confidence = "" if place.confidence is None else decimal_term(place.confidence)
        parts = (place.document, place.chunk, str(place.begin), str(place.end), place.model, place.prompt, confidence)
        span = f"<{v.SPAN}{digest(iri, *parts, length=24)}>"
        found.append(f"{iri_term(iri)} {_DERIVED_FROM} {span}")
        if place.document:
            found.append(f"{span} {_IN_DOCUMENT} {iri_term(place.document)}")
        if place.end > place.begin:
            found.append(f"{span} {_TYPE} <{v.TEXT_TYPE}>")
            found.append(f"{span} {_BEGIN} {integer_term(place.begin)}")
            found.append(f"{span} {_END} {integer_term(place.end)}")
        if place.chunk:
            found.append(f"{span} <{v.IN_CHUNK}> {iri_term(place.chunk)}")
        if confidence:
            found.append(f"{span} <{v.CONFIDENCE}> {confidence}")
        if place.model:
            found.append(f"{span} <{v.MODEL}> {text_term(place.model)}")
        if place.prompt:
            found.append(f"{span} <{v.PROMPT}> {text_term(place.prompt)}")
    return found


def _type(record: TypeRecord) -> list[str]:
    return [f"{iri_term(record.iri)} {_LABEL} {text_term(record.name)}"]


def _relation(record: RelationRecord) -> list[str]:
    iri = iri_term(record.iri)
    label = f"{iri} {_LABEL} {text_term(record.name)}"
    return [label, f"{iri} <{v.SUB_RELATION_OF}> {_PARTY}"] if record.iri.startswith(ROLE) else [label]


def community_texts(community: CommunityRecord) -> list[str]:
    """Return the triples of a community as texts, for the view `communities`."""
    iri = iri_term(community.iri)
    found = [
        f"{iri} {_TYPE} <{v.COMMUNITY_TYPE}>",
        f"{iri} <{v.LEVEL}> {integer_term(community.level)}",
        f"{iri} <{v.MEMBERS_HASH}> {text_term(community.members_hash)}",
        *(f"{iri} <{v.MEMBER}> {iri_term(member)}" for member in community.members),
    ]
    if community.parent:
        found.append(f"{iri} <{v.PARENT}> {iri_term(community.parent)}")
    if community.title:
        found.append(f"{iri} <{v.TITLE}> {text_term(community.title)}")
    if community.summary:
        found.append(f"{iri} <{v.SUMMARY}> {text_term(community.summary)}")
    return found


def community_triples(community: CommunityRecord) -> set[Triple]:
    """Return the triples of a community, for the view `communities`."""
    return set(map(triple_of, community_texts(community)))
