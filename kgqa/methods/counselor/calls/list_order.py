"""Puts the values that a hop leads to into the order of the list from which they were converted, if the graph has it.

A graph has it if its schema names relations to lists (`relations.order`), as GRBench's graphs do that were converted
with `--keep-order`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.calls.node_sets import ordered
from kgqa.model import Entity, Literal, Step, Value
from kgqa.storage.loading import parse_json

Pairs = dict[Entity, tuple[Value, ...]]


def in_list_order(graph: KnowledgeGraph, pairs: Mapping[Entity, Sequence[Value]], hop: Sequence[Step]) -> Pairs:
    """Return the values of each node in the order of its list, and others behind them, in an order of their own.

    Args:
        pairs: the values of each node.
        hop: the hop that leads to them.
    """
    lists = _lists(graph, pairs, hop)
    found = {}
    for node, values in pairs.items():
        place = {text: number for number, text in reversed(list(enumerate(lists.get(node, ()))))}
        last = len(place)
        found[node] = tuple(sorted(ordered(values), key=lambda value: place.get(_text(value), last)))
    return found


def _lists(
    graph: KnowledgeGraph, nodes: Mapping[Entity, Sequence[Value]], hop: Sequence[Step]
) -> dict[Entity, list[str]]:
    relation = _order_relation(graph, hop)
    several = [node for node, values in nodes.items() if len(values) > 1]
    if not relation or not several:
        return {}
    found = {}
    for node, values in graph.paths.hop(several, (Step(relation),)).items():
        try:
            listed = parse_json(values[0].value) if isinstance(values[0], Literal) else None
        except ValueError:
            continue
        if isinstance(listed, list):
            found[node] = [each for each in listed if isinstance(each, str)]
    return found


def _order_relation(graph: KnowledgeGraph, hop: Sequence[Step]) -> str:
    """Return the relation from a node to its list; empty if the graph has none."""
    if not graph.schema.order or len(hop) != 1:
        return ""
    (step,) = hop
    iri = step.relation if step.direction == "out" else graph.tables.inverses.get(step.relation) or ""
    for prefix, target in graph.schema.order:
        if iri.startswith(prefix) and (relation := target + iri[len(prefix) :]) in graph.tables.relations:
            return relation
    return ""


def _text(value: Value) -> str:
    return value.iri if isinstance(value, Entity) else value.value
