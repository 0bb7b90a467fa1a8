"""The text of an observation: what a language model is shown of the values that a call found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.observations import Found, Record
from kgqa.methods.counselor.sets import NodeSet, ordered
from kgqa.model import Entity, Named, Step, Value
from kgqa.text.words import clean, type_words

MAX_NAMED = 1000
"""Most values of a result that are named, if only by their ids."""
MAX_NODES = 1000
"""Most nodes of which something is looked up at once."""
MAX_TYPES = 1000
"""Most types that are read of a node."""
MAX_CHARS = 3000
"""Most characters of an observation."""
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


def list_text(texts: Iterable[str], total: int | None, *, separator: str = ", ") -> str:
    """Return texts as one line of at most `MAX_CHARS` characters, with the number of those that are left out.

    Args:
        total: How many there are in all; None if there are more than are known.
    """
    shown: list[str] = []
    size = 0
    for text in texts:
        size += len(text) + len(separator)
        if size > MAX_CHARS and shown:
            break
        shown.append(text)
    if total is None:
        return f"{separator.join(shown)}{separator}and more"
    rest = f"{separator}and {total - len(shown)} more" if total > len(shown) else ""
    return separator.join(shown) + rest


def pairs_text(
    nodes: Sequence[Named],
    values: Mapping[Value, tuple[Sequence[Named], int]],
    types: Mapping[Value, str],
    *,
    most: int,
    ids_only: bool,
) -> str:
    """Return what each of several nodes has, as `node: value, value; node: value`.

    Args:
        nodes: The nodes.
        values: The first values of each node, and how many it has.
        types: The types of values in words.
        most: Most values that are shown.
        ids_only: Whether nodes are shown by their ids only.
    """
    lines, left, cut = [], most, False
    for node in nodes:
        own, total = values.get(node.value, ((), 0))
        if not total:
            continue
        if left <= 0 or not own:
            cut = True
            break
        shown = [value_text(each, types.get(each.value, ""), ids_only=ids_only) for each in own[:left]]
        left -= len(shown)
        lines.append(f"{value_text(node, ids_only=ids_only)}: {list_text(shown, total)}")
    empty = sum(not values.get(node.value, ((), 0))[1] for node in nodes)
    text = list_text(lines, len(lines), separator="; ")
    parts = [text, *(["and more"] if cut else []), *([f"none of {empty} others"] if empty and lines else [])]
    return "; ".join(parts)


def records_text(records: Sequence[Record], hop: Hop, name: Callable[[Hop], str]) -> str:
    """Return what follows the values in an observation: `. Records: value (field: value, value); value (...)`.

    Args:
        records: The records; the text is empty without any.
        hop: The hop that leads through them.
        name: Returns the name of a hop.
    """
    if not records:
        return ""
    steps = dict.fromkeys(step for each in records for step in each.fields)
    words = {step: safe(name((hop[0], step)).partition(": ")[2]) for step in steps}
    texts = []
    for record in records:
        fields = [f"{words[step]}: {_listed(values)}" for step, values in record.fields.items()]
        texts.append(f"{_listed(record.values)} ({'; '.join(fields) or 'nothing else'})")
    return f". Records: {'; '.join(texts)}"


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
