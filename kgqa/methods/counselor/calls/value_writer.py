"""Writes the values that a call found for a language model: names, ids and types, limited in number and length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.calls.hops import Hop
from kgqa.methods.counselor.calls.node_sets import NodeSet, ordered
from kgqa.methods.counselor.calls.observation_text import (
    LONGEST,
    LONGEST_ALONE,
    MAX_CHARS,
    list_text,
    pairs_text,
    value_text,
)
from kgqa.methods.counselor.calls.observations import Found
from kgqa.model import Entity, Literal, Named, Step, Value
from kgqa.schema import Schema
from kgqa.text.words import type_words

MAX_NAMED = 1000
"""Most values of a result that are named, if only by their ids."""
MAX_NODES = 1000
"""Most nodes of which something is looked up at once."""
MAX_TYPES = 1000
"""Most types that are read of a node."""


class ValueWriter:
    """Writes values of one graph.

    Args:
        graph: The graph of a question.
        shown: Most values in an observation.
        ids_only: Whether nodes are shown by their ids only, as published.
    """

    def __init__(self, graph: KnowledgeGraph, *, shown: int, ids_only: bool) -> None:
        self._graph = graph
        self.shown = shown
        self._ids_only = ids_only
        self._types: dict[Value, str] = {}  # IRIs

    def node(self, named: Named, *, typed: bool = True) -> str:
        """Return a node as text."""
        types = self._types_of([named]) if typed else {}
        return value_text(named, types.get(named.value, ""), ids_only=self._ids_only)

    def set_words(self, start: NodeSet) -> str:
        """Return a set as the subject of a sentence."""
        if len(start.values) != 1:
            return f"these {len(start.values)} nodes"
        return self.node(self._graph.named(start.values)[0], typed=False)

    def values(self, found: Found, note: str, nothing: str) -> tuple[Found, str, tuple[Named, ...]]:
        """Return what was found with the names of the first values, the text, and the values that the text names.

        Args:
            found: What was found.
            note: What stands before the values.
            nothing: What is said of the set from which a hop was followed if there are no values.
        """
        start = found.of[0].nodes if found.of else ()
        values: Sequence[Value] = found.nodes.values
        if not values:
            whose = self.set_words(found.of[0]) if found.of else "the set"
            return found, f"{note}nothing: {whose} {nothing}.", ()
        if len(start) > 1 and found.pairs:  # in the order in which they are shown
            values = list(dict.fromkeys(value for node in start for value in found.pairs.get(node, ())))
        every = self.named(values[: max(self.shown, MAX_NAMED)])
        named, found = every[: self.shown], replace(found, values=tuple(every))
        types = self._types_of(named, found.of[1] if found.of else ())
        if len(start) > 1 and found.pairs:
            names = {each.value: each for each in named}
            own: dict[Value, tuple[list[Named], int]] = {}
            for node in start[: self.shown]:
                reached = found.pairs.get(node, ())
                own[node] = [names[value] for value in reached if value in names], len(reached)
            nodes = self._graph.named(start[: self.shown])
            text = pairs_text(nodes, own, types, most=self.shown, ids_only=self._ids_only)
            head = f"{len(start)} nodes: "
            named = [*nodes, *named]
        else:
            longest = LONGEST_ALONE if len(named) == 1 else LONGEST
            texts = (
                value_text(each, types.get(each.value, ""), ids_only=self._ids_only, limit=longest) for each in named
            )
            text = list_text(texts, found.total)
            number = f"more than {len(values)}" if found.total is None else found.total
            head = "" if found.total == 1 else f"{number} values: "
        return found, f"{note}{head}{text}"[:MAX_CHARS], tuple(named)

    def named(self, values: Sequence[Value]) -> list[Named]:
        """Return values with their names; those beyond the shown ones without looking up names that are not known."""
        known, schema = self._graph.tables.labels, self._graph.schema
        found = self._graph.named(values[: self.shown])
        for value in values[self.shown :]:
            if isinstance(value, Entity):
                short = schema.short_id(value.iri)
                found.append(Named(value, short, known.get(value) or short))
            else:
                found.append(Named(value, "", value.value))
        return found

    def types_of(self, nodes: NodeSet) -> set[str]:
        """Return the types of the nodes of a set that are known without a query: none if some are not known."""
        found: set[str | None] = set()
        for source in nodes.sources:
            path = source.candidate.path
            found.add(self._graph.tables.target_type(path.steps[-1]) if path.steps else self._types.get(path.topic))
        return set() if None in found or "" in found else {each for each in found if each}

    def _types_of(self, named: Sequence[Named], hop: Hop = ()) -> dict[Value, str]:
        """Return the types of nodes in words: the type that the graph declares for a hop, else their first types."""
        schema, nodes = self._graph.schema, [each.value for each in named if isinstance(each.value, Entity)]
        declared = self._graph.tables.target_type(hop[-1]) if hop else None
        if self._ids_only or declared:
            return dict.fromkeys(nodes, type_words(declared, schema) if declared else "")
        new = [node for node in nodes if node not in self._types][:MAX_NODES]
        for predicate in schema.types if new and schema.wording == "label" else ():
            kinds = self._graph.paths.hop(new, (Step(predicate),), limit=MAX_TYPES)
            for node, own in kinds.items():
                first = next((kind for kind in ordered(own) if isinstance(kind, Entity)), None)
                self._types.setdefault(node, first.iri if first else "")
        for node in new:
            self._types.setdefault(node, "")
        return {node: type_words(type_, schema) if (type_ := self._types.get(node, "")) else "" for node in nodes}


def in_languages(
    schema: Schema, pairs: Mapping[Entity, Sequence[Value]], hop: Hop
) -> tuple[Mapping[Entity, Sequence[Value]], bool]:
    """Return names in the schema's languages, if a node has any, and whether these are all its names.

    Args:
        schema: The schema of the graph.
        pairs: The values of each node.
        hop: The hop that leads to them; values of other hops than to names are returned as they are.
    """
    if len(hop) > 1 or hop[0].relation not in (*schema.label, *schema.alias):
        return pairs, True
    kept: dict[Entity, Sequence[Value]] = {}
    for node, values in pairs.items():
        wanted = tuple(value for value in values if isinstance(value, Literal) and value.language in schema.languages)
        kept[node] = wanted or values
    return kept, all(len(kept[node]) == len(values) for node, values in pairs.items())
