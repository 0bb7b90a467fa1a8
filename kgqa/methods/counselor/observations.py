"""What a call found, records included, and the values that the language model has seen by then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.action_lines import Call
from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.sets import NodeSet, Source, ordered, start_of
from kgqa.model import Candidate, Entity, Named, RelationPath, Step, Value
from kgqa.model.conditions import Condition
from kgqa.text.words import local_words

MAX_RECORDS = 30
"""Most records of a node that are read."""


@dataclass(frozen=True, slots=True)
class Record:
    """A mediator: the values to which the hop leads, and the values of its other relations."""

    values: tuple[Named, ...]
    fields: Mapping[Step, tuple[Named, ...]]


@dataclass(frozen=True, slots=True)
class Number:
    """A number that was counted: of the values of a node, or of the ends of a path.

    `stated`: the step to the value by which the graph states it.
    """

    number: int
    node: Named | None
    candidate: Candidate | None = None
    hop: Hop = ()
    stated: Step | None = None

    @property
    def words(self) -> str:
        """What was counted, in words."""
        relations = " ".join(local_words(step.relation) for step in self.hop)
        return f"{self.node.name if self.node else ''} {relations} {self.candidate.words if self.candidate else ''}"


@dataclass(frozen=True, slots=True)
class Found:
    """What a call found.

    Attributes:
        values: The first 1,000 values; those beyond the shown ones may be named by their ids.
        nodes: The same values with the paths that lead to them.
        numbers: The numbers that `Degree` and `Count` found.
        listed: The numbers that stand beside relations in a list.
        total: Number of values; None if there are more than were read.
        of: The set from which a hop was followed, and the hop; None for other functions.
        pairs: What the hop leads to from each node of the set.
        records: The records through which the hop leads from a single node.
        combined: The paths, in words, of the sets that were combined; empty for other functions.
    """

    values: tuple[Named, ...] = ()
    nodes: NodeSet = field(default_factory=lambda: NodeSet(()))
    numbers: tuple[Number, ...] = ()
    listed: tuple[Number, ...] = ()
    total: int | None = 0
    of: tuple[NodeSet, Hop] | None = None
    pairs: Mapping[Entity, Sequence[Value]] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    combined: tuple[str, ...] = ()

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The paths along which the values, or the ends that were counted, were found."""
        counted = (each.candidate for each in self.numbers if each.candidate)
        return (*(source.candidate for source in self.nodes.sources), *counted)

    @property
    def approximate(self) -> bool:
        """Whether more values belong to the result than were found."""
        return self.nodes.approximate or self.total is None


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a call, as data and as text.

    Attributes:
        call: The call.
        found: What was found; None if the call could not be run.
        text: What the language model is shown.
        problem: Why the call could not be run; empty if it could.
        shown: The values that the text names; those of which it shows features or degrees, too.
    """

    call: Call
    found: Found | None
    text: str
    problem: str = ""
    shown: tuple[Named, ...] = ()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The paths to the values, to those of which features or degrees are shown, and to the fields of records."""
        if self.found is None:
            return ()
        of = self.found.of
        beside = record_sources(self.found.records, of[0].sources[0], of[1]) if of and self.found.records else ()
        return (*self.found.nodes.sources, *(of[0].sources if of else ()), *beside)


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
