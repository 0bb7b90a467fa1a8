"""What both searches of Think-on-Graph share: the prompts, and the answer at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kgqa.llm.client import Stage
from kgqa.llm.replies.reply import Reply
from kgqa.methods.direct import UNREADABLE, answer_cot
from kgqa.methods.resources import Resources
from kgqa.methods.tog.chains import NodeChain
from kgqa.methods.tog.replies import read_answer, read_entities, read_relations, read_sufficient
from kgqa.methods.tournament.path_answers import answer_of_entities, answer_of_model, best_so_far, nodes_named
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Question, RelationPath, Step, Value
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import hop_words
from kgqa.trace import Accepted, Kept
from kgqa.trace.trace import BudgetExhausted, Trace

LISTED = 1000
"""Most neighbours that are fetched from the graph."""


class ChainSearch(ABC):
    """A search for one question along chains; the two searches say how a hop goes, and what prompts show.

    Attributes:
        published: Whether prompts and the reading of braces are as published.
        chains: The chains kept in all hops so far, whose triples the model sees and whose nodes may be answers.
    """

    published = False

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        self._question = question
        self._resources, self._settings = resources, resources.settings
        self._graph = resources.graph.for_question(trace)
        self._trace = trace
        self._width = self._settings.explore.beam
        self.chains: list[NodeChain] = []

    @abstractmethod
    def hop(self, frontier: Sequence[NodeChain]) -> list[NodeChain]:
        """Extend the chains by one hop, and return those from which the search continues."""

    @abstractmethod
    def step_name(self, step: Step, taken: Collection[str] = ()) -> str:
        """Return the name of a relation in prompts, if possible one that is not taken."""

    @abstractmethod
    def triples(self) -> list[str]:
        """Return what the search has found, as lines of a prompt."""

    def paths_to(self, wanted: Collection[Value]) -> Iterator[Candidate]:
        """Yield the chains that lead to wanted nodes, as paths restricted to the nodes of the chains.

        Each chain is yielded separately first; then all chains along the same path are yielded together.
        """
        along: dict[RelationPath, dict[tuple[Value, ...], None]] = {}
        for chain in self.chains:
            for length in (at for at, node in enumerate(chain.nodes, start=1) if node in wanted):
                path = RelationPath(chain.path.topic, chain.path.steps[:length])
                along.setdefault(path, {})[chain.nodes[: length - 1]] = None
        single = [(path, [nodes]) for path, chains in along.items() for nodes in chains]
        together = [(path, list(chains)) for path, chains in along.items() if len(chains) > 1]
        for path, several in (*single, *together):
            yield self.restricted(path, dict(enumerate(zip(*several), start=1)))

    def restricted(self, path: RelationPath, nodes: Mapping[int, Iterable[Value]]) -> Candidate:
        """Return a path with only some nodes at some of its positions."""
        entities = {at: tuple(dict.fromkeys(n for n in some if isinstance(n, Entity))) for at, some in nodes.items()}
        return Candidate(path, self.hops(path), restricted=tuple(entities.items()))

    def answer(self, topics: Sequence[Named]) -> Answer:
        """Search to the depth, or until the model says that the triples are enough; return its answer, grounded."""
        assert self._resources.models is not None
        notes = (f"Explored by {self._resources.models.name}.",)
        empty = Answer(self._question, "no_answer", method="tog", notes=notes, topics=tuple(topics))
        frontier = [NodeChain(RelationPath(topic.value)) for topic in topics if isinstance(topic.value, Entity)]
        texts: tuple[str, ...] | None = None
        decides, answers = (partial(read, published=self.published) for read in (read_sufficient, read_answer))
        try:
            for _ in range(self._settings.explore.depth):
                frontier = self.hop(frontier)
                if not frontier:
                    break
                (texts,) = self.ask("sufficient", "decide", [({"triples": self.triples()}, Reply(decides))])
                if texts:
                    self._trace.record(Accepted(why="the triples are sufficient", answers=texts[:20]))
                    break
            if not texts and not self.chains:
                recall = answer_cot(self._question, resources=self._resources, trace=self._trace)
                return replace(recall, method="tog", topics=tuple(topics), notes=(*notes, *recall.notes))
            if not texts:
                (texts,) = self.ask("answer", "decide", [({"triples": self.triples()}, Reply(answers))])
        except BudgetExhausted as error:
            longest = max((len(chain.nodes) for chain in self.chains), default=0)
            best = [chain.end for chain in self.chains if len(chain.nodes) == longest][:1]
            found = best_so_far(self._graph, empty, error, self.paths_to(best), self._trace, chosen=best)
            kept = tuple(each for each in found.answers if each.value in best)
            whole = len(kept) == len(found.answers)
            return replace(found, answers=kept, query_class=found.query_class if whole else "superset")
        return self._grounded(texts, empty) if texts else replace(empty, reason=UNREADABLE)

    def relations(self, frontier: Sequence[NodeChain]) -> list[tuple[NodeChain, Step, float]]:
        """Let the model score the relations of each end; return the best of each, with the chain."""
        frontier = [chain for chain in frontier if isinstance(chain.end, Entity)]
        steps_of = self._graph.paths.steps([Candidate(chain.onward(), "") for chain in frontier], tolerated=TOLERATED)
        every: list[tuple[NodeChain, dict[str, Step]]] = []
        for chain, expansion in without_failures(
            frontier, steps_of, self._trace, worded=lambda chain: self.name(chain.end)
        ):
            back = [step.reversed() for step in chain.path.steps[-1:]]
            named: dict[str, Step] = {}
            for step in expansion.steps:
                if step not in back:
                    named.setdefault(self.step_name(step, named), step)
            if named:
                every.append((chain, named))
        asked = [
            (
                {"entity": self.name(chain.end), "relations": list(named), "width": self._width},
                Reply(partial(read_relations, names=list(named))),
            )
            for chain, named in every
        ]
        return [
            (chain, named[name], score)
            for (chain, named), scored in zip(every, self.ask("relations", "filter", asked))
            for name, score in (scored or ())[: self._width]
        ]

    def rated(self, several: Sequence[tuple[Mapping[str, Any], Sequence[NodeChain]]]) -> list[NodeChain]:
        """Let the model rate the ends of chains along one relation; without a usable reply, all get equal shares."""
        asked = [(values, Reply(partial(read_entities, size=len(chains)))) for values, chains in several]
        return [
            replace(chain, score=chain.score * (share or 0.0))
            for (_, chains), shares in zip(several, self.ask("entities", "entity", asked))
            for chain, share in zip(chains, shares or [1 / len(chains)] * len(chains))
        ]

    def keep(self, kept: list[NodeChain], candidates: int) -> list[NodeChain]:
        """Keep and return the chains of a hop, and record it."""
        self.chains += kept
        self._trace.count("hops")
        self._trace.count("candidates", candidates)
        paths = tuple(dict.fromkeys(self.hops(chain.path) for chain in kept))
        self._trace.record(Kept(hop=len(kept[0].nodes) if kept else 0, paths=paths))
        return kept

    def ask(self, prompt: str, stage: Stage, asked: Sequence[tuple[Mapping[str, Any], Reply[Any]]]) -> list[Any]:
        """Send one prompt for each of the values, and return what their replies say."""
        make, name = self._resources.prompts.prompt, ("tog/" if self.published else "tog/robust_") + prompt
        prompts = [make(name, stage, reply, question=self._question.text, **values) for values, reply in asked]
        return self._resources.ask(prompts, self._trace)

    def hops(self, path: RelationPath) -> str:
        """Return the words of a path."""
        return ", ".join(hop_words(path, self._graph.schema, self._graph.tables.relation_labels))

    def name(self, value: Value) -> str:
        """Return the name of a node in prompts, in which semicolons separate names."""
        if isinstance(value, Literal):
            return value.value[:200]
        named = self._graph.named([value])[0]
        return named.name.replace(";", ",") if named.name != named.id else "an unnamed entity"

    def _grounded(self, texts: Sequence[str], empty: Answer) -> Answer:
        """Return an answer of nodes if each string names exactly one node of the chains, else an answer of strings."""
        nodes = self._graph.named(dict.fromkeys(node for chain in self.chains for node in chain.nodes))
        if (found := nodes_named(texts, nodes)) is None:
            note = "Answered by the language model: not every answer is an entity that the search reached."
            return answer_of_model(empty, texts, note)
        wanted = {each.value: each for each in found}
        paths = self.paths_to(wanted)
        return answer_of_entities(self._graph, empty, list(wanted.values()), paths, self._trace)
