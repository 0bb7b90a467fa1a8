"""Think-on-Graph (Sun et al. 2024), the baseline: a beam of entities, relations and entities pruned by scores, and after
each hop the question whether that is enough.

Each entity's relations are scored by themselves and its neighbours by themselves; a neighbour's score is that of its
relation times its own. Of 20 neighbours or more some are drawn at random. Nothing sees a path as a whole.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.client import Prompt, Stage
from kgqa.llm.model_chooser import ask_and_read
from kgqa.llm.replies.answers import read_numbered_answers
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.scores import read_scores
from kgqa.methods.direct import recalled
from kgqa.methods.reading import read_chosen
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
    Triple,
    Value,
)
from kgqa.trace import BudgetExhausted, Trace
from kgqa.words import hop_words, normalise, relation_words

METHOD = "tog"
MANY = 20
"""From so many neighbours on a few are drawn."""
LISTED = 1000
_FORM = re.compile(r"\{\s*(.+?)\s*\(Score:\s*([0-9]*\.?[0-9]+)\s*\)\s*\}")
_LOOSE = re.compile(
    r"^\s*(?:\d+[.)]|[-*])?\s*\{?\s*(.+?)\s*[(:\[]\s*(?:score\s*[:=])?\s*([01](?:\.\d+)?|\.\d+)\b", re.IGNORECASE
)
_BRACES = re.compile(r"\{([^{}]{1,2000})\}")
_OBJECT = re.compile(r"""\s*(["'])\w[^"']*\1\s*:""")
"""What opens braces that are JSON. In others a number is an answer: this is the form that is asked for."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A chain from a topic: its relations, and the node after each; `score` of its last hop."""

    path: RelationPath
    nodes: tuple[Value, ...]
    score: float = 1.0

    @property
    def end(self) -> Value:
        return self.nodes[-1] if self.nodes else self.path.topic


class ThinkOnGraph:
    """One question's search."""

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        self._question = question.text
        self._resources = resources
        self._settings = resources.settings
        self._graph: KnowledgeGraph = resources.graph.for_question(trace)
        assert resources.models is not None
        self._models = resources.models.for_question(trace)
        self._trace = trace
        self._faithful = self._settings["tog.parse"] == "faithful"
        self._width = self._settings["explore.beam"]
        seed = f"{self._settings['rank.seed']}\0{question.text}".encode("utf-8", "surrogatepass")
        self._random = random.Random(hashlib.blake2b(seed, digest_size=8).digest())
        self.walks: list[Walk] = []
        """All walks that were kept, of all hops."""

    def hop(self, frontier: Sequence[Walk]) -> list[Walk]:
        """The best `beam` walks one hop further; fewer where nothing else has a score."""
        steps = self._relations([walk for walk in frontier if isinstance(walk.end, Entity)])
        found = self._neighbours(steps)
        best = sorted((walk for walk in found if walk.score > 0), key=lambda walk: -walk.score)[: self._width]
        self.walks += best
        self._trace.count("hops")
        self._trace.count("candidates", len(found))
        self._trace.event(
            "kept", hop=len(best[0].nodes) if best else 0, paths=[", ".join(self.hops(w.path)) for w in best]
        )
        return best

    def sufficient(self) -> tuple[str, ...] | None:
        """The answers, if the model finds the triples so far enough; else None."""
        texts = self._ask("tog/sufficient", "decide", [{"triples": self._triples()}], [self._read_sufficient])
        return texts[0] or None

    def last_word(self) -> tuple[str, ...]:
        """The answers that the model gives at the end of the search."""
        return self._ask("tog/answer", "decide", [{"triples": self._triples()}], [self._read_answer])[0] or ()

    def _relations(self, frontier: Sequence[Walk]) -> list[tuple[Walk, Step, float]]:
        every: list[tuple[Walk, dict[str, Step]]] = []
        expansions = self._graph.map(
            lambda walk: self._graph.next_steps(RelationPath(walk.end)), frontier, tolerated=(StoreTimeout,)
        )
        for walk, expansion in zip(frontier, expansions):
            if isinstance(expansion, StoreTimeout):
                self._trace.event("gave_up", path=self._name(walk.end), error=str(expansion))
                continue
            steps = expansion.steps
            back = {walk.path.steps[-1].reversed()} if walk.path.steps else set()
            named: dict[str, Step] = {}
            for step in steps:
                if step not in back:
                    named.setdefault(self._step_name(step), step)
            if named:
                every.append((walk, named))
        values = [
            {"entity": self._name(walk.end), "relations": list(named), "width": self._width} for walk, named in every
        ]
        readers = [self._relation_reader(list(named)) for _, named in every]
        read = self._ask("tog/relations", "filter", values, readers)
        return [
            (walk, named[name], score)
            for (walk, named), scores in zip(every, read)
            for name, score in (scores or ())[: self._width]
        ]

    def _neighbours(self, steps: Sequence[tuple[Walk, Step, float]]) -> list[Walk]:
        found: list[Walk] = []
        several: list[tuple[Walk, Step, float, list[Value]]] = []
        reached = self._graph.map(
            lambda asked: self._graph.ends(RelationPath(asked[0].end, (asked[1],)), limit=LISTED),
            steps,
            tolerated=(StoreTimeout, PartialResult),
        )
        for (walk, step, score), there in zip(steps, reached):
            if isinstance(there, Exception):
                self._trace.event("gave_up", path=self._step_name(step), error=str(there))
                continue
            ends = self._drawn(walk, there.values)
            if len(ends) == 1:
                found.append(self._onward(walk, step, ends[0], score))
            elif ends:
                several.append((walk, step, score, ends))
        # all at once, not name by name
        self._graph.labels(end for _, _, _, ends in several for end in ends if isinstance(end, Entity))
        values = [
            {"relation": self._step_name(step), "entities": [self._name(end) for end in ends]}
            for _, step, _, ends in several
        ]
        readers = [self._entity_reader(len(ends)) for _, _, _, ends in several]
        read = self._ask("tog/entities", "entity", values, readers)
        for (walk, step, score, ends), scores in zip(several, read):
            # as published, a reply of another form counts all the same
            shares = scores or (1 / len(ends),) * len(ends)
            found += [self._onward(walk, step, end, score * (share or 0.0)) for end, share in zip(ends, shares)]
        return found

    def _drawn(self, walk: Walk, ends: Sequence[Value]) -> list[Value]:
        # a blank node, which an update may make, cannot be asked about
        ends = [end for end in ends if not (isinstance(end, Entity) and end.iri.startswith("_:"))]
        ends = [end for end in ends if end not in (walk.path.topic, *walk.nodes)]
        if len(ends) >= MANY:
            ends = self._random.sample(ends, min(self._settings["tog.sampled"], len(ends)))
        return ends

    @staticmethod
    def _onward(walk: Walk, step: Step, end: Value, score: float) -> Walk:
        return Walk(walk.path.then(step), (*walk.nodes, end), score)

    def _ask(
        self,
        prompt: str,
        stage: Stage,
        values: Sequence[Mapping[str, object]],
        readers: Sequence[Callable[[str], Reading]],
    ) -> list:
        prompts = self._resources.prompts
        asked = [Prompt(prompts.render(prompt, question=self._question, **each), stage) for each in values]
        return ask_and_read(self._models, prompts, asked, readers, reask=self._settings["llm.reask"])

    def _relation_reader(self, names: list[str]) -> Callable[[str], Reading[tuple[tuple[str, float], ...]]]:
        known = {normalise(name): name for name in names}

        def read(text: str) -> Reading[tuple[tuple[str, float], ...]]:
            found: dict[str, float] = {}
            for line in text[-20_000:].splitlines():
                match = _FORM.search(line) or (None if self._faithful else _LOOSE.match(line))
                if match is None:
                    continue
                name = match[1] if self._faithful else known.get(normalise(match[1]))
                if name in names:
                    found.setdefault(name, min(float(match[2]), 1.0))
            ordered = tuple(sorted(found.items(), key=lambda pair: -pair[1]))
            return Reading(ordered or None, False, "It rates none of the relations in the form that was asked for.")

        return read

    def _entity_reader(self, size: int) -> Callable[[str], Reading[tuple[float | None, ...]]]:
        def read(text: str) -> Reading[tuple[float | None, ...]]:
            numbers = re.findall(r"\b[01](?:\.\d+)?\b|\B\.\d+\b", text.rsplit("Score:", 1)[-1][:5000])
            if len(numbers) == size:
                return Reading(tuple(map(float, numbers)), False, "")
            if self._faithful:
                return Reading(None, False, f"It does not give {size} numbers.")
            return read_scores(text, size=size)

        return read

    def _read_sufficient(self, text: str) -> Reading[tuple[str, ...]]:
        braces = _BRACES.findall(text[:20_000])
        verdict = next((b.strip().lower() for b in braces if b.strip().lower() in ("yes", "no")), None)
        if self._faithful:
            # the published evaluator reads the first braces as verdict, and the answer wherever braces follow
            verdict = braces[0].strip().lower() if braces else None
        if verdict == "no":
            return Reading((), False, "")
        if verdict != "yes":
            return Reading(None, False, "It begins neither with {Yes} nor with {No}.")
        return self._read_answer(text)

    def _read_answer(self, text: str) -> Reading[tuple[str, ...]]:
        braces = [b for b in _BRACES.findall(text[-20_000:]) if b.strip().lower() not in ("yes", "no")]
        if braces and not self._faithful and _OBJECT.match(braces[-1]):
            return read_numbered_answers(text)
        if not braces:
            return Reading(None, False, "It has no answer in braces.")
        said = braces if self._faithful else braces[-1:]
        parts = [part.strip()[:500] for each in said for part in each.split(";")]
        return Reading(tuple(dict.fromkeys(part for part in parts if part)) or None, False, "The braces are empty.")

    def _triples(self) -> list[str]:
        texts: dict[str, None] = {}
        for triple in self.triples():
            words = relation_words(triple.relation, self._graph.schema, self._graph.relation_labels)
            texts[f"{self._name(triple.subject)}; {words}; {self._name(triple.object)}"] = None
        return list(texts)

    def triples(self) -> tuple[Triple, ...]:
        """The triples of all kept walks."""
        found: dict[Triple, None] = {}
        for walk in self.walks:
            for step, here, there in zip(walk.path.steps, (walk.path.topic, *walk.nodes), walk.nodes):
                subject, object_ = (here, there) if step.direction == "out" else (there, here)
                if isinstance(subject, Entity):
                    found[Triple(subject, step.relation, object_)] = None
        return tuple(found)

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
        # published: a node without a name, such as a mediator
        # lists of names are set apart by semicolons
        return named.name.replace(";", ",") if named.name != named.id else "an unnamed entity"


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer as Think-on-Graph does. Arguments and errors as of `top.answer`; `names` are not used: nothing is masked."""
    assert resources.models is not None
    search = ThinkOnGraph(question, resources, trace)
    notes = (f"Explored by {resources.models.name}.",)
    empty = Answer(question, "no_answer", method=METHOD, notes=notes, topics=tuple(topics))
    frontier = [Walk(RelationPath(topic.value), ()) for topic in topics if isinstance(topic.value, Entity)]
    said: tuple[str, ...] | None = None
    try:
        for _ in range(resources.settings["explore.depth"]):
            frontier = search.hop(frontier)
            if not frontier:
                break
            said = search.sufficient()
            if said:
                trace.event("accepted", answers=list(said)[:20])
                break
        if not said:
            # published: without triples the model thinks step by step, with some it answers from them as it can
            said = search.last_word() if search.walks else ()
            if not search.walks:
                recall = recalled(question, "cot", resources, trace)
                return replace(recall, method=METHOD, topics=tuple(topics), notes=(*notes, *recall.notes))
    except BudgetExhausted as error:
        return _best_so_far(search, empty, error, resources, trace)
    if not said:
        return replace(empty, reason="the language model's answer could not be read")
    return _grounded(search, said, empty, resources, trace)


def _best_so_far(
    search: ThinkOnGraph, empty: Answer, error: BudgetExhausted, resources: Resources, trace: Trace
) -> Answer:
    """What the best walk of the last finished hop leads to, where the budget ended the search."""
    spent = replace(empty, status="budget_exhausted", reason=f"The budget is spent: {error}.")
    longest = max((len(walk.nodes) for walk in search.walks), default=0)
    ends = [walk.end for walk in search.walks if len(walk.nodes) == longest and walk.nodes][:1]
    if not ends:
        return spent
    with trace.grace():
        try:
            graph = resources.graph.for_question(trace)
            found = read_chosen(graph, empty, graph.named(ends), _leading_to(search, set(ends)), trace)
        except (StoreError, BudgetExhausted) as failure:
            trace.event("gave_up", path="", error=str(failure))
            return spent
    notes = (*found.notes, "The search was not finished: this is the best walk so far.")
    return replace(found, status="budget_exhausted", reason=spent.reason, notes=notes)


def _grounded(search: ThinkOnGraph, said: Sequence[str], empty: Answer, resources: Resources, trace: Trace) -> Answer:
    """The answers as nodes of the walks where every one of them is a single one by its name; else as the model's."""
    graph = resources.graph.for_question(trace)
    nodes = list(dict.fromkeys(node for walk in search.walks for node in walk.nodes))
    by_name: dict[str, list[Named]] = {}
    for named in graph.named(nodes):
        by_name.setdefault(normalise(named.name.replace(";", ",")), []).append(named)
    found = [by_name.get(normalise(text), []) for text in said]
    if not all(len(same) == 1 for same in found):
        texts = tuple(Named(Literal(text), "", text) for text in said)
        note = "Not every answer is an entity that was reached: this is the language model's."
        return replace(empty, status="answered", answers=texts, grounding="model", notes=(*empty.notes, note))
    wanted = {same[0].value: same[0] for same in found}
    return read_chosen(graph, empty, list(wanted.values()), _leading_to(search, set(wanted)), trace)


def _leading_to(search: ThinkOnGraph, wanted: Collection[Value]) -> Iterator[Candidate]:
    """The kept walks up to each wanted node, as paths restricted to the entities that were chosen on the way: each walk
    by itself, then all that go along the same path together.
    """
    along: dict[RelationPath, dict[tuple[Value, ...], None]] = {}
    for walk in search.walks:
        for length in range(1, len(walk.nodes) + 1):
            if walk.nodes[length - 1] in wanted:
                path = RelationPath(walk.path.topic, walk.path.steps[:length])
                along.setdefault(path, {})[walk.nodes[: length - 1]] = None
    for path, chains in along.items():
        for chain in chains:
            yield _restricted_to(search, path, [chain])
    for path, chains in along.items():
        if len(chains) > 1:
            yield _restricted_to(search, path, list(chains))


def _restricted_to(search: ThinkOnGraph, path: RelationPath, chains: Sequence[tuple[Value, ...]]) -> Candidate:
    """A path by way of the nodes of some chains; at each place there may be those of any of them."""
    restricted = tuple(
        (place, tuple(dict.fromkeys(node for node in nodes if isinstance(node, Entity))))
        for place, nodes in enumerate(zip(*chains), 1)
    )
    return Candidate(path, ", ".join(search.hops(path)), restricted=restricted)
