"""What a call found, records included, and what the language model is shown of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.action_lines import Call
from kgqa.methods.counselor.names import Hop
from kgqa.methods.counselor.sets import NO_NODES, NodeSet, SetPath, ordered, start_of
from kgqa.model import Candidate, Entity, Named, RelationPath, Step, Value
from kgqa.model.conditions import Condition
from kgqa.search.conditions.rows import passed_steps
from kgqa.text.words import local_words

MAX_RECORDS = 30
"""Most records of a node that are read."""


@dataclass(frozen=True, slots=True)
class MediatorRecord:
    """A mediator through which a hop leads: the values at its end, and the values of its other relations."""

    values: tuple[Named, ...]
    fields: dict[Step, tuple[Named, ...]]


@dataclass(frozen=True, slots=True)
class CountedNumber:
    """A number that was counted.

    Attributes:
        number: The number.
        node: The node whose values were counted; None for the ends of a path.
        candidates: The paths whose queries may return the number, best first.
    """

    number: int
    node: Named | None
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call found.

    Attributes:
        nodes: The values, with the paths that lead to them.
        text: What was found, in words.
        values: The values that are shown, with their names.
        beside: Further values that the text names: those of which it shows features or degrees, and fields of records.
        numbers: The numbers that `Degree` and `Count` found.
        listed: The numbers that stand beside relations in a list.
        total: Number of values; None if there are more than were read.
        of: The set from which a hop was followed, and the hop; None for other functions.
        pairs: What the hop leads to from each node of the set.
        records: The records through which the hop leads from a single node.
        combined: The paths, in words, of the sets that were combined; empty for other functions.
    """

    nodes: NodeSet = NO_NODES
    text: str = ""
    values: tuple[Named, ...] = ()
    beside: tuple[Named, ...] = ()
    numbers: tuple[CountedNumber, ...] = ()
    listed: tuple[CountedNumber, ...] = ()
    total: int | None = 0
    of: tuple[NodeSet, Hop] | None = None
    pairs: Mapping[Entity, Sequence[Value]] = field(default_factory=dict)
    records: tuple[MediatorRecord, ...] = ()
    combined: tuple[str, ...] = ()

    @property
    def every(self) -> Sequence[Value]:
        """All values, in the order in which they are shown."""
        start = self.of[0].nodes if self.of and self.pairs else ()
        in_turn = dict.fromkeys(value for node in start for value in self.pairs.get(node, ()))
        return tuple(in_turn) if len(start) > 1 else self.nodes.values

    @property
    def count(self) -> int:
        """The number of values, or of those that were read."""
        return len(self.nodes.values) if self.total is None else self.total

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths in words along which the values, or the ends that were counted, were found."""
        counted = (each for number in self.numbers if number.node is None for each in number.candidates)
        candidates = (*(source.candidate for source in self.nodes.sources), *counted)
        return tuple(dict.fromkeys(self.combined or (each.words for each in candidates)))

    @property
    def approximate(self) -> bool:
        """Whether more values belong to the result than were found."""
        return self.nodes.approximate or self.total is None

    @property
    def shown(self) -> tuple[Named, ...]:
        """All values that the text names."""
        return (*self.beside, *self.values)

    @property
    def sources(self) -> tuple[SetPath, ...]:
        """The paths to the values, to those of which features or degrees are shown, and to the fields of records."""
        start, hop = self.of or (NO_NODES, ())
        return (*self.nodes.sources, *start.sources, *record_sources(self.records, start, hop))


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """The result of a call.

    Attributes:
        call: The call.
        found: What was found.
        text: What the language model is shown.
        problem: Why the call could not be run; empty if it could.
    """

    call: Call
    found: CallResult
    text: str
    problem: str = ""


def read_records(graph: KnowledgeGraph, node: Entity, hop: Hop) -> tuple[MediatorRecord, ...]:
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
        MediatorRecord(named(ends[at]), {step: named(own) for step, own in sorted(fields[at].items(), key=str)})
        for at in (sorted(ends, key=str) if names else ())
    )


def record_sources(records: Sequence[MediatorRecord], start: NodeSet, hop: Hop) -> tuple[SetPath, ...]:
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
        sources.append(SetPath(candidate, ordered(found), frozenset(found), exact))
    return tuple(sources)
