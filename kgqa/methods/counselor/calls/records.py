"""Records: the mediators through which a hop leads from a node, and what else they say, such as dates or roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.counselor.calls.hops import Hop
from kgqa.methods.counselor.calls.node_sets import Source, ordered, start_of
from kgqa.methods.counselor.calls.observation_text import safe
from kgqa.model import Candidate, Entity, Named, RelationPath, Step, Value
from kgqa.model.conditions import Condition
from kgqa.text.words import local_words

MAX_RECORDS = 30
"""Most records of a node that are read."""
MAX_FIELD_VALUES = 4
"""Most values of a field that are shown."""


@dataclass(frozen=True, slots=True)
class Record:
    """A mediator: the values to which the hop leads, and the values of its other relations."""

    values: tuple[Named, ...]
    fields: Mapping[Step, tuple[Named, ...]]


def read_records(graph: KnowledgeGraph, node: Entity, hop: Hop) -> tuple[Record, ...]:
    """Return the records through which a hop leads from a node.

    Returns:
        Nothing if the hop leads through no mediator, through a single one, or through more than `MAX_RECORDS`, or if
        they say nothing else.

    Raises:
        StoreError: The graph failed.
    """
    if len(hop) != 2:
        return ()
    walks = graph.paths.walks([Candidate(RelationPath(node, tuple(hop)))], limit=10 * MAX_RECORDS)[0]
    ends: dict[Entity, dict[Value, None]] = {}
    for _, mediator, end in walks:
        if isinstance(mediator, Entity):
            ends.setdefault(mediator, {})[end] = None
    if not 1 < len(ends) <= MAX_RECORDS:
        return ()
    fields: dict[Entity, dict[Step, list[Value]]] = {each: {} for each in ends}
    known = {hop[1], hop[0].reversed()}
    for mediator, step, value in graph.paths.edges(ends):
        inverse = graph.tables.inverses.get(step.relation)
        turned = {Step(inverse, "in")} if inverse else set()
        if graph.tables.is_noise(step.relation) or graph.tables.leads_to_mediator(step) or ({step} | turned) & known:
            continue
        if value != node and value not in ends[mediator]:
            fields[mediator].setdefault(step, []).append(value)
    if not any(fields.values()):
        return ()
    values = [*ends.values(), *(own for each in fields.values() for own in each.values())]
    names = {each.value: each for each in graph.named(dict.fromkeys(value for own in values for value in own))}

    def named(some: Iterable[Value]) -> tuple[Named, ...]:
        return tuple(names[value] for value in sorted(some, key=str))

    return tuple(
        Record(named(own), {step: named(each) for step, each in sorted(fields[at].items(), key=str)})
        for at, own in sorted(ends.items(), key=lambda each: str(each[0]))
    )


def record_sources(records: Sequence[Record], start: Source, hop: Hop) -> tuple[Source, ...]:
    """Return the paths to the fields of the records of each value: with a condition on the record that names the value.

    Args:
        records: The records.
        start: The path to the node from which the hop leads; the node is its only value.
        hop: The hop that leads through the records.
    """
    base, exact = start_of(start)
    fields: dict[tuple[Entity, Step], dict[Value, None]] = {}
    for record in records:
        for end in (each.value for each in record.values if isinstance(each.value, Entity)):
            for step, values in record.fields.items():
                fields.setdefault((end, step), {}).update(dict.fromkeys(each.value for each in values))
    at = len(base.path) + 1
    sources = []
    for (node, step), found in fields.items():
        condition = Condition(at, (hop[1],), node)
        path = base.path.then(hop[0], step)
        words = f"{base.words} \u2192 {local_words(step.relation)}"
        candidate = replace(base, path=path, words=words, hops=(), conditions=(*base.conditions, condition))
        sources.append(Source(candidate, ordered(found), frozenset(found), exact))
    return tuple(sources)


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
