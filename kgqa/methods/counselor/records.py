"""Records: the mediators through which a hop leads from a node, with what else they say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.safe_text import list_text, safe
from kgqa.methods.counselor.sets import NodeSet, Source, ordered, start_of
from kgqa.model import Candidate, Entity, Named, RelationPath, Step, Value
from kgqa.model.conditions import Condition
from kgqa.search.conditions.rows import passed_steps
from kgqa.text.words import local_words

MAX_RECORDS = 30
"""Most records of a node that are read."""
MAX_FIELD_VALUES = 4
"""Most values of a field of a record that are shown."""


@dataclass(frozen=True, slots=True)
class Record:
    """A mediator: the values to which the hop leads, and the values of its other relations."""

    values: tuple[Named, ...]
    fields: dict[Step, tuple[Named, ...]]


def read_records(graph: KnowledgeGraph, node: Entity, hop: Hop) -> tuple[Record, ...]:
    """Return the records through which a hop leads from a node.

    Returns:
        Nothing if the hop leads through no mediator, through a single one, or through more than `MAX_RECORDS`, or if
        they say nothing else.

    Raises:
        StoreError: The graph failed.
    """
    path = RelationPath(node, hop)
    walks = graph.paths.walks([Candidate(path)], limit=10 * MAX_RECORDS)[0] if len(hop) == 2 else ()
    ends: dict[Entity, dict[Value, None]] = defaultdict(dict)
    for _, mediator, end in walks:
        ends[mediator][end] = None
    if not 1 < len(ends) <= MAX_RECORDS:
        return ()
    fields: dict[Entity, dict[Step, list[Value]]] = {each: defaultdict(list) for each in ends}
    tables, passed = graph.tables, passed_steps(graph, path, 1)
    for mediator, step, value in graph.paths.edges(ends):
        is_passed = step in passed or value == node or value in ends[mediator]
        if not (is_passed or tables.is_noise(step.relation) or tables.leads_to_mediator(step)):
            fields[mediator][step].append(value)
    values = dict.fromkeys(chain(*ends.values(), *(own for each in fields.values() for own in each.values())))
    names = {each.value: each for each in graph.named(values)} if any(fields.values()) else {}

    def named(some: Iterable[Value]) -> tuple[Named, ...]:
        return tuple(names[value] for value in sorted(some, key=str))

    return tuple(
        Record(named(ends[at]), {step: named(own) for step, own in sorted(fields[at].items(), key=str)})
        for at in (sorted(ends, key=str) if names else ())
    )


def record_sources(records: Sequence[Record], start: NodeSet, hop: Hop) -> tuple[Source, ...]:
    """Return the paths to the fields of the records of each value: with a condition on the record that names the value.

    Args:
        records: The records.
        start: The node from which the hop leads.
        hop: The hop that leads through the records.
    """
    fields: dict[tuple[Entity, Step], set[Value]] = defaultdict(set)
    for record in records:
        for end, (step, values) in product(record.values, record.fields.items()):
            if isinstance(end.value, Entity):
                fields[end.value, step] |= {each.value for each in values}
    sources = []
    for (node, step), found in fields.items():
        base, exact = start_of(start.sources[0])
        conditions = (*base.conditions, Condition(len(base.path) + 1, (hop[1],), node))
        words = f"{base.words} \u2192 {local_words(step.relation)}"
        path = base.path.then(hop[0], step)
        candidate = replace(base, path=path, words=words, hops=(), conditions=conditions)
        sources.append(Source(candidate, ordered(found), frozenset(found), exact))
    return tuple(sources)


def records_text(records: Sequence[Record], hop: Hop, name: Callable[[Hop], str], limit: int) -> str:
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
