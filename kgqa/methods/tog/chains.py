"""What both searches of Think-on-Graph share: chains of nodes, and the prompts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import StoreTimeout
from kgqa.llm.client import Stage
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.reply import Reply
from kgqa.methods.resources import Resources
from kgqa.model import Candidate, Entity, Literal, Question, RelationPath, Step, Value
from kgqa.search.tolerance import without_failures
from kgqa.text.words import hop_words
from kgqa.trace.trace import Trace

LISTED = 1000
"""Most neighbours that are fetched from the graph."""
Scored = tuple[tuple[str, float], ...]
"""Names with scores, best first."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of nodes along a path.

    Attributes:
        path: The path, which starts at a topic.
        nodes: The nodes after the topic, one per step.
        score: The score of the last hop.
    """

    path: RelationPath
    nodes: tuple[Value, ...] = ()
    score: float = 1.0

    @property
    def end(self) -> Value:
        """The last node."""
        return self.nodes[-1] if self.nodes else self.path.topic

    def from_end(self) -> RelationPath:
        """Return the empty path that starts at the last node."""
        assert isinstance(self.end, Entity)
        return RelationPath(self.end)


class ChainSearch(ABC):
    """A search for one question along chains; the two searches say how a hop goes, and how replies are read.

    Attributes:
        prompts: The beginning of the names of the prompts.
        chains: The chains kept in all hops so far, whose triples the model sees and whose nodes may be answers.
    """

    prompts = "tog/"

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        self._question = question.text
        self._resources, self._settings = resources, resources.settings
        self._graph = resources.graph.for_question(trace)
        self._trace = trace
        self._width = self._settings.explore.beam
        self.chains: list[Chain] = []

    @abstractmethod
    def hop(self, frontier: Sequence[Chain]) -> list[Chain]:
        """Extend the chains by one hop, and return those from which the search continues."""

    @abstractmethod
    def read_relations(self, text: str, names: list[str]) -> Reading[Scored]:
        """Read the relations that a reply names with their scores, best first."""

    @abstractmethod
    def read_sufficient(self, text: str) -> Reading[tuple[str, ...]]:
        """Read whether the triples are enough, and if so the answers; () if they are not enough."""

    @abstractmethod
    def read_answer(self, text: str) -> Reading[tuple[str, ...]]:
        """Read the answers."""

    @abstractmethod
    def step_name(self, step: Step) -> str:
        """Return the name of a relation in prompts."""

    @abstractmethod
    def triples(self) -> list[str]:
        """Return what the search has found, as lines of a prompt."""

    def name_steps(self, steps: Iterable[Step]) -> dict[str, Step]:
        """Return the steps by their names; the first step with a name hides the others."""
        named: dict[str, Step] = {}
        for step in steps:
            named.setdefault(self.step_name(step), step)
        return named

    def whole_paths(self, wanted: Collection[Value]) -> Iterable[Candidate]:
        """Return paths, preferred to single chains, that lead to wanted nodes and to no others."""
        return ()

    def sufficient(self) -> tuple[str, ...] | None:
        """Ask the model whether the triples are enough to answer; return the model's answers, or None if not."""
        texts = self.ask("sufficient", "decide", [{"triples": self.triples()}], [self.read_sufficient])
        return texts[0] or None

    def final_answer(self) -> tuple[str, ...]:
        """Ask the model for the answers after the search has ended."""
        return self.ask("answer", "decide", [{"triples": self.triples()}], [self.read_answer])[0] or ()

    def relations(self, frontier: Sequence[Chain]) -> list[tuple[Chain, Step, float]]:
        """Let the model score the relations of each end; return the best of each, with the chain."""
        frontier = [chain for chain in frontier if isinstance(chain.end, Entity)]
        late = (StoreTimeout,)
        steps_of = self._graph.paths.steps([Candidate(chain.from_end(), "") for chain in frontier], tolerated=late)
        every: list[tuple[Chain, dict[str, Step]]] = []
        for chain, expansion in without_failures(
            frontier, steps_of, self._trace, worded=lambda chain: self.name(chain.end), tolerated=late
        ):
            back = [step.reversed() for step in chain.path.steps[-1:]]
            if named := self.name_steps(step for step in expansion.steps if step not in back):
                every.append((chain, named))
        values = [
            {"entity": self.name(chain.end), "relations": list(named), "width": self._width} for chain, named in every
        ]
        readers = [lambda text, names=list(named): self.read_relations(text, names) for _, named in every]
        return [
            (chain, named[name], score)
            for (chain, named), scores in zip(every, self.ask("relations", "filter", values, readers))
            for name, score in (scores or ())[: self._width]
        ]

    def record(self, found: Sequence[Chain], candidates: int) -> None:
        """Keep the chains of a hop, and record it."""
        self.chains += found
        self._trace.count("hops")
        self._trace.count("candidates", candidates)

    def ask(
        self,
        prompt: str,
        stage: Stage,
        values: Sequence[Mapping[str, Any]],
        readers: Sequence[Callable[[str], Reading[Any]]],
    ) -> list[Any]:
        """Send one prompt for each of the values, and return what their replies say."""
        name, prompts = f"{self.prompts}{prompt}", self._resources.prompts
        asked = [
            prompts.prompt(name, stage, Reply(read), question=self._question, **each)
            for each, read in zip(values, readers)
        ]
        return self._resources.ask(asked, self._trace)

    def hops(self, path: RelationPath) -> str:
        """Return the words of a path."""
        return ", ".join(hop_words(path, self._graph.schema, self._graph.tables.relation_labels))

    def name(self, value: Value) -> str:
        """Return the name of a node in prompts, in which semicolons separate names."""
        if isinstance(value, Literal):
            return value.value[:200]
        named = self._graph.named([value])[0]
        return named.name.replace(";", ",") if named.name != named.id else "an unnamed entity"
