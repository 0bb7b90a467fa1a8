"""What a call found, and what the language model is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kgqa.llm.replies.action_lines import Call
from kgqa.methods.counselor.calls.hops import Hop
from kgqa.methods.counselor.calls.node_sets import NodeSet, Source, counting
from kgqa.methods.counselor.calls.records import Record, record_sources
from kgqa.model import Candidate, Entity, Named, Value


@dataclass(frozen=True, slots=True)
class Number:
    """A number that was counted: of the values of a node, or of the ends of a path."""

    number: int
    node: Named | None
    candidate: Candidate | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a call found.

    Attributes:
        values: The first 1,000 values; those beyond the shown ones may be named by their ids.
        nodes: The same values with the paths that lead to them.
        numbers: The numbers that `Degree` and `Count` found.
        total: Number of values; None if there are more than were read.
        of: The set from which a hop was followed, and the hop; None for other functions.
        pairs: What the hop leads to from each node of the set.
        records: The records through which the hop leads from a single node.
        combined: The paths, in words, of the sets that were combined; empty for other functions.
    """

    values: tuple[Named, ...] = ()
    nodes: NodeSet = field(default_factory=lambda: NodeSet(()))
    numbers: tuple[Number, ...] = ()
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

    def counting(self, number: Number) -> tuple[Candidate, ...]:
        """Return candidates that count to one of the numbers, the best first."""
        if number.node is None or self.of is None or not isinstance(number.node.value, Entity):
            return (number.candidate,) if number.candidate else ()
        return counting(self.of[0], number.node.value, number.node.name, self.of[1])

    @property
    def number(self) -> int | None:
        """The number, if there is exactly one."""
        return self.numbers[0].number if len(self.numbers) == 1 else None

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
