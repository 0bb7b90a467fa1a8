"""What both searches of Think-on-Graph share: the prompts, and the answer at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgqa.errors import StoreError, StoreTimeout
from kgqa.llm.client import Stage
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.reply import Reply
from kgqa.methods.direct import UNREADABLE, recalled
from kgqa.methods.resources import Resources
from kgqa.methods.tog.chains import Chain, paths_to
from kgqa.methods.tog.replies import read_answer, read_relations, read_sufficient
from kgqa.methods.tournament.path_answers import answer_of_entities, answer_of_model, nodes_named
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Question, RelationPath, Step, Value
from kgqa.search.tolerance import without_failures
from kgqa.text.words import hop_words
from kgqa.trace import Accepted, GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace

LISTED = 1000
"""Most neighbours that are fetched from the graph."""


class ChainSearch(ABC):
    """A search for one question along chains; the two searches say how a hop goes, and what prompts show.

    Attributes:
        prompts: The beginning of the names of the prompts.
        chains: The chains kept in all hops so far, whose triples the model sees and whose nodes may be answers.
    """

    prompts = "tog/robust_"
    read_relations = staticmethod(read_relations)
    read_sufficient = staticmethod(read_sufficient)
    read_answer = staticmethod(read_answer)

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        self._question = question
        self._resources, self._settings = resources, resources.settings
        self._graph = resources.graph.for_question(trace)
        self._trace = trace
        self._width = self._settings.explore.beam
        self.chains: list[Chain] = []

    @abstractmethod
    def hop(self, frontier: Sequence[Chain]) -> list[Chain]:
        """Extend the chains by one hop, and return those from which the search continues."""

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

    def answer(self, topics: Sequence[Named]) -> Answer:
        """Search to the depth, or until the model says that the triples are enough; return its answer, grounded."""
        assert self._resources.models is not None
        notes = (f"Explored by {self._resources.models.name}.",)
        empty = Answer(self._question, "no_answer", method="tog", notes=notes, topics=tuple(topics))
        frontier = [Chain(RelationPath(topic.value)) for topic in topics if isinstance(topic.value, Entity)]
        texts: tuple[str, ...] | None = None
        try:
            for _ in range(self._settings.explore.depth):
                frontier = self.hop(frontier)
                if not frontier:
                    break
                (texts,) = self.ask("sufficient", "decide", [{"triples": self.triples()}], [self.read_sufficient])
                if texts:
                    self._trace.record(Accepted(why="the triples are sufficient", answers=texts[:20]))
                    break
            if not texts and not self.chains:
                recall = recalled(self._question, "cot", self._resources, self._trace)
                return replace(recall, method="tog", topics=tuple(topics), notes=(*notes, *recall.notes))
            if not texts:
                (texts,) = self.ask("answer", "decide", [{"triples": self.triples()}], [self.read_answer])
        except BudgetExhausted as error:
            return self._best_so_far(replace(empty, status="budget_exhausted", reason=error.reason))
        return self._grounded(texts, empty) if texts else replace(empty, reason=UNREADABLE)

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
            prompts.prompt(name, stage, Reply(read), question=self._question.text, **each)
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

    def _best_so_far(self, spent: Answer) -> Answer:
        """Return the end of the best chain in the last finished hop as the answer; called when the budget is spent."""
        longest = max((len(chain.nodes) for chain in self.chains), default=0)
        ends = [chain.end for chain in self.chains if len(chain.nodes) == longest and chain.nodes][:1]
        if not ends:
            return spent
        with self._trace.grace():
            try:
                named, paths = self._graph.named(ends), self._leading_to(set(ends))
                found = answer_of_entities(self._graph, spent, named, paths, self._trace)
            except (StoreError, BudgetExhausted) as failure:
                self._trace.record(GaveUp(path="", error=str(failure)))
                return spent
        notes = (*found.notes, "The search was not finished. This is the answer of the best walk so far.")
        return replace(found, status=spent.status, reason=spent.reason, notes=notes)

    def _grounded(self, texts: Sequence[str], empty: Answer) -> Answer:
        """Return an answer of nodes if each string names exactly one node of the chains, else an answer of strings."""
        nodes = self._graph.named(dict.fromkeys(node for chain in self.chains for node in chain.nodes))
        if (found := nodes_named(texts, nodes)) is None:
            note = "Answered by the language model: not every answer is an entity that the search reached."
            return answer_of_model(empty, texts, note)
        wanted = {each.value: each for each in found}
        return answer_of_entities(self._graph, empty, list(wanted.values()), self._leading_to(set(wanted)), self._trace)

    def _leading_to(self, wanted: Collection[Value]) -> list[Candidate]:
        """Return the paths that lead to wanted nodes, those of `whole_paths` first."""
        found = (replace(each, words=self.hops(each.path)) for each in paths_to(wanted, self.chains))
        return [*self.whole_paths(wanted), *found]
