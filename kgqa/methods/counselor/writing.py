"""How values are shown in observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.observations import Found
from kgqa.methods.counselor.safe_text import LISTED_CHARS, LONGEST, list_text, value_text
from kgqa.methods.counselor.sets import NodeSet, Pairs, ordered
from kgqa.model import Entity, Named, Step, Value
from kgqa.text.words import type_words

BESIDE_RECORDS = 2000
"""Most characters of a list that records follow."""
LONGEST_ALONE = 2500
MAX_TYPES = 1000
"""Most types of a node that are read."""


def shares(counts: Sequence[int], most: int) -> list[int]:
    """Return how many values of each node are shown: at least one of each, and further ones from the first node on."""
    found = [min(1, count) for count in counts]
    left = max(0, most - sum(found))
    for at, count in enumerate(counts):
        more = min(count - found[at], left)
        found[at], left = found[at] + more, left - more
    return found


class ValueWriter:
    """Writes values of one graph.

    Args:
        graph: The graph of a question.
        shown: Most values in an observation.
        ids_only: Whether nodes are shown by their ids only, as published.

    Attributes:
        types: The types in words with which nodes were shown.
    """

    def __init__(self, graph: KnowledgeGraph, *, shown: int, ids_only: bool) -> None:
        self._graph = graph
        self.shown = shown
        self._ids_only = ids_only
        self.types: dict[Value, str] = {}

    def texts(self, named: Sequence[Named], *, typed: bool = True, limit: int = LONGEST) -> list[str]:
        """Return nodes and literals as texts."""
        types = self.types if typed else {}
        return [value_text(each, types.get(each.value, ""), ids_only=self._ids_only, limit=limit) for each in named]

    def set_words(self, start: NodeSet) -> str:
        """Return a set as the subject of a sentence."""
        several = f"these {len(start.values)} nodes"
        return several if len(start.values) != 1 else self.texts(self._graph.named(start.values), typed=False)[0]

    def values(self, found: Found, note: str, nothing: str) -> tuple[Found, str, tuple[Named, ...]]:
        """Return what was found with the names of the first values, the text, and the values that the text names.

        Args:
            found: What was found.
            note: What stands before the values.
            nothing: What is said of the set from which a hop was followed if there are no values.
        """
        start, hop = found.of or (NodeSet(()), ())
        values = found.every
        if not values:
            return found, f"{note}nothing: {self.set_words(start) if found.of else 'the set'} {nothing}.", ()
        named = self._graph.named(values[: self.shown])
        found = replace(found, values=tuple(named))
        if len(start.nodes) > 1 and found.pairs:
            nodes, text = self._pairs(start, hop, found.pairs, named)
            return found, f"{note}{len(start.nodes)} nodes: {text}", (*nodes, *named)
        self.read_types(named, hop)
        texts = self.texts(named, limit=LONGEST_ALONE if len(named) == 1 else LONGEST)
        text = list_text(texts, found.total, limit=BESIDE_RECORDS if found.records else LISTED_CHARS)
        number = f"more than {len(values)}" if found.total is None else found.total
        head = "" if found.total == 1 else f"{number} values: "
        return found, f"{note}{head}{text}", tuple(named)

    def _pairs(self, start: NodeSet, hop: Hop, pairs: Pairs, named: list[Named]) -> tuple[list[Named], str]:
        """Return what each of several nodes has, as `node: value, value; node: value`; names are added to `named`."""
        having = [node for node in start.nodes if pairs.get(node)]
        shown = having[: self.shown]
        own = [pairs[at][:count] for at, count in zip(shown, shares([len(pairs[at]) for at in shown], self.shown))]
        known = {each.value for each in named}
        named += self._graph.named(dict.fromkeys(each for values in own for each in values if each not in known))
        self.read_types(named, hop)
        names, nodes = {each.value: each for each in named}, self._graph.named(shown)
        for limit in (LONGEST, LONGEST // 4):
            heads = self.texts(nodes, typed=False, limit=limit)
            texts = (self.texts([names[each] for each in values], limit=limit) for values in own)
            lines = [f"{head}: {list_text(each, len(pairs[at]))}" for head, each, at in zip(heads, texts, shown)]
            if len("; ".join(lines)) <= LISTED_CHARS:
                break
        without = len(start.nodes) - len(having)
        text = list_text(lines, len(having), separator="; ")
        return nodes, f"{text}; none of {without} others" if without and having else text

    def read_types(self, named: Iterable[Named], hop: Hop = ()) -> None:
        """Read the types of nodes in words: the type that the graph declares for a hop, else their first types."""
        schema, nodes = self._graph.schema, [each.value for each in named if isinstance(each.value, Entity)]
        declared = self._graph.tables.target_type(hop[-1]) if hop else None
        types: dict[Value, str] = dict.fromkeys(nodes, type_words(declared, schema) if declared else "")
        for predicate in () if self._ids_only or declared or schema.wording != "label" else reversed(schema.types):
            for node, kinds in self._graph.paths.hop(nodes, (Step(predicate),), limit=MAX_TYPES).items():
                first = next((each for each in ordered(kinds) if isinstance(each, Entity)), None)
                types[node] = type_words(first.iri, schema) if first else types[node]
        self.types |= types
