"""The text of an observation: what a language model is shown of the values that a call found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.observations import Found, Record
from kgqa.methods.counselor.sets import NodeSet, Pairs, ordered
from kgqa.model import Entity, Named, Step, Value
from kgqa.text.words import clean, type_words

Types = Mapping[Value, str]
"""The types of nodes in words."""
MAX_NAMED = 1000
"""Most values of a result that are named, if only by their ids."""
MAX_NODES = 1000
"""Most nodes of which something is looked up at once."""
MAX_TYPES = 1000
"""Most types that are read of a node."""
MAX_CHARS = 3000
"""Most characters of an observation."""
LISTED_CHARS = 2600
"""Most characters of a list in it; what stands beside the list fits in the rest."""
BESIDE_RECORDS = 2000
"""The same if records follow the list."""
LONGEST = 200
"""Longest text of a value that stands among others."""
LONGEST_ALONE = 2500
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


def records_text(records: Sequence[Record], hop: Hop, name: Callable[[Hop], str], limit: int) -> str:
    """Return what follows the values in an observation: `. Records: value (field: value, value); value (...)`.

    Args:
        records: The records; the text is empty without any.
        hop: The hop that leads through them.
        name: Returns the name of a hop.
        limit: Most characters of the list.
    """
    if not records:
        return ""
    steps = dict.fromkeys(step for each in records for step in each.fields)
    words = {step: safe(name((hop[0], step)).partition(": ")[2]) for step in steps}
    texts = []
    for record in records:
        fields = [f"{words[step]}: {_listed(values)}" for step, values in record.fields.items()]
        texts.append(f"{_listed(record.values)} ({'; '.join(fields) or 'nothing else'})")
    return f". Records: {list_text(texts, len(texts), separator='; ', limit=limit)}"


def _listed(values: Sequence[Named]) -> str:
    # a date may stand in a graph twice, with different datatypes
    return ", ".join(list(dict.fromkeys(safe(each.name, 80) for each in values))[:MAX_FIELD_VALUES])


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
        self.words: dict[Value, str] = {}
        """The types with which nodes were shown."""
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
            nodes, text = self._pairs(found.of, found.pairs, named)
            return found, f"{note}{len(start)} nodes: {text}", (*nodes, *named)
        longest = LONGEST_ALONE if len(named) == 1 else LONGEST
        texts = (self._text(each, types, longest) for each in named)
        text = list_text(texts, found.total, limit=BESIDE_RECORDS if found.records else LISTED_CHARS)
        number = f"more than {len(values)}" if found.total is None else found.total
        head = "" if found.total == 1 else f"{number} values: "
        return found, f"{note}{head}{text}", tuple(named)

    def _pairs(self, of: tuple[NodeSet, Hop] | None, pairs: Pairs, named: list[Named]) -> tuple[list[Named], str]:
        """Return what each of several nodes has, as `node: value, value; node: value`; names are added to `named`."""
        start, hop = of or (NodeSet(()), ())
        having = [node for node in start.nodes if pairs.get(node)]
        shown = having[: self.shown]
        counts = shares([len(pairs[node]) for node in shown], self.shown)
        own = {node: pairs[node][:count] for node, count in zip(shown, counts)}
        known = {each.value for each in named}
        named += self._graph.named(
            dict.fromkeys(each for values in own.values() for each in values if each not in known)
        )
        types = self._types_of(named, hop)
        names = {each.value: each for each in named}
        nodes = self._graph.named(shown)
        for limit in (LONGEST, LONGEST // 4):
            lines = [
                f"{value_text(node, ids_only=self._ids_only, limit=limit)}: {list_text(texts, len(pairs[at]))}"
                for node, at in zip(nodes, shown)
                for texts in [[self._text(names[each], types, limit) for each in own[at]]]
            ]
            text = list_text(lines, len(having), separator="; ")
            if len("; ".join(lines)) <= LISTED_CHARS:
                break
        without = len(start.nodes) - len(having)
        return nodes, f"{text}; none of {without} others" if without and having else text

    def _text(self, named: Named, types: Types, limit: int) -> str:
        return value_text(named, types.get(named.value, ""), ids_only=self._ids_only, limit=limit)

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

    def _types_of(self, named: Sequence[Named], hop: Hop = ()) -> Types:
        """Return the types of nodes in words: the type that the graph declares for a hop, else their first types."""
        schema, nodes = self._graph.schema, [each.value for each in named if isinstance(each.value, Entity)]
        found: dict[Value, str]
        declared = self._graph.tables.target_type(hop[-1]) if hop else None
        if self._ids_only or declared:
            found = dict.fromkeys(nodes, type_words(declared, schema) if declared else "")
            self.words |= found
            return found
        new = [node for node in nodes if node not in self._types][:MAX_NODES]
        for predicate in schema.types if new and schema.wording == "label" else ():
            kinds = self._graph.paths.hop(new, (Step(predicate),), limit=MAX_TYPES)
            for node, own in kinds.items():
                first = next((kind for kind in ordered(own) if isinstance(kind, Entity)), None)
                self._types.setdefault(node, first.iri if first else "")
        self._types.update(dict.fromkeys((node for node in new if node not in self._types), ""))
        found = {node: type_words(type_, schema) if (type_ := self._types.get(node, "")) else "" for node in nodes}
        self.words |= found
        return found
