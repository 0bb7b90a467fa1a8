"""Think-on-Graph (Sun et al. 2024), the baseline: a beam search over entities.

In each hop, the language model scores the relations of each entity, then the neighbours reached by each relation. A
neighbour's score is the product of both scores. If there are 20 or more neighbours, only a sample of them is scored.
After each hop, the model decides whether the triples found are enough to answer. Whole paths are never compared.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kgqa.errors import StoreError, StoreTimeout
from kgqa.events import GaveUp, Kept, Sufficient
from kgqa.explore.tolerance import map_tolerantly, without_failures
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.client import Stage
from kgqa.llm.replies.answers import read_numbered_answers
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.scores import read_scores
from kgqa.methods.direct import UNREADABLE, recalled
from kgqa.methods.grounding import answer_of_entities
from kgqa.methods.resources import Resources
from kgqa.model import (
    Answer,
    Candidate,
    Entity,
    Literal,
    Named,
    Question,
    RelationPath,
    Step,
    Value,
)
from kgqa.trace import BudgetExhausted, Trace
from kgqa.words import hop_words, normalise, relation_words

METHOD = "tog"
MANY = 20
"""With this number of neighbours or more, only a sample of the neighbours is scored."""
LISTED = 1000
"""Most neighbours that are fetched from the graph."""
_FORM = re.compile(r"\{\s*(.+?)\s*\(Score:\s*([0-9]*\.?[0-9]+)\s*\)\s*\}")
_LOOSE = re.compile(
    r"^\s*(?:\d+[.)]|[-*])?\s*\{?\s*(.+?)\s*[(:\[]\s*(?:score\s*[:=])?\s*([01](?:\.\d+)?|\.\d+)\b", re.IGNORECASE
)
_BRACES = re.compile(r"\{([^{}]{1,2000})\}")
_OBJECT = re.compile(r"""\s*(["'])\w[^"']*\1\s*:""")
"""The beginning of a JSON object; any other text in braces is an answer, even a number."""


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
    """The Think-on-Graph search for one question."""

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        self._question = question.text
        self._resources = resources
        self._settings = resources.settings
        self._graph: KnowledgeGraph = resources.graph.for_question(trace)
        self._trace = trace
        self._faithful = self._settings["tog.parse"] == "faithful"
        self._width = self._settings["explore.beam"]
        seed = f"{self._settings['rank.seed']}\0{question.text}".encode("utf-8", "surrogatepass")
        self._random = random.Random(hashlib.blake2b(seed, digest_size=8).digest())
        self.chains: list[Chain] = []
        """The chains kept in all hops so far."""

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
        texts = self._ask("tog/sufficient", "decide", [{"triples": self._triples()}], [self._read_sufficient])
        return texts[0] or None

    def final_answer(self) -> tuple[str, ...]:
        """Ask the model for the answers after the search has ended."""
        return self._ask("tog/answer", "decide", [{"triples": self._triples()}], [self._read_answer])[0] or ()

    def _relations(self, frontier: Sequence[Chain]) -> list[tuple[Chain, Step, float]]:
        every: list[tuple[Chain, dict[str, Step]]] = []
        late = (StoreTimeout,)
        steps_of = self._graph.next_steps_of([Candidate(chain.from_end(), "") for chain in frontier], tolerated=late)
        for chain, expansion in without_failures(
            frontier, steps_of, self._trace, worded=lambda chain: self._name(chain.end), tolerated=late
        ):
            back = [step.reversed() for step in chain.path.steps[-1:]]
            named: dict[str, Step] = {}
            for step in expansion.steps:
                if step not in back:
                    named.setdefault(self._step_name(step), step)
            if named:
                every.append((chain, named))
        values = [
            {"entity": self._name(chain.end), "relations": list(named), "width": self._width} for chain, named in every
        ]
        readers = [partial(self._read_relations, names=list(named)) for _, named in every]
        read = self._ask("tog/relations", "filter", values, readers)
        return [
            (chain, named[name], score)
            for (chain, named), scores in zip(every, read)
            for name, score in (scores or ())[: self._width]
        ]

    def _neighbours(self, steps: Sequence[tuple[Chain, Step, float]]) -> list[Chain]:
        found: list[Chain] = []
        several: list[tuple[Chain, Step, float, list[Value]]] = []
        reached = map_tolerantly(
            self._graph,
            lambda each: self._graph.ends(each[0].from_end().then(each[1]), limit=LISTED),
            steps,
            self._trace,
            worded=lambda each: self._step_name(each[1]),
        )
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
        readers = [partial(self._read_entities, size=len(ends)) for _, _, _, ends in several]
        read = self._ask("tog/entities", "entity", values, readers)
        for (chain, step, score, ends), scores in zip(several, read):
            # as published, all neighbours get equal scores after an unreadable reply
            shares = scores or (1 / len(ends),) * len(ends)
            found += [self._extended(chain, step, end, score * (share or 0.0)) for end, share in zip(ends, shares)]
        return found

    def _sampled(self, chain: Chain, ends: Sequence[Value]) -> list[Value]:
        known = (chain.path.topic, *chain.nodes)
        # blank nodes cannot be queried
        new = [e for e in ends if e not in known and not (isinstance(e, Entity) and e.iri.startswith("_:"))]
        return self._random.sample(new, min(self._settings["tog.sampled"], len(new))) if len(new) >= MANY else new

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
        asked = [prompts.prompt(prompt, stage, question=self._question, **each) for each in values]
        return self._resources.ask_model(asked, readers, self._trace)

    def _read_relations(self, text: str, *, names: list[str]) -> Reading[tuple[tuple[str, float], ...]]:
        known = {normalise(name): name for name in names}
        found: dict[str, float] = {}
        for line in text[-20_000:].splitlines():
            match = _FORM.search(line) or (None if self._faithful else _LOOSE.match(line))
            name = match and (match[1] if self._faithful else known.get(normalise(match[1])))
            if match and name in names:
                found.setdefault(name, min(float(match[2]), 1.0))
        ordered = tuple(sorted(found.items(), key=lambda pair: -pair[1]))
        return Reading(ordered or None, False, "It rates none of the relations in the form that was asked for.")

    def _read_entities(self, text: str, *, size: int) -> Reading[tuple[float | None, ...]]:
        numbers = re.findall(r"\b[01](?:\.\d+)?\b|\B\.\d+\b", text.rsplit("Score:", 1)[-1][:5000])
        if len(numbers) == size:
            return Reading(tuple(map(float, numbers)), False, "")
        if self._faithful:
            return Reading(None, False, f"It does not give {size} numbers.")
        return read_scores(text, size=size)

    def _read_sufficient(self, text: str) -> Reading[tuple[str, ...]]:
        braces = _BRACES.findall(text[:20_000])
        verdict = next((b.strip().lower() for b in braces if b.strip().lower() in ("yes", "no")), None)
        if self._faithful:
            # the published program reads the first text in braces as the verdict, and all later ones as answers
            verdict = braces[0].strip().lower() if braces else None
        if verdict == "no":
            return Reading((), False, "")
        if verdict != "yes":
            return Reading(None, False, "It begins neither with {Yes} nor with {No}.")
        return self._read_answer(text)

    def _read_answer(self, text: str) -> Reading[tuple[str, ...]]:
        braces = [b for b in _BRACES.findall(text[-20_000:]) if b.strip().lower() not in ("yes", "no")]
        if braces and not self._faithful and _OBJECT.match(braces[-1]):
            read = read_numbered_answers(text)
            return Reading(None if read.value is None else tuple(map(str, read.value)), read.repaired, read.problem)
        if not braces:
            return Reading(None, False, "It has no answer in braces.")
        chosen = braces if self._faithful else braces[-1:]
        parts = [part.strip()[:500] for each in chosen for part in each.split(";")]
        return Reading(tuple(dict.fromkeys(part for part in parts if part)) or None, False, "The braces are empty.")

    def _triples(self) -> list[str]:
        """Return the triples of all kept chains in words."""
        texts = (
            f"{self._name(subject)}; {relation_words(relation, self._graph.schema, self._graph.relation_labels)}; "
            f"{self._name(object_)}"
            for chain in self.chains
            for subject, relation, object_ in chain.path.triples_along((chain.path.topic, *chain.nodes))
            if isinstance(subject, Entity)
        )
        return list(dict.fromkeys(texts))

    def hops(self, path: RelationPath) -> tuple[str, ...]:
        return hop_words(path, self._graph.schema, self._graph.relation_labels)

    def _step_name(self, step: Step) -> str:
        if self._settings["rank.wording"] == "published":
            return self._graph.schema.short_id(step.relation)
        words = relation_words(step.relation, self._graph.schema, self._graph.relation_labels)
        return words if step.direction == "out" else f"{words} (backwards)"

    def _name(self, value: Value) -> str:
        if isinstance(value, Literal):
            return value.value[:200]
        named = self._graph.named([value])[0]
        # semicolons separate the names in a prompt; as published, all nodes without a name get the same text
        return named.name.replace(";", ",") if named.name != named.id else "an unnamed entity"


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer by Think-on-Graph; arguments and errors as in `top.answer`. Names of topics are not masked."""
    assert resources.models is not None
    search = ThinkOnGraph(question, resources, trace)
    notes = (f"Explored by {resources.models.name}.",)
    empty = Answer(question, "no_answer", method=METHOD, notes=notes, topics=tuple(topics))
    frontier = [Chain(RelationPath(topic.value), ()) for topic in topics if isinstance(topic.value, Entity)]
    texts: tuple[str, ...] | None = None
    try:
        for _ in range(resources.settings["explore.depth"]):
            frontier = search.hop(frontier)
            if not frontier:
                break
            texts = search.sufficient()
            if texts:
                trace.record(Sufficient(answers=texts[:20]))
                break
        if not texts:
            # as published, the model answers from the triples; if there are none, it thinks step by step
            if not search.chains:
                recall = recalled(question, "cot", resources, trace)
                return replace(recall, method=METHOD, topics=tuple(topics), notes=(*notes, *recall.notes))
            texts = search.final_answer()
    except BudgetExhausted as error:
        return _best_so_far(search, empty, error, resources, trace)
    if not texts:
        return replace(empty, reason=UNREADABLE)
    return _grounded(search, texts, empty, resources, trace)


def _best_so_far(
    search: ThinkOnGraph, empty: Answer, error: BudgetExhausted, resources: Resources, trace: Trace
) -> Answer:
    """Return the end of the best chain in the last finished hop as the answer; called when the budget is spent."""
    spent = replace(empty, status="budget_exhausted", reason=error.reason)
    longest = max((len(chain.nodes) for chain in search.chains), default=0)
    ends = [chain.end for chain in search.chains if len(chain.nodes) == longest and chain.nodes][:1]
    if not ends:
        return spent
    with trace.grace():
        try:
            graph = resources.graph.for_question(trace)
            found = answer_of_entities(graph, empty, graph.named(ends), _leading_to(search, set(ends)), trace)
        except (StoreError, BudgetExhausted) as failure:
            trace.record(GaveUp(path="", error=str(failure)))
            return spent
    notes = (*found.notes, "The search was not finished. This is the answer of the best walk so far.")
    return replace(found, status="budget_exhausted", reason=spent.reason, notes=notes)


def _grounded(search: ThinkOnGraph, texts: Sequence[str], empty: Answer, resources: Resources, trace: Trace) -> Answer:
    """Return an answer of nodes if each string names exactly one node of the chains, else an answer of strings."""
    graph = resources.graph.for_question(trace)
    nodes = list(dict.fromkeys(node for chain in search.chains for node in chain.nodes))
    by_name: dict[str, list[Named]] = {}
    for named in graph.named(nodes):
        by_name.setdefault(normalise(named.name.replace(";", ",")), []).append(named)
    found = [by_name.get(normalise(text), []) for text in texts]
    if not all(len(same) == 1 for same in found):
        answers = tuple(Named(Literal(text), "", text) for text in texts)
        note = "Answered by the language model: not every answer is an entity that the search reached."
        return replace(empty, status="answered", answers=answers, grounding="model", notes=(*empty.notes, note))
    wanted = {same[0].value: same[0] for same in found}
    return answer_of_entities(graph, empty, list(wanted.values()), _leading_to(search, set(wanted)), trace)


def _leading_to(search: ThinkOnGraph, wanted: Collection[Value]) -> Iterator[Candidate]:
    """Yield the chains that lead to wanted nodes, as paths restricted to the nodes of the chains.

    Each chain is yielded separately first; then all chains along the same path are yielded together.
    """
    along: dict[RelationPath, dict[tuple[Value, ...], None]] = {}
    for chain in search.chains:
        for length in range(1, len(chain.nodes) + 1):
            if chain.nodes[length - 1] in wanted:
                path = RelationPath(chain.path.topic, chain.path.steps[:length])
                along.setdefault(path, {})[chain.nodes[: length - 1]] = None
    for path, chains in along.items():
        for nodes in chains:
            yield _restricted_to(search, path, [nodes])
    for path, chains in along.items():
        if len(chains) > 1:
            yield _restricted_to(search, path, list(chains))


def _restricted_to(search: ThinkOnGraph, path: RelationPath, chains: Sequence[tuple[Value, ...]]) -> Candidate:
    """Return a path restricted, at each position, to the nodes that the chains have at this position."""
    restricted = tuple(
        (position, tuple(dict.fromkeys(node for node in nodes if isinstance(node, Entity))))
        for position, nodes in enumerate(zip(*chains), 1)
    )
    return Candidate(path, ", ".join(search.hops(path)), restricted=restricted)
