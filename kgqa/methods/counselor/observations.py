"""What a call found, and what the language model is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kgqa.llm.replies.action_lines import Call
from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.records import Record, record_sources
from kgqa.methods.counselor.sets import NodeSet, Source
from kgqa.model import Candidate, Entity, Named, Value


@dataclass(frozen=True, slots=True)
class Number:
    """A number that was counted.

    Attributes:
        number: The number.
        node: The node whose values were counted; None for the ends of a path.
        words: What was counted, in words.
        candidates: The paths whose queries may return the number, best first.
    """

    number: int
    node: Named | None
    words: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a call found.

    Attributes:
        nodes: The values, with the paths that lead to them.
        values: The values that are shown, with their names.
        numbers: The numbers that `Degree` and `Count` found.
        listed: The numbers that stand beside relations in a list.
        total: Number of values; None if there are more than were read.
        of: The set from which a hop was followed, and the hop; None for other functions.
        pairs: What the hop leads to from each node of the set.
        records: The records through which the hop leads from a single node.
        combined: The paths, in words, of the sets that were combined; empty for other functions.
    """

    nodes: NodeSet = field(default_factory=lambda: NodeSet(()))
    values: tuple[Named, ...] = ()
    numbers: tuple[Number, ...] = ()
    listed: tuple[Number, ...] = ()
    total: int | None = 0
    of: tuple[NodeSet, Hop] | None = None
    pairs: Mapping[Entity, Sequence[Value]] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
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
        if self.found is None or self.found.of is None:
            return self.found.nodes.sources if self.found else ()
        start, hop = self.found.of
        return (*self.found.nodes.sources, *start.sources, *record_sources(self.found.records, start, hop))
