"""The search of Think-on-Graph as published: a beam search over entities.

In each hop, the language model scores the relations of each entity, then the neighbours reached by each relation. A
neighbour's score is the product of both scores. If there are 20 or more neighbours, only a sample of them is scored.
After each hop, the model decides whether the triples found are enough to answer. Whole paths are never compared.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kgqa.errors import StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.client import Stage
from kgqa.llm.replies.json_values import Reading
from kgqa.methods.registry import TogSettings
from kgqa.methods.resources import Resources
from kgqa.methods.tog.replies import read_answer, read_entities, read_relations, read_sufficient
from kgqa.model import Candidate, Entity, Literal, Question, RelationPath, Step, Value
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import hop_words, relation_words
from kgqa.trace import Kept
from kgqa.trace.trace import Trace

MANY = 20
"""With this number of neighbours or more, only a sample of the neighbours is scored."""
LISTED = 1000
"""Most neighbours that are fetched from the graph."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of nodes along a path.

    Attributes:
        path: The path, which starts at a topic.
        nodes: The nodes after the topic, one per step.
        score: The score of the last hop.
    """

    path: RelationPath
    nodes: tuple[Value, ...]
    score: float = 1.0

    @property
    def end(self) -> Value:
        """The last node."""
        return self.nodes[-1] if self.nodes else self.path.topic

    def from_end(self) -> RelationPath:
        """Return the empty path that starts at the last node."""
        assert isinstance(self.end, Entity)
        return RelationPath(self.end)


class ThinkOnGraph:
    """The search for one question; `prompts` is the beginning of the names of its prompts."""

    prompts = "tog/"

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        self._question = question.text
        self._resources = resources
        self._settings = resources.settings
        self._own = self._settings.of(TogSettings)
        self._graph: KnowledgeGraph = resources.graph.for_question(trace)
        self._trace = trace
        self._faithful = self._own.parse == "faithful"
        self._width = self._settings.explore.beam
        seed = f"{self._settings.rank.seed}\0{question.text}".encode("utf-8", "surrogatepass")
        self._random = random.Random(hashlib.blake2b(seed, digest_size=8).digest())
        self.chains: list[Chain] = []
        """The chains kept in all hops so far, whose triples the model sees and whose nodes may be answers."""

    def hop(self, frontier: Sequence[Chain]) -> list[Chain]:
        """Extend the chains by one hop; return the `explore.beam` best new chains with a score above 0."""
        steps = self._relations([chain for chain in frontier if isinstance(chain.end, Entity)])
        found = self._neighbours(steps)
        best = sorted((chain for chain in found if chain.score > 0), key=lambda chain: -chain.score)[: self._width]
        self.chains += best
        self._trace.count("hops")
        self._trace.count("candidates", len(found))
        paths = tuple(", ".join(self.hops(chain.path)) for chain in best)
        self._trace.record(Kept(hop=len(best[0].nodes) if best else 0, paths=paths))
        return best

    def sufficient(self) -> tuple[str, ...] | None:
        """Ask the model whether the triples are enough to answer; return the model's answers, or None if not."""
        texts = self._ask("sufficient", "decide", [{"triples": self._triples()}], [self._reader(read_sufficient)])
        return texts[0] or None

    def final_answer(self) -> tuple[str, ...]:
        """Ask the model for the answers after the search has ended."""
        return self._ask("answer", "decide", [{"triples": self._triples()}], [self._reader(read_answer)])[0] or ()

    def whole_paths(self, wanted: Collection[Value]) -> Iterable[Candidate]:
        """Return paths, preferred to single chains, that lead to wanted nodes and to no others."""
        return ()

    def _relations(self, frontier: Sequence[Chain]) -> list[tuple[Chain, Step, float]]:
        every: list[tuple[Chain, dict[str, Step]]] = []
        late = (StoreTimeout,)
        steps_of = self._graph.paths.steps([Candidate(chain.from_end(), "") for chain in frontier], tolerated=late)
        for chain, expansion in without_failures(
            frontier, steps_of, self._trace, worded=lambda chain: self._name(chain.end), tolerated=late
        ):
            back = [step.reversed() for step in chain.path.steps[-1:]]
            named: dict[str, Step] = {}
            for step in expansion.steps:
                if step not in back:
                    self._name_step(named, step)
            if named:
                every.append((chain, named))
        values = [
            {"entity": self._name(chain.end), "relations": list(named), "width": self._width} for chain, named in every
        ]
        readers = [self._reader(read_relations, names=list(named)) for _, named in every]
        read = self._ask("relations", "filter", values, readers)
        return [
            (chain, named[name], score)
            for (chain, named), scores in zip(every, read)
            for name, score in (scores or ())[: self._width]
        ]

    def _neighbours(self, steps: Sequence[tuple[Chain, Step, float]]) -> list[Chain]:
        found: list[Chain] = []
        several: list[tuple[Chain, Step, float, list[Value]]] = []
        paths = [Candidate(chain.from_end().then(step)) for chain, step, _ in steps]
        ends_of = self._graph.paths.ends(paths, limit=LISTED, tolerated=TOLERATED)
        reached = without_failures(steps, ends_of, self._trace, worded=lambda each: self._step_name(each[1]))
        for (chain, step, score), there in reached:
            ends = self._sampled(chain, there.values)
            if len(ends) == 1:
                found.append(self._extended(chain, step, ends[0], score))
            elif ends:
                several.append((chain, step, score, ends))
        # fetch all names in one batch
        self._graph.labels(end for _, _, _, ends in several for end in ends if isinstance(end, Entity))
        values = [
            {"relation": self._step_name(step), "entities": [self._name(end) for end in ends]}
            for _, step, _, ends in several
        ]
        readers = [self._reader(read_entities, size=len(ends)) for _, _, _, ends in several]
        read = self._ask("entities", "entity", values, readers)
        for (chain, step, score, ends), scores in zip(several, read):
            # as published, all neighbours get equal scores after an unreadable reply
            shares = scores or (1 / len(ends),) * len(ends)
            found += [self._extended(chain, step, end, score * (share or 0.0)) for end, share in zip(ends, shares)]
        return found

    def _sampled(self, chain: Chain, ends: Sequence[Value]) -> list[Value]:
        known = (chain.path.topic, *chain.nodes)
        # blank nodes cannot be queried
        new = [e for e in ends if e not in known and not (isinstance(e, Entity) and e.iri.startswith("_:"))]
        return self._random.sample(new, min(self._own.sampled, len(new))) if len(new) >= MANY else new

    @staticmethod
    def _extended(chain: Chain, step: Step, end: Value, score: float) -> Chain:
        return Chain(chain.path.then(step), (*chain.nodes, end), score)

    def _ask(
        self,
        prompt: str,
        stage: Stage,
        values: Sequence[Mapping[str, Any]],
        readers: Sequence[Callable[[str], Reading[Any]]],
    ) -> list[Any]:
        prompts = self._resources.prompts
        asked = [prompts.prompt(f"{self.prompts}{prompt}", stage, question=self._question, **each) for each in values]
        return self._resources.ask_model(asked, readers, self._trace)

    def _reader(self, read: Callable[..., Reading[Any]], **options: Any) -> Callable[[str], Reading[Any]]:
        return partial(read, faithful=self._faithful, **options)

    def _triples(self) -> list[str]:
        """Return the triples of all kept chains in words."""
        schema, labels = self._graph.schema, self._graph.tables.relation_labels
        texts = (
            f"{self._name(subject)}; {relation_words(relation, schema, labels)}; {self._name(object_)}"
            for chain in self.chains
            for subject, relation, object_ in chain.path.triples_along((chain.path.topic, *chain.nodes))
            if isinstance(subject, Entity)
        )
        return list(dict.fromkeys(texts))

    def hops(self, path: RelationPath) -> tuple[str, ...]:
        return hop_words(path, self._graph.schema, self._graph.tables.relation_labels)

    def _step_name(self, step: Step) -> str:
        if self._settings.rank.wording == "published":
            return self._graph.schema.short_id(step.relation)
        words = relation_words(step.relation, self._graph.schema, self._graph.tables.relation_labels)
        return words if step.direction == "out" else f"{words} (backwards)"

    def _name_step(self, named: dict[str, Step], step: Step) -> None:
        """Add a step to the steps by name; as published, the first step with a name hides the others."""
        named.setdefault(self._step_name(step), step)

    def _name(self, value: Value) -> str:
        if isinstance(value, Literal):
            return value.value[:200]
        named = self._graph.named([value])[0]
        # semicolons separate the names in a prompt; as published, all nodes without a name get the same text
        return named.name.replace(";", ",") if named.name != named.id else "an unnamed entity"
