"""Entities before resolution, made from names, for tests."""

from __future__ import annotations

from collections.abc import Iterable

from kgqa.corpus.items import Party, SameItem
from kgqa.corpus.records import EntityRecord, Place, StatementRecord
from kgqa.corpus.resolution.resolving import Resolution, resolve
from kgqa.corpus.snapshot import relation_iri, statement_iri
from kgqa.model.terms import Entity


def entity(name: str, type_: str = "", documents: Iterable[str] = ("d1",)) -> EntityRecord:
    party = Party(name, type_)
    places = tuple(Place(document, f"{document}c", 0, 0) for document in documents)
    return EntityRecord(party.iri, name, (type_,) if type_ else (), (), "", (party.iri,), places)


def fact(subject: str, relation: str, object_: str, types: tuple[str, str] = ("", "")) -> StatementRecord:
    one, other = Party(subject, types[0]).iri, Party(object_, types[1]).iri
    iri = statement_iri(one, relation_iri(relation), Entity(other))
    return StatementRecord(iri, one, relation_iri(relation), relation, Entity(other), f"{subject} {relation} {object_}")


def groups(entities: Iterable[EntityRecord], found: Resolution) -> set[frozenset[str]]:
    """Return the names of entities that mean the same, as `NAME` or `NAME/TYPE`; single names are left out."""
    named = {each.iri: "/".join((each.name, *each.types)) for each in entities}
    group = {iri: {iri} for iri in named}
    for merge in found.merges:
        assert isinstance(merge.item, SameItem) and merge.item.left < merge.item.right
        joined = group[merge.item.left] | group[merge.item.right]
        group |= dict.fromkeys(joined, joined)
    return {frozenset(named[iri] for iri in each) for each in group.values() if len(each) > 1}


def are_same(left, right, *, types=("", ""), text=None, apart=False, others=(), facts=(), **options) -> bool:
    """Return whether two names are merged.

    Args:
        left, right: The names.
        types: Their types.
        text: The text of the document that contains both; None if it is unknown.
        apart: Whether they stand in different documents.
        others: Further entities of the corpus, as records.
        facts: Statements of the corpus.
        options: Passed on to `resolve`.
    """
    one, other = entity(left, types[0]), entity(right, types[1], ("d2",) if apart else ("d1",))
    entities = [one, other, *others]
    if text is not None:
        options["text_of"] = lambda document: text if document == "d1" else ""
    found = resolve(entities, statements=facts, **options)
    key = {"/".join((each.name, *each.types)) for each in (one, other)}
    return any(key <= group for group in groups(entities, found))
