"""Finds entities by name, and the neighbours of an entity by relation and direction."""

from __future__ import annotations

from typing import Any

from kgqa.errors import QuestionError, SchemaError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Direction, Entity, Named, Step, Value
from kgqa.schema import value_of
from kgqa.search.kinds import types_in_words
from kgqa.search.topics import search_similar
from kgqa.storage.answer_json import named_object
from kgqa.text.words import clean, is_unnamed, short_words

BACKWARDS = "<-"
"""What stands before a relation that is followed backwards, from object to subject."""
MAX_ENTITIES = 50
MAX_RELATIONS = 200
MAX_NEIGHBOURS = 1000
"""Maximum neighbours along one relation that can be listed."""
MAX_TEXT = 200
MAX_NAME = 1000
"""Maximum characters of a name or a literal."""
PREVIEW = 8
"""Neighbours of each relation that are shown until one relation is asked for."""
MAX_RECORDS = 100
"""Maximum nodes without a name that are described."""
_TYPES_SHOWN = 3
_NAMES_SHOWN = 3


def search(graph: KnowledgeGraph, text: str, *, limit: int = 10) -> list[dict[str, Any]]:
    """Find entities by name, alias or id, best first; the last word may be incomplete.

    Returns:
        Objects {id, iri, name, types, note}. `note` says by which other name an entity was found.
    """
    text = clean(text)[:MAX_TEXT]
    limit = max(1, min(limit, MAX_ENTITIES))
    matches = search_similar(graph, text, limit=limit) if text else []
    entities = [match.entity for match in matches]
    notes = {match.entity: f"also called {clean(match.name)}" for match in matches if match.kind == "alias"}
    if not entities and (entity := _by_id(graph, text)) is not None:
        entities = [entity]
    types = types_in_words(graph, entities)
    return [
        {**_shown(named), "types": types[entity][:_TYPES_SHOWN], "note": notes.get(entity, "")}
        for entity, named in zip(entities, graph.named(entities))
    ]


def neighbours(
    graph: KnowledgeGraph,
    id: str,
    *,
    relation: str = "",
    direction: Direction | None = None,
    limit: int = PREVIEW,
    offset: int = 0,
) -> dict[str, Any]:
    """Return an entity with its relations in both directions, and some of its neighbours along each.

    Args:
        id: id or IRI of the entity.
        relation: IRI of the only relation wanted; empty for all.
        direction: the only direction wanted; None for both.
        limit: maximum neighbours along each relation.
        offset: how many neighbours to leave out first.

    Returns:
        {id, iri, name, types, relations, more}; a relation is {iri, words, direction, count, nodes, more}. A node
        without a name, such as a marriage, has `words`: the names of what it connects.

    Raises:
        QuestionError: the graph has no such entity.
    """
    entity = entity_by_id(graph, id)
    limit, offset = max(1, min(limit, MAX_NEIGHBOURS)), max(0, min(offset, MAX_NEIGHBOURS))
    counts = graph.paths.relations_at([entity])
    hidden = {*graph.schema.label, *graph.schema.alias}
    wanted = [step for step in counts if direction in (None, step.direction)]
    if relation:
        wanted = [step for step in wanted if step.relation == relation]
    else:
        wanted = [step for step in wanted if step.relation not in hidden and not graph.tables.is_noise(step.relation)]
    steps = sorted(wanted, key=lambda step: (step.direction == "in", step.relation))
    shown = steps[:MAX_RELATIONS]
    most = min(offset + limit, MAX_NEIGHBOURS)
    hops = graph.queries.map(lambda step: graph.paths.hop([entity], [step], loops=True, limit=most), shown)
    values: list[tuple[Value, ...]] = [hop.get(entity, ()) for hop in hops]
    pages = [found[offset:most] for found in values]
    every = list(dict.fromkeys(value for page in pages for value in page))
    named = graph.named(every)
    objects = dict(zip(every, map(_shown, named)))
    unnamed = [each for each, name in zip(every, named) if isinstance(each, Entity) and is_unnamed(name, graph.schema)]
    for node, words in _record_words(graph, unnamed[:MAX_RECORDS], entity).items():
        objects[node]["words"] = words
    return {
        **_shown(graph.named([entity])[0]),
        "types": types_in_words(graph, [entity])[entity][:_TYPES_SHOWN],
        "relations": [
            {
                "step": written(graph, step),
                "iri": step.relation,
                "words": short_words(step.relation, graph.schema, graph.tables.relation_labels),
                "direction": step.direction,
                "count": counts[step],
                "nodes": [objects[value] for value in page],
                "more": len(found) > most and most < MAX_NEIGHBOURS,
            }
            for step, page, found in zip(shown, pages, values)
        ],
        "more": len(steps) > len(shown),
    }


def _shown(named: Named) -> dict[str, Any]:
    """Return the JSON object of an entity or literal; a long text is cut, so that one name does not hide the others."""
    found = named_object(named)
    long = {key: text for key in ("name", "value") if len(text := found.get(key) or "") > MAX_NAME}
    return {**found, **{key: f"{text[:MAX_NAME]}…" for key, text in long.items()}}


def _record_words(graph: KnowledgeGraph, nodes: list[Entity], entity: Entity) -> dict[Entity, str]:
    """Describe nodes without a name by the names of what they connect, other than `entity`."""
    edges = [
        (node, value)
        for node, step, value in graph.paths.edges(nodes, limit=20 * len(nodes) + 1)
        if value != entity and not graph.tables.is_noise(step.relation) and step.relation not in graph.schema.types
    ]
    names = dict(zip(values := list(dict.fromkeys(value for _, value in edges)), graph.named(values)))
    found: dict[Entity, list[str]] = {}
    for node, value in edges:
        found.setdefault(node, []).append(clean(names[value].name)[:MAX_TEXT])
    return {node: ", ".join(list(dict.fromkeys(texts))[:_NAMES_SHOWN]) for node, texts in found.items()}


def written(graph: KnowledgeGraph, step: Step) -> str:
    """Return a step as it is written in a path."""
    return (BACKWARDS if step.direction == "in" else "") + graph.schema.short_id(step.relation)


def entity_by_id(graph: KnowledgeGraph, id: str) -> Entity:
    """Return the entity of the graph with an id or IRI. Raises QuestionError if there is none."""
    entity = _by_id(graph, id)
    if entity is None:
        raise QuestionError(f"There is no entity {clean(id)[:MAX_TEXT]} in this graph.", "Search it by its name.")
    return entity


def _by_id(graph: KnowledgeGraph, id: str) -> Entity | None:
    """Return the entity of the graph with an id or IRI; None if there is none."""
    try:
        entity = value_of(id, graph.schema)
    except SchemaError:
        return None
    return entity if entity in graph.paths.present([entity]) else None
