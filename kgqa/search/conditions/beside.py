"""Looks up what is beside the walks of a path: the types of its ends, and the fields of its nodes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step, Value
from kgqa.model.conditions import NUMBER_TEXT, NUMBERS, XSD
from kgqa.rank.embedding.encoder import CachedEncoder, cosines
from kgqa.rank.lexical import stem
from kgqa.schema import INSTANCE_OF
from kgqa.search.classes import class_relations
from kgqa.search.conditions.requests import Measure
from kgqa.search.conditions.times import is_date, is_number_of_year, is_unknown
from kgqa.search.kinds import value_kinds
from kgqa.search.words import stem_list, stems
from kgqa.text.words import relation_words, type_words

MAX_WALKS = 1000
MAX_FIELDS = 3
"""Most fields whose values are looked up for one measure."""
ALIGNED = 0.5
"""Least cosine of a measure and a relation that have no word in common."""
NEAR, AHEAD, ONLY = 0.35, 0.1, 0.15
"""The same for a relation to numbers, how far it is ahead of the others to numbers, and for the only one to numbers."""
COVERED = 0.5
"""Least share of the nodes that have a value."""


@dataclass(frozen=True, slots=True)
class Field:
    """A way from a node of the walks to a value.

    Attributes:
        steps: The way; two steps if it passes a mediator.
        words: The relations in words.
        fit: How well the words fit what was looked for, 0 to 1.
        without: The nodes without a value, sorted; none if there are too many nodes to look up.
        scale: How the values are compared; years may be numbers.
    """

    steps: tuple[Step, ...]
    words: str
    fit: float
    without: tuple[Value, ...] = ()
    scale: OneOf["number", "day"] = "number"


def is_number(value: Value) -> bool:
    """Return whether a value is a number."""
    if not isinstance(value, Literal) or not re.fullmatch(NUMBER_TEXT, value.value):
        return False
    return value.datatype in NUMBERS or not value.datatype.startswith(XSD) or value.datatype == XSD + "string"


class Beside:
    """Lookups beside the walks of one question's paths. `type_steps`: the steps from an entity to its types.

    The lookups raise `StoreTimeout` and `PartialResult`.
    """

    def __init__(self, graph: KnowledgeGraph, encoder: CachedEncoder | None) -> None:
        self.graph = graph
        self._encoder = encoder
        self.type_steps = tuple(
            Step(each) for each in class_relations(graph) if each == INSTANCE_OF or each in graph.tables.relations
        )

    def words(self, step: Step) -> str:
        return relation_words(step.relation, self.graph.schema, self.graph.tables.relation_labels)

    def kinds(self, steps: Sequence[Step]) -> dict[Step, set[str]]:
        """Return what each step leads to: "date", "number", "boolean", "text" or "thing"."""
        return {step: value_kinds(kinds, self.graph.schema) for step, kinds in self.graph.paths.kinds(steps).items()}

    def steps(self, path: RelationPath) -> tuple[Step, ...]:
        """Return the possible next steps of a path."""
        return tuple(self.graph.paths.steps([Candidate(path)])[0].steps)

    def pairs(self, candidate: Candidate, steps: Sequence[Step]) -> list[tuple[Value, Value]]:
        """Return pairs of an end of a path and a value at the end of `steps` from it, at most `MAX_WALKS`."""
        (walks,) = self.graph.paths.walks([replace(candidate, path=candidate.path.then(*steps))], limit=MAX_WALKS)
        return [(walk[len(candidate.path)], walk[-1]) for walk in walks]

    def ends(self, candidate: Candidate) -> tuple[Value, ...]:
        """Return the ends of a path, at most `MAX_WALKS`."""
        return tuple(self.graph.paths.ends([candidate], limit=MAX_WALKS)[0].values)

    def types(self, candidate: Candidate) -> dict[Entity, set[Value]]:
        """Return the types of the ends, each with the ends that have it."""
        found: dict[Entity, set[Value]] = defaultdict(set)
        for end, type_ in (pair for step in self.type_steps for pair in self.pairs(candidate, [step])):
            if isinstance(type_, Entity):
                found[type_].add(end)
        return found

    def type_names(self, types: Iterable[Entity]) -> dict[Entity, str]:
        """Return the name of each type."""
        labels = self.graph.labels(list(types))
        return {each: labels.get(each) or type_words(each.iri, self.graph.schema) for each in types}

    def similarity(self, text: str, others: Sequence[str]) -> list[float]:
        """Return the cosine of a text with each other text; 0 without an embedding model."""
        return [float(each) for each in cosines(self._encoder if text.strip() else None, text, others)]

    def fields(self, path: RelationPath, measure: Measure, *, either: bool = False) -> list[Field]:
        """Return the fields of a path's ends that fit a measure, best first.

        `either` says that relations may also be followed backwards.
        """
        steps = [step for step in self.steps(path) if step.direction == "out" or either]
        mediator, value = self.graph.tables.leads_to_mediator, "number" if measure.scale == "number" else "date"
        kinds = {} if either else self.kinds(steps)
        # a text may be a number or a date, and a number may be a year
        may_be = {value, "number", "text"}
        steps = [step for step in steps if mediator(step) or not kinds.get(step) or kinds[step] & may_be]
        texts = [self.words(step) for step in steps]
        fits = self._fits(measure, texts, [type_words(step.relation, self.graph.schema) for step in steps])
        if not any(fits) and kinds and not measure.counted:
            steps = [step for step in steps if value in kinds[step]]
            texts = [self.words(step) for step in steps]
            # "the newest" has no words but those for dates
            alone = len(steps) == 1 and value == "date"
            fits = [ALIGNED] if alone else self._nearest(measure, texts, only=ONLY)
        found: list[Field] = []
        for step, text, fit in sorted(zip(steps, texts, fits), key=lambda item: -item[2])[:MAX_FIELDS]:
            if fit > 0 and self.graph.tables.leads_to_mediator(step):
                onward = [each for each in self.steps(path.then(step)) if each.direction == "out"]
                found += [Field((step, each), f"{text} {self.words(each)}", fit) for each in onward]
            elif fit > 0:
                found.append(Field((step,), text, fit))
        return found

    def flag(self, topic: Entity, words: Sequence[str]) -> Field | None:
        """Return the relation of a topic to true or false that words are about; None if there is none.

        It has all of the words, or none and is near to them: "carries trucks" does not say who carries passengers.
        """
        steps = [step for step in self.steps(RelationPath(topic)) if step.direction == "out"]
        kinds = self.kinds(steps)
        wanted = {stem(word) for word in words}
        flags = [step for step in steps if "boolean" in kinds[step]]
        shared = [wanted.intersection(stems(self.words(step))) for step in flags]
        whole = [step for step, common in zip(flags, shared) if common == wanted]
        others = [step for step, common in zip(flags, shared) if not common]
        texts = [self.words(step) for step in others]
        near = dict(zip(others, self._nearest(Measure((), phrase=" ".join(words)), texts)))
        fits = dict.fromkeys(whole, 0.9) or {step: fit for step, fit in near.items() if fit}
        if not wanted or not fits:
            return None
        step = max(fits, key=fits.__getitem__)
        return Field((step,), self.words(step), fits[step])

    def _nearest(self, measure: Measure, texts: Sequence[str], *, only: float = NEAR) -> list[float]:
        """Return the cosine of the relation that is nearest to a measure, if it is ahead of the others; 0 for these."""
        close = self._close(measure, texts)
        first, second = sorted([*close, 0.0, 0.0], reverse=True)[:2]
        least = only if len(texts) == 1 else max(NEAR, second + AHEAD)
        return [cosine if cosine == first >= least else 0.0 for cosine in close]

    def _close(self, measure: Measure, texts: Sequence[str]) -> list[float]:
        return self.similarity(measure.phrase or " ".join(measure.words[:8]), texts)

    def _fits(self, measure: Measure, texts: Sequence[str], ids: Sequence[str]) -> list[float]:
        """Return how well relations fit a measure: by a word of the name or id, else by cosine; 0 below `ALIGNED`."""
        wanted = [stem(word) for word in measure.words]
        others = {*stem_list("end"), *(stem_list("birth") if measure.scale == "day" else ())}.difference(wanted)
        close = self._close(measure, texts)
        found = []
        for text, id_, cosine in zip(texts, ids, close):
            words = {*stems(text), *stems(id_)}
            common = [index for index, word in enumerate(wanted) if word in words]
            lexical = 0.9 - 0.03 * common[0] + 0.1 * cosine if common else 0.0
            alike = cosine if cosine >= ALIGNED and measure.scale != "day" else 0.0
            found.append(max(lexical, alike) if others.isdisjoint(words) else 0.0)
        return found

    def compared(self, candidate: Candidate, measure: Measure, at: int | None = None) -> Field | None:
        """Return the best field with numbers or dates, as the measure compares, for enough of the nodes.

        Nodes whose value is unknown are left out. If there are too many nodes or values to look up, the share of those
        with a value is unknown, and the field is taken.

        Args:
            candidate: The path.
            measure: The measure.
            at: The index in a walk of the nodes that have the field; None for the ends.
        """
        before = candidate if at is None else until(candidate, at)
        birth = set(stem_list("birth"))
        outward = self.steps(candidate.path) if measure.events and at is None else ()
        if any(step.direction == "out" and birth & set(stems(self.words(step))) for step in outward):
            return None  # a person's own dates don't say who was the first president
        for field in self.fields(before.path, measure):
            pairs, nodes = self.pairs(before, field.steps), self.ends(before)
            is_day = measure.scale == "day" and not all(is_number_of_year(value) for _, value in pairs)
            fits = is_date if is_day else is_number
            valued = {node for node, value in pairs if fits(value)}
            scaled = replace(field, scale="day" if is_day else "number")
            if valued and max(len(pairs), len(nodes)) >= MAX_WALKS:
                return scaled
            unknown = {node for node, value in pairs if is_unknown(value)}.difference(valued)
            if valued and len(valued) >= COVERED * (len(nodes) - len(unknown)):
                return replace(scaled, without=tuple(sorted(set(nodes).difference(valued), key=str)))
        return None


def until(candidate: Candidate, at: int) -> Candidate:
    """Return a path up to the node at an index of its walks, with the joins and conditions there and before."""
    return Candidate(
        RelationPath(candidate.path.topic, candidate.path.steps[:at]),
        "",
        joins=tuple(each for each in candidate.joins if each.at <= at),
        conditions=tuple(each for each in candidate.conditions if each.at <= at),
    )
