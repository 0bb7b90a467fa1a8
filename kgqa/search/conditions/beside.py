"""Looks up what is beside the walks of a path: the types of its ends, and the fields of its nodes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step, Value
from kgqa.model.conditions import DATE_TEXT, DAY, MONTH, NUMBER_TEXT, NUMBERS, XSD, YEAR, Condition
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import stem
from kgqa.search.conditions.measures import Measure
from kgqa.search.tolerance import TOLERATED
from kgqa.text.words import relation_words, type_words

MAX_WALKS = 1000
MAX_FIELDS = 3
"""Most fields whose values are looked up for one measure."""
ALIGNED = 0.5
"""Least cosine of a measure and a relation that have no word in common."""
COVERED = 0.5
"""Least share of the nodes that have a value."""
_DATE = re.compile(rf"{DATE_TEXT[YEAR]}|{DATE_TEXT[MONTH]}|{DATE_TEXT[DAY]}([TZ+-].*)?")
_OF_THE_END = frozenset(map(stem, ("death", "died", "dead", "end", "to", "until", "dissolved", "closed", "burial")))


_OF_BIRTH = frozenset(map(stem, ("birth", "born", "baptism", "baptized", "baptised", "christening", "christened")))


@dataclass(frozen=True, slots=True)
class Field:
    """A way from a node of the walks to a value.

    Attributes:
        steps: The way; two steps if it passes a mediator.
        words: The relations in words.
        fit: How well the words fit what was looked for, 0 to 1.
        values: Pairs of a node and a value.
        without: The nodes without a value, sorted; none if there are too many nodes to look up.
    """

    steps: tuple[Step, ...]
    words: str
    fit: float
    values: tuple[tuple[Value, Value], ...] = ()
    without: tuple[Value, ...] = ()


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of all words of a text, stopwords included."""
    return tuple(stem(word) for word in re.findall(r"[^\W_]+", text.lower()))


def is_number(value: Value) -> bool:
    """Return whether a value is a number."""
    if not isinstance(value, Literal) or not re.fullmatch(NUMBER_TEXT, value.value):
        return False
    return value.datatype in NUMBERS or not value.datatype.startswith(XSD) or value.datatype == XSD + "string"


def is_date(value: Value) -> bool:
    """Return whether a value is a year, a month or a day."""
    if not isinstance(value, Literal) or not _DATE.fullmatch(value.value):
        return False
    return value.datatype not in NUMBERS


