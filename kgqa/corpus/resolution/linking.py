"""Links entities of a text to entities of a knowledge graph. What is not clear stays unlinked, with a reason.

A candidate has the entity's name as its label or alias. It is taken if it is the only one whose types agree with the
type in the text, or the only one that is connected to a neighbour of the same name in both graphs. A name alone is
enough only if it has several words, one candidate, and a type is missing on one side.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgqa.corpus.items import Addition, LinkItem, normal_name
from kgqa.corpus.records import EntityRecord, StatementRecord
from kgqa.corpus.resolution.normal_forms import comparison_form
from kgqa.corpus.resolution.types import types_agree
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import MAX_NAMESAKES
from kgqa.model.terms import Entity, Value
from kgqa.text.words import clean, normalise, split_words, type_words

RULES = "link rules"
_BATCH = 200
_DATE_FORM = re.compile(r"(?:\d+|-)-\d\d-\d\d\Z")
_MAX_CANDIDATES = 20
_MAX_EDGES = 500


@dataclass(frozen=True, slots=True)
class Unlinked:
    """An entity of the text that has candidates in the knowledge graph, and why none was taken."""

    entity: str
    reason: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Links:
    """What linking found: additions of `LinkItem`s, and the entities with candidates that stay unlinked."""

    additions: tuple[Addition, ...] = ()
    unlinked: tuple[Unlinked, ...] = ()


@dataclass(slots=True)
class _Candidate:
    """An entity of the knowledge graph, the words of its types, and the normalised names of its neighbours."""

    types: set[str] = field(default_factory=set)
    neighbours: set[str] = field(default_factory=set)


def link_entities(
    entities: Iterable[EntityRecord],
    graph: KnowledgeGraph,
    *,
    statements: Iterable[StatementRecord] = (),
    only: Collection[str] | None = None,
) -> Links:
    """Find the entities of a knowledge graph that entities of a text mean.

    Args:
        entities: The entities, after resolution; those that are linked already are left out.
        graph: The knowledge graph.
        statements: What the text says about the entities, after resolution; their neighbours tell namesakes apart.
        only: IRIs of the entities to link; None for all.
    """
    entities = sorted(entities, key=lambda entity: entity.iri)
    around = _around(entities, statements)
    additions, unlinked = [], []
    waiting = [
        entity
        for entity in entities
        if not entity.is_linked and (only is None or entity.iri in only) and _is_name(entity.name)
    ]
    for begin in range(0, len(waiting), _BATCH):
        batch = waiting[begin : begin + _BATCH]
        found = _named(graph, batch)
        known = _described(graph, {each for ones in found.values() for each in ones if len(ones) <= _MAX_CANDIDATES})
        for entity in batch:
            candidates = found[entity.iri]
            if not candidates:
                continue
            target, reason, confidence = _choose(entity, candidates, known, around.get(entity.iri, frozenset()))
            if target is None:
                unlinked.append(Unlinked(entity.iri, reason, tuple(each.iri for each in candidates[:_MAX_CANDIDATES])))
            else:
                item = LinkItem(entity.iri, target.iri)
                additions.append(Addition(item, confidence=confidence, model=RULES, reason=reason))
    return Links(tuple(additions), tuple(unlinked))


def kinds_agree(type_: str, types: Iterable[str]) -> bool:
    """Return whether the type of an entity in a text agrees with one of the types of an entity of a graph, in words."""
    wanted = normal_name(type_)
    for each in types:
        words = normal_name(each)
        if types_agree(wanted, words) or wanted.split()[-1:] == words.split()[-1:]:
            return True
    return False


def _choose(
    entity: EntityRecord, candidates: Sequence[Entity], known: Mapping[Entity, _Candidate], around: frozenset[str]
) -> tuple[Entity | None, str, float]:
    """Return the entity meant, or None, with the reason and the confidence."""
    if len(candidates) > _MAX_CANDIDATES:
        return None, f"{_number(len(candidates))} entities have this name", 0.0
    typed = [each for each in candidates if any(kinds_agree(type_, known[each].types) for type_ in entity.types)]
    untyped = [each for each in candidates if not entity.types or not known[each].types]
    possible = typed + [each for each in untyped if each not in typed]
    if not possible:
        return None, f"no entity of this name has the type {', '.join(map(clean, entity.types))}", 0.0
    shared = {each: sorted(known[each].neighbours & around) for each in possible}
    best = max(len(names) for names in shared.values())
    nearest = [each for each in possible if len(shared[each]) == best]
    if best and len(nearest) == 1:
        return nearest[0], f"same name, and connected to {clean(shared[nearest[0]][0])} in both graphs", 0.97
    if len(typed) == 1 and len(possible) == 1:
        return typed[0], "the only entity of this name with a type that agrees", 0.95
    if len(possible) > 1:
        return None, f"{len(possible)} entities of this name are possible", 0.0
    if len(candidates) == 1 and len(entity.name.split()) > 1:
        return possible[0], "the only entity of this name", 0.9
    return None, "one entity has this name, but nothing else agrees", 0.0


def _number(count: int) -> str:
    return f"{count} or more" if count >= MAX_NAMESAKES else str(count)


def _is_name(text: str) -> bool:
    """Return whether a text may name one thing: it has a capital letter or letters without case, and is no date."""
    proper = any(char.isalpha() and not char.islower() for char in text)
    return proper and not _DATE_FORM.match(comparison_form(text))


def _named(graph: KnowledgeGraph, entities: Sequence[EntityRecord]) -> dict[str, list[Entity]]:
    """Return the entities of the graph that have one of the names of each entity, by its IRI."""
    texts = {entity.iri: [normalise(name) for name in (entity.name, *entity.aliases)] for entity in entities}
    matches = graph.names.exact(sorted({text for names in texts.values() for text in names if text}))
    return {
        iri: sorted({match.entity for text in names for match in matches.get(text, ())}, key=lambda each: each.iri)
        for iri, names in texts.items()
    }


def _described(graph: KnowledgeGraph, entities: Iterable[Entity]) -> dict[Entity, _Candidate]:
    """Return the types and neighbours of entities of the graph."""
    asked = sorted(entities, key=lambda each: each.iri)
    found = {each: _Candidate() for each in asked}
    types: dict[Entity, set[Entity]] = defaultdict(set)
    near: dict[Entity, set[Value]] = defaultdict(set)
    for direction in ("out", "in"):
        for one, step, value in graph.paths.edges(asked, direction, limit=_MAX_EDGES):
            if direction == "out" and step.relation in graph.schema.types and isinstance(value, Entity):
                types[one].add(value)
            elif not graph.tables.is_noise(step.relation):
                near[one].add(value)
    nodes = {type_ for each in types.values() for type_ in each}
    nodes |= {value for each in near.values() for value in each if isinstance(value, Entity)}
    labels = graph.labels(nodes)
    for each in asked:
        found[each].types = {
            clean(split_words(labels[type_]) if type_ in labels else type_words(type_.iri, graph.schema))
            for type_ in types[each]
        } | {type_words(type_.iri, graph.schema) for type_ in types[each]}
        names = (labels.get(value, "") if isinstance(value, Entity) else value.value for value in near[each])
        found[each].neighbours = {name for name in map(normalise, names) if name}
    return found


def _around(entities: Iterable[EntityRecord], statements: Iterable[StatementRecord]) -> dict[str, frozenset[str]]:
    """Return the normalised names of the neighbours of each entity in the text, literals included."""
    names = {entity.iri: {normalise(name) for name in (entity.name, *entity.aliases)} for entity in entities}
    found: dict[str, set[str]] = defaultdict(set)
    for statement in statements:
        if isinstance(statement.object, Entity):
            found[statement.subject] |= names.get(statement.object.iri, set())
            found[statement.object.iri] |= names.get(statement.subject, set())
        else:
            found[statement.subject].add(normalise(statement.object.value))
    return {iri: frozenset(each - {""}) for iri, each in found.items()}
