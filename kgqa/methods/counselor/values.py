"""Values in the order of the list from which they were converted, and names in the languages of the graph.

A graph has the order if its schema names relations to lists (`relations.order`), as GRBench's graphs do that were
converted with `--keep-order`; and the length of a list of which some ids are no nodes (`relations.degree`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.sets import ordered
from kgqa.model import Entity, Literal, Step, Value
from kgqa.schema import Schema
from kgqa.storage.loading import parse_json

Pairs = Mapping[Entity, Sequence[Value]]
"""The values of each node."""


def in_list_order(graph: KnowledgeGraph, pairs: Pairs, hop: Sequence[Step]) -> Pairs:
    """Return the values to which a hop leads in the order of their list, and others behind them, in their own order."""
    relation = relation_beside(graph, hop, graph.schema.order)
    several = [node for node, values in pairs.items() if len(values) > 1] if relation else []
    lists: dict[Entity, list[str]] = {}
    for node, (first, *_) in graph.paths.hop(several, (Step(relation),)).items() if several else ():
        try:
            listed = parse_json(first.value) if isinstance(first, Literal) else None
        except ValueError:
            continue
        lists[node] = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    found: dict[Entity, Sequence[Value]] = {}
    for node, values in pairs.items():
        place = {text: number for number, text in reversed(list(enumerate(lists.get(node, ()))))}
        texts = {value: value.iri if isinstance(value, Entity) else value.value for value in values}
        found[node] = tuple(sorted(ordered(values), key=lambda value: place.get(texts[value], len(place))))
    return found


def relation_beside(graph: KnowledgeGraph, hop: Sequence[Step], table: Sequence[tuple[str, str]]) -> str:
    """Return the relation that stands beside that of a hop: its prefix is another one; empty if the graph has none.

    Args:
        graph: The graph.
        hop: The hop.
        table: Pairs of prefixes, such as `schema.order` or `schema.degree`.
    """
    (step,) = hop if len(hop) == 1 else (Step(""),)
    iri = step.relation if step.direction == "out" else graph.tables.inverses.get(step.relation) or ""
    for prefix, target in table:
        relation = target + iri[len(prefix) :]
        if iri.startswith(prefix) and relation in graph.tables.relations:
            return relation
    return ""


def in_languages(schema: Schema, pairs: Pairs, hop: Sequence[Step]) -> tuple[Pairs, bool]:
    """Return names in the schema's languages, if a node has any, and whether these are all its names.

    Values of other hops than to names are returned as they are.
    """
    if len(hop) > 1 or hop[0].relation not in (*schema.label, *schema.alias):
        return pairs, True
    kept: dict[Entity, Sequence[Value]] = {}
    for node, values in pairs.items():
        wanted = tuple(value for value in values if isinstance(value, Literal) and value.language in schema.languages)
        kept[node] = wanted or values
    return kept, all(len(kept[node]) == len(values) for node, values in pairs.items())
