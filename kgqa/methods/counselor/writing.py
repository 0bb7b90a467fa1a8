"""How values are shown in observations: on one line, without what a chat template or a terminal reads as its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.names import Hop
from kgqa.methods.counselor.observations import CallResult, MediatorRecord
from kgqa.methods.counselor.sets import NO_NODES, NodeSet, Pairs, ordered
from kgqa.model import Entity, Named, Step, Value
from kgqa.text.words import clean, type_words

LISTED_CHARS = 2600
"""Most characters of a list in an observation; what stands beside the list fits in the rest."""
LONGEST = 200
"""Longest text of a value that stands among others."""
BESIDE_RECORDS = 2000
"""Most characters of a list that records follow."""
LONGEST_ALONE = 2500
MAX_TYPES = 1000
"""Most types of a node that are read."""
MAX_FIELD_VALUES = 4
"""Most values of a field of a record that are shown."""
_CHAT_MARK = re.compile(
    r"<\|[^<>|]{0,60}\|>|<\||\|>|</?(?:s|think|start_of_turn|end_of_turn|tool_call|tool_response|eos|bos)>|"
    r"\[/?INST\]|<<?/?SYS>>?|[\uff1c]\uff5c|\uff5c[\uff1e]",
    re.IGNORECASE,
)


def safe(text: str, limit: int = LONGEST) -> str:
    """Return a text of the graph as one line without control characters and marks of chat templates."""
    line = clean(_CHAT_MARK.sub(" ", text[: 4 * limit]))
    while (again := clean(_CHAT_MARK.sub(" ", line))) != line:  # what is left may be a mark again
        line = again
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}\u2026"


def value_text(named: Named, type_: str = "", *, ids_only: bool = False, limit: int = LONGEST) -> str:
    """Return a value as `name (id, type)`; a literal as its text."""
    name = safe(named.name, limit)
    if not isinstance(named.value, Entity):
        return f"{name} {safe(named.unit)}" if named.unit else name
    ident = safe(named.id or named.value.iri)
    if ids_only:
        return ident
    more = ", ".join(part for part in (ident if ident != name else "", safe(type_, 60)) if part)
    return f"{name} ({more})" if more else name or ident


def list_text(texts: Iterable[str], total: int | None, *, separator: str = ", ", limit: int = LISTED_CHARS) -> str:
    """Return texts as one line of about `limit` characters at most, with the number of those that are left out.

    Args:
        texts: The texts.
        total: How many there are in all; None if there are more than are known.
        separator: What stands between them.
        limit: Most characters, unless the first text is longer.
    """
    shown: list[str] = []
    size = 0
    for text in texts:
        size += len(text) + len(separator)
        if size > limit and shown:
            break
        shown.append(text)
    left = "more" if total is None else f"{total - len(shown)} more" if total > len(shown) else ""
    return separator.join([*shown, *([f"and {left}"] if left else [])])


def shares(counts: Sequence[int], most: int) -> list[int]:
    """Return how many values of each node are shown: at least one of each, and further ones from the first node on."""
    found = [min(1, count) for count in counts]
    left = max(0, most - sum(found))
    for at, count in enumerate(counts):
        more = min(count - found[at], left)
        found[at], left = found[at] + more, left - more
    return found


def records_text(records: Sequence[MediatorRecord], hop: Hop, name: Callable[[Hop], str], limit: int) -> str:
    """Return what follows the values in an observation: `. Records: value (field: value, value); value (...)`.

    Args:
        records: The records; the text is empty without any.
        hop: The hop that leads through them.
        name: Returns the name of a hop.
        limit: Most characters of the list.
    """

    def listed(values: Sequence[Named]) -> str:
        # a date may stand in a graph twice, with different datatypes
        return ", ".join(list(dict.fromkeys(safe(each.name, 80) for each in values))[:MAX_FIELD_VALUES])

    steps = dict.fromkeys(step for each in records for step in each.fields)
    words = {step: safe(name((hop[0], step)).partition(": ")[2]) for step in steps}
    texts = []
    for record in records:
        fields = "; ".join(f"{words[step]}: {listed(values)}" for step, values in record.fields.items())
        texts.append(f"{listed(record.values)} ({fields or 'nothing else'})")
    return f". Records: {list_text(texts, len(texts), separator='; ', limit=limit)}" if texts else ""


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

    def values(self, found: CallResult, note: str, nothing: str) -> CallResult:
        """Return what was found with its text, and the values that the text names.

        Args:
            found: What was found.
            note: What stands before the values.
            nothing: What is said of the set from which a hop was followed if there are no values.
        """
        start, hop = found.of or (NO_NODES, ())
        values = found.every
        if not values:
            whose = self.set_words(start) if found.of else "the set"
            return replace(found, text=f"{note}nothing: {whose} {nothing}.")
        named = self._graph.named(values[: self.shown])
        if len(start.nodes) > 1 and found.pairs:
            nodes, text = self._pairs(start, hop, found.pairs, named)
            head = f"{len(start.nodes)} nodes: "
        else:
            self.read_types(named, hop)
            texts, nodes = self.texts(named, limit=LONGEST_ALONE if len(named) == 1 else LONGEST), []
            text = list_text(texts, found.total, limit=BESIDE_RECORDS if found.records else LISTED_CHARS)
            number = f"more than {len(values)}" if found.total is None else found.total
            head = "" if found.total == 1 else f"{number} values: "
        return replace(found, text=f"{note}{head}{text}", values=tuple(named), beside=tuple(nodes))

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