class Beside:
    """Lookups beside the walks of one question's paths; results are kept for the question."""

    def __init__(self, graph: KnowledgeGraph, encoder: CachedEncoder | None) -> None:
        self.graph = graph
        self._encoder = encoder
        self._steps: dict[RelationPath, tuple[Step, ...]] = {}

    def words(self, step: Step) -> str:
        return relation_words(step.relation, self.graph.schema, self.graph.tables.relation_labels)

    def steps(self, path: RelationPath) -> tuple[Step, ...]:
        """Return the possible next steps of a path; none if the lookup takes too long."""
        if path not in self._steps:
            try:
                self._steps[path] = self.graph.paths.steps([Candidate(path)])[0].steps
            except TOLERATED:
                self._steps[path] = ()
        return self._steps[path]

    def pairs(self, candidate: Candidate, steps: Sequence[Step], at: int | None = None) -> list[tuple[Value, Value]]:
        """Return pairs of a node of the walks and a value at the end of `steps` from this node.

        Args:
            candidate: The path.
            steps: The way from the node to the value.
            at: The index of the node in a walk; None for the end.
        """
        return self._pairs(candidate, steps, at)[0]

    def _pairs(
        self, candidate: Candidate, steps: Sequence[Step], at: int | None
    ) -> tuple[list[tuple[Value, Value]], bool]:
        """Return what `pairs` returns, and whether these are all pairs."""
        before = self._until(candidate, at)
        path = before.path.then(*steps)
        try:
            walks = self.graph.paths.walks(
                [Candidate(path, joins=before.joins, conditions=before.conditions)], limit=MAX_WALKS
            )[0]
        except TOLERATED:
            return [], False
        index = len(before.path)
        complete = len(walks) < min(MAX_WALKS, self._row_cap())
        return list(dict.fromkeys((walk[index], walk[-1]) for walk in walks)), complete

    @staticmethod
    def _until(candidate: Candidate, at: int | None) -> Candidate:
        """Return a path up to the node at an index of its walks, with the joins and conditions there and before."""
        if at is None:
            return candidate
        return Candidate(
            RelationPath(candidate.path.topic, candidate.path.steps[:at]),
            "",
            joins=tuple(each for each in candidate.joins if each.at <= at),
            conditions=tuple(each for each in candidate.conditions if each.at <= at),
        )

    def ends(self, candidate: Candidate) -> tuple[Value, ...]:
        """Return the ends of a path, at most `MAX_WALKS`; none if the lookup takes too long."""
        return self._ends(candidate)[0]

    def _ends(self, candidate: Candidate) -> tuple[tuple[Value, ...], bool]:
        """Return what `ends` returns, and whether these are all ends."""
        if not candidate.path.steps:
            return (candidate.path.topic,), True
        try:
            found = self.graph.paths.ends(
                [Candidate(candidate.path, joins=candidate.joins, conditions=candidate.conditions)], limit=MAX_WALKS
            )[0]
        except TOLERATED:
            return (), False
        return found.values, not found.approximate and len(found.values) < self._row_cap()

    def _row_cap(self) -> float:
        """Return the number of rows at which the store cuts off results; infinity if it doesn't."""
        return self.graph.store.capabilities.row_cap or math.inf

    def types(self, candidate: Candidate) -> dict[Entity, frozenset[Value]]:
        """Return the types of the ends, each with the ends that have it."""
        found: dict[Entity, set[Value]] = {}
        for predicate in self.graph.schema.types:
            if predicate not in self.graph.tables.relations:
                continue
            for end, type_ in self.pairs(candidate, [Step(predicate)]):
                if isinstance(type_, Entity):
                    found.setdefault(type_, set()).add(end)
        return {type_: frozenset(ends) for type_, ends in found.items()}

    def type_names(self, types: Sequence[Entity]) -> list[str]:
        """Return the name of each type."""
        labels = self.graph.labels(types)
        return [labels.get(type_) or type_words(type_.iri, self.graph.schema) for type_ in types]

    def similarity(self, text: str, others: Sequence[str]) -> list[float]:
        """Return the cosine of a text with each other text; 0 without an embedding model."""
        if self._encoder is None or not others or not text.strip():
            return [0.0] * len(others)
        return [float(each) for each in self._encoder.encode(list(others)) @ self._encoder.encode_questions([text])[0]]

    def fields(
        self, candidate: Candidate, measure: Measure, at: int | None = None, *, either: bool = False
    ) -> list[Field]:
        """Return the fields of a node of the walks that fit a measure, best first, without their values.

        `either` says that relations may also be followed backwards.
        """
        index = len(candidate.path) if at is None else at
        path = RelationPath(candidate.path.topic, candidate.path.steps[:index])
        steps = [step for step in self.steps(path) if step.direction == "out" or either]
        if measure.events and at is None and any(set(stems(self.words(step))) & _OF_BIRTH for step in steps):
            return []  # a person's own dates don't say who was the first president
        texts = [self.words(step) for step in steps]
        fits = self._fits(measure, texts)
        found: list[Field] = []
        for step, text, fit in sorted(zip(steps, texts, fits), key=lambda item: -item[2])[:MAX_FIELDS]:
            if fit <= 0:
                continue
            if self.graph.tables.leads_to_mediator(step):
                onward = [each for each in self.steps(path.then(step)) if each.direction == "out"]
                found += [Field((step, each), f"{text} {self.words(each)}", fit) for each in onward]
            else:
                found.append(Field((step,), text, fit))
        return found

    def _fits(self, measure: Measure, texts: Sequence[str]) -> list[float]:
        """Return how well relations fit a measure: by a common word, else by cosine; 0 below `ALIGNED`."""
        wanted = [stem(word) for word in measure.words]
        others = _OF_THE_END | _OF_BIRTH if measure.scale == "day" else _OF_THE_END
        close = self.similarity(measure.phrase or " ".join(measure.words[:8]), texts)
        found = []
        for text, cosine in zip(texts, close):
            words = stems(text)
            if (set(words) & others) - set(wanted):
                found.append(0.0)
                continue
            common = [index for index, word in enumerate(wanted) if word in words]
            lexical = 0.9 - 0.03 * common[0] + 0.1 * cosine if common else 0.0
            alike = cosine if cosine >= ALIGNED and measure.scale != "day" else 0.0
            found.append(max(lexical, alike))
        return found

    def compared(self, candidate: Candidate, measure: Measure, at: int | None = None) -> Field | None:
        """Return the best field with numbers or dates, as the measure compares, for enough of the nodes.

        If there are too many nodes to look up, the share of those with a value is unknown, and the field is taken.
        """
        fits = is_date if measure.scale == "day" else is_number
        before = self._until(candidate, at)
        nodes: tuple[Value, ...] = ()
        known: bool | None = None  # whether all nodes are known
        for field in self.fields(candidate, measure, at)[: 2 * MAX_FIELDS]:
            values, complete = self._pairs(candidate, field.steps, at)
            right = tuple((node, value) for node, value in values if fits(value))
            if not right or len(right) < len(values):
                continue
            if known is None:
                nodes, known = self._ends(before)
            with_value = {node for node, _ in right}
            if known and not complete:
                # the values of some nodes reach the limit of walks, so the nodes are asked for without their values
                present = Condition(len(before.path), field.steps)
                with_it, complete = self._ends(replace(before, conditions=(*before.conditions, present)))
                with_value.update(with_it)
            if not (known and complete):
                return replace(field, values=right)
            if len(with_value) >= COVERED * len(with_value.union(nodes)):
                without = sorted(set(nodes) - with_value, key=str)
                return replace(field, values=right, without=tuple(without))
        return None
