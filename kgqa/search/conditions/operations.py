"""Finds the operation that a question asks for on the best paths; nothing if no path and value fit well enough."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from kgqa.model import Candidate, Entity, Literal, RelationPath, Step, Value
from kgqa.model.conditions import DATE_TEXT, NUMBERS, Comparison, Condition, Operation, OperationKind
from kgqa.rank.lexical import STOPWORDS, stem
from kgqa.search.classes import starts_at_instances
from kgqa.search.conditions.beside import NEAR, Beside, Field, is_number, until
from kgqa.search.conditions.requests import Request
from kgqa.search.conditions.times import is_date, is_number_of_year
from kgqa.search.words import pattern, stems, word_list, word_table
from kgqa.text.words import grouped_steps, type_words

Ranked = Sequence[tuple[Candidate, float]]
"""Paths with their scores, best first."""
LEAST_SCORE = 0.3
"""Least score of a path with whose ends something is computed."""
LEAST_UNWORDED = 0.05
"""The same for a question that has no words for the path, as "who was the first President of the United States"."""
EXISTS_LEAST = 0.2
EXISTS_MARGIN = 0.1
"""Most difference between the score of the best path and that of a path that leads from one topic to the other."""
SHOWN_MISSING = 3
"""Most ends without a value that a note names."""
UNTYPED_LEAST = 0.5
"""Least score of a path whose ends have no types, so that the question's noun can't be compared with them."""
NOUN_FITS = 0.8
"""Least cosine of two nouns that mean the same; most nouns with a lower one are neighbours, as "songs" and "music"."""
NOUN_NEAR = 0.65
"""Least cosine of two nouns that may mean the same or the opposite, as "brothers" and "sister"."""


class Undecidable(Exception):
    """The graph does not tell whether the best path answers the question, and worse paths leave out a part of it."""


def head_of(name: str) -> str:
    """Return the stem of the main noun of a name, in the singular: the last word, or the last before "in" or "born"."""
    first, *others = re.findall(r"[^\W_]+", name.lower()) or [""]
    ends = STOPWORDS.union(word_list("after_noun"))
    head = stem([first, *takewhile(lambda word: word not in ends, others)][-1])
    return str(word_table("plurals", "en").get(head, head))


@dataclass(slots=True)
class Operations:
    """Finds operations for one question.

    Attributes:
        request: What the question asks to compute.
        topics: The topics of the question, in the order of the question.
        beside: Looks up types and values.
        named: The names of the topics in the question.
        words: The words of the question for the path, apart from its topics and cue words.
        hops: The number of hops that the wording suggests.
        asked: The kind of answer that the question asks for.
        notes: Sentences for the reader on what was left out.
    """

    request: Request
    topics: tuple[Entity, ...]
    beside: Beside
    named: str = ""
    words: tuple[str, ...] = ()
    hops: int = 1
    asked: str = ""
    notes: list[str] = field(default_factory=list)

    def found(self, ranked: Ranked) -> tuple[Candidate, float] | None:
        """Return the first path with an operation that fits the question, with its score; None if there is none.

        Args:
            ranked: Paths with their scores, best first.

        Raises:
            Undecidable: The graph does not tell whether the best path answers the question.
        """
        if self.request.kind in ("compare", "difference"):
            return self._between_topics()
        if self.request.kind == "exists":
            return self._existing(ranked)
        # in "which country ...", the entity with the name "Country" is the type of the answers, or a wrong topic
        noun_is_topic = bool(self.request.noun) and stems(self.request.noun) == stems(self.named)
        least = LEAST_SCORE if self.words else LEAST_UNWORDED
        for candidate, score in ranked:
            is_deep = self.request.kind == "count" and len(candidate.hops) > self.hops
            is_tried = (
                score >= least
                and not is_deep
                and (not noun_is_topic or starts_at_instances(self.beside.graph, candidate.path))
            )
            if is_tried and (found := self._on_ends(candidate, score)):
                return found, score
        return None

    def _fitting(self, candidate: Candidate, noun: str, score: float) -> Candidate | None:
        """Return the candidate if its ends are what a noun names, with a type if only some are; else None.

        Raises:
            Undecidable: Some ends have a type that the noun names, and others have no type.
        """
        path, last = candidate.path, candidate.path.steps[-1]
        is_known = set(stems(noun)) < set(stems(self.named)) or (
            len(path) == 1 and starts_at_instances(self.beside.graph, path)
        )
        if not stems(noun) or noun == "person" or is_known or self._are_amounts(candidate):
            return candidate
        types = self.beside.types(candidate)
        every = set[Value]().union(*types.values())
        # backwards, "children" leads to parents, and from there to siblings
        is_against = any(step.direction == "in" and self._means(self._noun_of(step), noun) for step in path.steps)
        if not every and last.direction == "in" and not is_against:
            is_near = self._is_near(noun, [self._noun_of(last)])
            return candidate if score >= UNTYPED_LEAST and not is_near else None
        names = self.beside.type_names(types)
        heads = {head_of(noun), *(head_of(word) for word in noun.split())}  # "packages build"
        same = [type_ for type_, name in names.items() if head_of(name) in heads]
        best = max(same, key=lambda type_: (stems(names[type_]) == stems(noun), len(types[type_])), default=None)
        if best is None and is_against:
            return None
        if self._is_property(path, noun) or (best is not None and types[best] == every):
            return candidate
        if best is None and self.request.kind == "extreme" and self._is_near(noun, list(names.values())):
            return candidate
        if best is None:
            type_ = self.beside.graph.tables.target_type(last) or ""
            return candidate if type_ and self._means(type_words(type_, self.beside.graph.schema), noun) else None
        if len(every) < len(self.beside.ends(candidate)):
            raise Undecidable
        is_one = Condition(len(path), self.beside.type_steps[:1], best)
        return replace(candidate, conditions=(*candidate.conditions, is_one))

    def _are_amounts(self, candidate: Candidate) -> bool:
        """Return whether the ends are numbers of what is counted: `population` for "how many people"."""
        last = candidate.path.steps[-1]
        is_number = self.request.kind == "count" and "number" in self.beside.kinds([last])[last]
        return is_number and self.beside.similarity(self.request.noun, [self._noun_of(last)])[0] >= NEAR

    def _is_property(self, path: RelationPath, noun: str) -> bool:
        """Return whether the last relation of a path, without its domain, says that its ends are what a noun names."""
        last = path.steps[-1]
        return last.direction == "out" and self._means(self._noun_of(last), noun)

    def _noun_of(self, step: Step) -> str:
        """Return the words of a relation without its domain, or its label."""
        graph = self.beside.graph
        labelled = step.relation in graph.tables.relation_labels
        return self.beside.words(step) if labelled else type_words(step.relation, graph.schema)

    def _is_near(self, noun: str, others: Sequence[str]) -> bool:
        return any(each >= NOUN_NEAR for each in self.beside.similarity(noun, others))

    def _means(self, words: str, noun: str) -> bool:
        """Return whether two nouns mean the same.

        "Mountain" and "mountain range", with a word in common, do not; nor do opposites such as "wives" and "husband".
        """
        asked, other = head_of(noun), head_of(words)
        if other in (asked, word_table("synonyms", "en").get(asked)):
            return True
        if {*stems(noun)} & {*stems(words)} or {asked, other} & {*word_list("with_opposite")}:
            return False
        return max(self.beside.similarity(each, [words])[0] for each in (noun, noun.removesuffix("s"))) >= NOUN_FITS

    def _on_ends(self, candidate: Candidate, score: float) -> Candidate | None:
        kind = self.request.kind
        fitting = self._fitting(candidate, self.request.noun, score)
        if kind == "extreme":
            return (self._ordered(candidate, fitting, score) if fitting else None) or self._passing(candidate, score)
        if fitting is None:
            return None
        if kind == "count":
            return self._counted(candidate, fitting)
        if kind not in ("sum", "average"):
            return self._ordered(candidate, fitting, score)
        compared = self._compared(fitting)
        return replace(fitting, operation=Operation(kind, compared.steps)) if compared else None

    def _counted(self, candidate: Candidate, fitting: Candidate) -> Candidate | None:
        values = self.beside.ends(fitting)
        if not values and not self.beside.ends(replace(candidate, conditions=())):
            raise Undecidable  # 0 is an answer only if conditions of the question exclude all ends
        if values and all(map(is_number, values)):
            return fitting  # the graph has the number
        outward = candidate.path.steps[-1].direction == "out" and not candidate.conditions
        is_one = len(values) == 1 and outward and not self._is_property(fitting.path, self.request.noun)
        if is_one or any(isinstance(value, Literal) for value in values):
            return None  # "how many cities" is not about the one capital
        return replace(fitting, operation=Operation("count"))

    def _compared(self, candidate: Candidate, at: int | None = None) -> Field | None:
        """Return the field that is compared or added, and note which ends have no value."""
        found = self.beside.compared(candidate, self.request.measure, at)
        if found is not None and found.without:
            names = [named.name for named in self.beside.graph.named(found.without[:SHOWN_MISSING])]
            more = f" and {len(found.without) - SHOWN_MISSING} more" if len(found.without) > SHOWN_MISSING else ""
            self.notes.append(f"Computed without {', '.join(names)}{more}, which have no “{found.words}” in the graph.")
        return found

    def _ordered(self, candidate: Candidate, fitting: Candidate, score: float) -> Candidate | None:
        """Order the ends by a value of theirs or of an event before them, or by how many others they have or follow."""
        request, measure, path = self.request, self.request.measure, candidate.path
        is_mediator = self.beside.graph.tables.leads_to_mediator
        are_literals = any(isinstance(end, Literal) for end in self.beside.ends(candidate))
        if are_literals and pattern(r"\s*who(?:m|se)?\b").match(request.text):
            return None  # "who was the first president" doesn't ask for the date
        before_last = len(path) - len(grouped_steps(path, is_mediator)[-1])
        if request.kind == "most of" and not request.owned and before_last:
            passed = Candidate(RelationPath(path.topic, path.steps[:before_last]))
            if self._fitting(passed, request.counted, score) is not None:
                return replace(fitting, operation=self._ordering(at=before_last, counted=True))
        inner = [at for at in range(len(path) - 1, 0, -1) if is_mediator(path.steps[at - 1])]
        for at in (*inner, None) if measure.events else (None, *inner):
            if compared := self._compared(fitting, at):
                return replace(fitting, operation=self._ordering(compared.steps, at=at, scale=compared.scale))
        fields = self.beside.fields(path, measure, either=True) if request.kind == "most of" else []
        return replace(fitting, operation=self._ordering(fields[0].steps, counted=True)) if fields else None

    def _passing(self, candidate: Candidate, score: float) -> Candidate | None:
        """Order the nodes before the ends, as in "the nationality of the tallest person"."""
        asks_for_them = not set(stems(self.asked)).isdisjoint(stems(self.request.noun))
        for at in () if asks_for_them else range(len(candidate.path) - 1, 0, -1):
            passed = until(candidate, at)
            fitting = self._fitting(passed, self.request.noun, score)
            if fitting and (compared := self._compared(fitting)):
                ordering = self._ordering(compared.steps, scale=compared.scale)
                first = self.beside.ends(replace(fitting, operation=ordering))
                onward = {node for node, _ in self.beside.pairs(passed, candidate.path.steps[at:])}
                if not onward.issuperset(first):
                    raise Undecidable  # the ends of another node are no answer
                return replace(candidate, operation=replace(ordering, at=at))
        return None

    def _ordering(self, steps: Sequence[Step] = (), **options: Any) -> Operation:
        """Return the operation that takes the most or the least, as the question asks."""
        kind: OperationKind = "most" if self.request.measure.most else "least"
        return Operation(kind, tuple(steps), rank=self.request.rank, **options)

    def _between_topics(self) -> tuple[Candidate, float] | None:
        """Compare two topics by a number or date that both have, or by how many others they have."""
        measure, is_difference = self.request.measure, self.request.kind == "difference"
        first, second = map(self._of_topic, self.topics) if len(self.topics) == 2 else ({}, {})
        best = max((first[steps] for steps in first if steps in second), key=lambda pair: pair[0].fit, default=None)
        if best is None or (is_difference and measure.scale != "number"):
            return None
        compared, has_values = best
        text = self.request.text
        if has_values and pattern("{yes_no}").search(text) and not pattern(r"\bor\b").search(text):
            return self._exceeding(compared)
        options = {"scale": compared.scale if has_values else "number", "counted": not has_values}
        operation = (
            Operation("difference", compared.steps, topics=self.topics)
            if is_difference
            else self._ordering(compared.steps, topics=self.topics, **options)
        )
        return Candidate(RelationPath(self.topics[0]), compared.words, operation=operation), compared.fit

    def _exceeding(self, compared: Field) -> tuple[Candidate, float] | None:
        """Ask whether the value of the first topic is larger, or earlier, than that of the second."""
        first, second = map(RelationPath, self.topics)
        (limit, *others) = {value for _, value in self.beside.pairs(Candidate(second), compared.steps)}
        if others or not isinstance(limit, Literal) or limit.datatype not in {*NUMBERS, *DATE_TEXT}:
            return None
        is_more = Condition(len(compared.steps), (), Comparison(">" if self.request.measure.most else "<", limit))
        path = first.then(*compared.steps)
        hops = (compared.words,)
        asked = Candidate(path, compared.words, hops=hops, conditions=(is_more,), operation=Operation("exists"))
        return asked, compared.fit

    def _of_topic(self, topic: Entity) -> dict[tuple[Step, ...], tuple[Field, bool]]:
        """Return the fields by which a topic can be compared, each with whether its values are."""
        path, found = RelationPath(topic), {}
        is_counted = bool(self.request.counted)
        for each in self.beside.fields(path, self.request.measure, either=is_counted):
            values = [value for _, value in self.beside.pairs(Candidate(path), each.steps)]
            is_day = self.request.measure.scale == "day" and not all(map(is_number_of_year, values))
            fits = all(map(is_date if is_day else is_number, values))
            if values and (is_counted or fits):
                found[each.steps] = (replace(each, scale="day" if is_day else "number"), fits)
        return found

    def _existing(self, ranked: Ranked) -> tuple[Candidate, float] | None:
        """Ask whether a path leads from one topic to another: the best path that may lead to it."""
        if len(self.topics) == 1 and (flag := self.beside.flag(self.topics[0], self.words)):
            is_true = Condition(1, (), Comparison("=", Literal("true")))
            path = RelationPath(self.topics[0], flag.steps)
            return Candidate(
                path, flag.words, hops=(flag.words,), conditions=(is_true,), operation=Operation("exists")
            ), flag.fit
        alone = [(candidate, score) for candidate, score in ranked if not candidate.joins]
        if len(self.topics) != 2 or not alone:
            return None
        least = max(EXISTS_LEAST, alone[0][1] - EXISTS_MARGIN)
        first, second = self.topics
        asked = [
            (each, second if each.path.topic == first else first, score) for each, score in alone if score >= least
        ]
        led = [each for each in asked if each[1] in self.beside.ends(each[0])]
        for candidate, other, score in led or [each for each in asked[:1] if self._may_be_end(*each[:2])]:
            conditions = (*candidate.conditions, Condition(len(candidate.path), (), other))
            return replace(candidate, conditions=conditions, operation=Operation("exists")), score
        return None

    def _may_be_end(self, candidate: Candidate, other: Entity) -> bool:
        """Return whether an entity has a type in common with the ends of a path, so that "no" says something."""
        path, is_noise = RelationPath(other), self.beside.graph.tables.is_noise
        types = {type_ for type_ in self.beside.types(Candidate(path)) if not is_noise(type_.iri)}
        shared = types & self.beside.types(candidate).keys()
        return bool(shared) or candidate.path.steps[-1].reversed() in self.beside.steps(path)
