"""Finds the operation that a question asks for on the best paths; nothing if no path and value fit well enough."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kgqa.model import Candidate, Entity, Literal, RelationPath, Step, Value
from kgqa.model.conditions import Condition, Operation, OperationKind
from kgqa.rank.lexical import STOPWORDS, stem
from kgqa.search.conditions.beside import Beside, Field, is_date, is_number, stems
from kgqa.search.conditions.measures import Measure
from kgqa.search.conditions.requests import Request
from kgqa.text.words import grouped_steps, type_words

_AFTER_NOUN = frozenset(["spoken", "used", "within", "here", "won", "written", "born", "held", "made", "with"])
_WHO = re.compile(r"\s*who(?:m|se)?\b", re.IGNORECASE)
Scored = list[tuple[Candidate, float | None]]

TRIED = 5
"""Most paths on which an operation is tried."""
LEAST_SCORE = 0.3
"""Least score of a path with whose ends something is computed."""
TYPED_LEAST = 0.2
"""The same for a path with a type of its ends that the question names."""
UNTYPED_LEAST = 0.5
"""The same for a path whose ends have no types, so that the question's noun can't be compared with them."""
EXISTS_LEAST = 0.2
LEAST_UNWORDED = 0.05
"""The same for a question that has no words for the path, as "who was the first President of the United States"."""
EXISTS_MARGIN = 0.1
"""Most difference between the score of the best path and that of a path that leads from one topic to the other."""
SHOWN_MISSING = 3
"""Most ends without a value that a note names."""
NOUN_FITS = 0.8
"""Least cosine of two nouns that mean the same; most nouns with a lower one are neighbours, as "songs" and "music"."""
NOUN_NEAR = 0.65
"""Least cosine of two nouns that may mean the same or the opposite, as "brothers" and "sister"."""
_SINGULAR = {
    "children": "child", "grandchildren": "grandchild", "people": "person", "men": "man", "women": "woman",
    "wive": "wife", "movy": "movie",
}  # fmt: skip
_SPECIFIC = frozenset([
    "brother", "sister", "husband", "wife", "mother", "father", "son", "daughter", "uncle", "aunt", "nephew", "niece",
    "grandson", "granddaughter", "grandmother", "grandfather", "man", "woman", "boy", "girl", "king", "queen", "actor",
    "actress", "parent", "child", "ancestor", "descendant", "predecessor", "successor", "employer", "employee",
    "teacher", "student", "buyer", "seller", "winner", "loser", "victory", "defeat", "import", "export",
])  # fmt: skip
"""Stems of nouns whose opposites are close to them in an embedding model, so that a cosine doesn't tell them apart."""
_SAME = frozenset({("wife", "spouse"), ("husband", "spouse"), ("kid", "child")})
"""Stems of a question's noun and of a relation's that mean the same, though the words are close to others, too."""


def head_of(name: str) -> tuple[str, ...]:
    """Return the stem of the main noun of a name: the last word, or the last before "in", "spoken" and the like."""
    kept: list[str] = []
    for word in re.findall(r"[^\W_]+", name.lower()):
        if kept and (word in STOPWORDS or word in _AFTER_NOUN):
            break
        kept.append(word)
    return tuple(_SINGULAR.get(each, each) for each in map(stem, kept[-1:]))


def noun_head(noun: str) -> tuple[str, ...]:
    """Return the stem of the last word of a question's noun, in the singular."""
    return tuple(_SINGULAR.get(each, each) for each in stems(noun)[-1:])


class Operations:
    """Finds operations for one question.

    Args:
        request: What the question asks to compute.
        topics: The topics of the question, in the order of the question.
        beside: Looks up types and values.
        named: The names of the topics in the question.
    """

    def __init__(self, request: Request, topics: Sequence[Entity], beside: Beside, named: str = "") -> None:
        self._request = request
        # in "which country ...", the entity with the name "Country" is the type of the answers, or a wrong topic
        self._noun_is_topic = bool(request.noun) and stems(request.noun) == stems(named)
        self._topics = topics
        self._beside = beside
        self._named = frozenset(stems(named))
        self._least = LEAST_SCORE
        self._score = 0.0
        self._undecidable = False
        self.notes: list[str] = []

    def found(self, ranked: Scored, *, worded: bool = True) -> tuple[Candidate, float] | None:
        """Return the first path with an operation that fits the question, with its score; None if there is none.

        Args:
            ranked: Paths with their scores, best first.
            worded: Whether the question has words for the path, apart from its topics and cue words.
        """
        self._least = LEAST_SCORE if worded else LEAST_UNWORDED
        kind = self._request.kind
        if kind in ("compare", "difference"):
            return self._between_topics()
        if kind == "exists":
            return self._existing(ranked)
        for candidate, score in [*ranked[:TRIED], *ranked[TRIED:][-1:]]:
            if self._noun_is_topic and not self._is_instances(candidate):
                continue
            self._score = score or 0.0
            if self._score < min(self._least, TYPED_LEAST):
                continue
            found = self._on_ends(candidate)
            if self._undecidable:
                return None
            if found is not None and (self._score >= self._least or len(found.conditions) > len(candidate.conditions)):
                return found, self._score
        return None

    def _on_ends(self, candidate: Candidate) -> Candidate | None:
        request = self._request
        if request.kind == "most of":
            return self._most_of(candidate)
        fitting = self.of_kind(candidate, request.noun)
        if fitting is None:
            return None
        if request.kind == "count":
            values = self._beside.ends(fitting)
            if not values and not self._beside.ends(replace(candidate, conditions=())):
                # 0 is an answer only if conditions of the question exclude all ends; worse paths leave out a part of it
                self._undecidable = True
                return None
            if values and all(is_number(value) for value in values):
                return fitting  # the graph has the number
            if any(isinstance(value, Literal) for value in values):
                return None
            outward = candidate.path.steps[-1].direction == "out" and not candidate.conditions
            if len(values) == 1 and outward and not self._is_property(fitting, request.noun):
                return None  # "how many cities" is not about the one capital
            return replace(fitting, operation=Operation("count"))
        assert request.measure is not None
        if request.kind == "extreme":
            return self._extreme(fitting, request.measure)
        field = self._beside.compared(fitting, request.measure)
        if field is None or request.kind not in ("sum", "average"):
            return None
        self._note_missing(field)
        return replace(fitting, operation=Operation(request.kind, field.steps))

    def of_kind(self, candidate: Candidate, noun: str) -> Candidate | None:
        """Return the candidate if its ends are what a noun names, with a type if only some are; else None."""
        wanted = stems(noun)
        is_known = set(wanted) < self._named or (len(candidate.path) == 1 and self._is_instances(candidate))
        if not wanted or noun == "person" or is_known:
            return candidate
        head = noun_head(noun)
        last = candidate.path.steps[-1]
        if any(
            each.direction == "in" and self._means(self._relation_noun(each), noun) for each in candidate.path.steps
        ):
            return None  # backwards, "children" leads to parents, and from there to siblings
        types = self._beside.types(candidate)
        every = frozenset(end for ends in types.values() for end in ends)
        named = dict(zip(types, self._beside.type_names(list(types))))
        if not every and last.direction == "in":
            near = self._beside.similarity(noun, [self._relation_noun(last)])[0] >= NOUN_NEAR
            return candidate if self._score >= UNTYPED_LEAST and not near else None
        same = [type_ for type_, name in named.items() if head_of(name) == head]
        if same:
            best = max(same, key=lambda type_: (stems(named[type_]) == wanted, len(types[type_])))
            if types[best] == every or self._is_property(candidate, noun):
                return candidate
            if len(every) < len(self._beside.ends(candidate)):
                self._undecidable = True  # the other paths are no better
                return None
            step = Step(self._type_predicate())
            return replace(candidate, conditions=(*candidate.conditions, Condition(len(candidate.path), (step,), best)))
        if self._is_property(candidate, noun):
            return candidate
        declared = self._beside.graph.tables.target_type(last)
        return candidate if declared and self._means(type_words(declared, self._beside.graph.schema), noun) else None

    def _is_property(self, candidate: Candidate, noun: str) -> bool:
        """Return whether the last relation of a path, without its domain, says that its ends are what a noun names."""
        last = candidate.path.steps[-1]
        return last.direction == "out" and self._means(self._relation_noun(last), noun)

    def _relation_noun(self, step: Step) -> str:
        """Return the words of a relation without its domain, or its label."""
        graph = self._beside.graph
        return (
            self._beside.words(step)
            if step.relation in graph.tables.relation_labels
            else type_words(step.relation, graph.schema)
        )

    def _means(self, words: str, noun: str) -> bool:
        return head_of(words) == noun_head(noun) or self._alike(noun, words)

    def _alike(self, noun: str, words: str) -> bool:
        """Return whether two nouns with different main words mean the same.

        "Mountain" and "mountain range", with a word in common, do not; nor do opposites such as "wives" and "husband".
        """
        if set(stems(noun)) & set(stems(words)):
            return False
        heads = (*noun_head(noun), *head_of(words))
        if heads in _SAME:
            return True
        if _SPECIFIC & set(heads):
            return False
        singular = " ".join([*noun.split()[:-1], *(word.removesuffix("s") for word in noun.split()[-1:])])
        return max(self._beside.similarity(each, [words])[0] for each in (noun, singular)) >= NOUN_FITS

    def _note_missing(self, field: Field) -> None:
        """Note which ends have no value, because the answer is computed without them."""
        if field.without:
            names = [named.name for named in self._beside.graph.named(field.without[:SHOWN_MISSING])]
            more = f" and {len(field.without) - SHOWN_MISSING} more" if len(field.without) > SHOWN_MISSING else ""
            self.notes.append(f"Computed without {', '.join(names)}{more}, which have no “{field.words}” in the graph.")

    def _type_predicate(self) -> str:
        graph = self._beside.graph
        return next(each for each in graph.schema.types if each in graph.tables.relations)

    def _extreme(self, candidate: Candidate, measure: Measure) -> Candidate | None:
        """Order the ends by a field of theirs, or by the time of an event that the path passes."""
        request, path = self._request, candidate.path
        if _WHO.match(request.text) and any(isinstance(end, Literal) for end in self._beside.ends(candidate)):
            return None  # "who was the first president" doesn't ask for the date
        places: list[int | None] = [None]
        if measure.events:
            graph = self._beside.graph
            inner = [at for at in range(len(path) - 1, 0, -1) if graph.tables.leads_to_mediator(path.steps[at - 1])]
            places = [*inner, None]
        for at in places:
            if field := self._beside.compared(candidate, measure, at):
                self._note_missing(field)
                return replace(candidate, operation=self._ordering(field, measure, at, request.rank))
        return None

    @staticmethod
    def _ordering(
        field: Field, measure: Measure, at: int | None, rank: int, topics: tuple[Entity, ...] = ()
    ) -> Operation:
        kind: OperationKind = "most" if measure.most else "least"
        return Operation(kind, field.steps, scale=measure.scale, rank=rank, topics=topics, at=at)

    def _most_of(self, candidate: Candidate) -> Candidate | None:
        """Order the ends by a number, or by how many others they have or the path passes."""
        request, path = self._request, candidate.path
        assert request.measure is not None
        kind: OperationKind = "most" if request.measure.most else "least"
        fitting = self.of_kind(candidate, request.noun)
        if fitting is None:
            return None
        hops = grouped_steps(path, self._beside.graph.tables.leads_to_mediator)
        at = len(path) - len(hops[-1])
        if not request.owned and at and self._passes(candidate, at, request.counted):
            return replace(fitting, operation=Operation(kind, at=at, counted=True, rank=request.rank))
        if field := self._beside.compared(fitting, request.measure):
            return replace(fitting, operation=self._ordering(field, request.measure, None, request.rank))
        fields = self._beside.fields(fitting, request.measure, either=True)
        if not fields and not request.owned:
            worded = replace(request.measure, words=(), phrase=request.text)
            fields = self._beside.fields(fitting, worded, either=True)
        for field in fields:
            return replace(fitting, operation=Operation(kind, field.steps, counted=True, rank=request.rank))
        return None

    def _passes(self, candidate: Candidate, at: int, noun: str) -> bool:
        """Return whether the node at an index of the walks is what a noun names."""
        path = RelationPath(candidate.path.topic, candidate.path.steps[:at])
        return self.of_kind(Candidate(path, ""), noun) is not None

    def _between_topics(self) -> tuple[Candidate, float] | None:
        """Compare two topics by a number or date that both have, or by how many others they have."""
        request, topics = self._request, tuple(self._topics)
        if len(topics) != 2 or request.measure is None:
            return None
        fields = [self._of_topic(topic, request.measure, counted=bool(request.counted)) for topic in topics]
        if not all(fields):
            return None
        first, second = fields
        same = [field for field in first if any(field.steps == other.steps for other in second)]
        if not same:
            return None
        best = max(same, key=lambda field: field.fit)
        scale = request.measure.scale if best.values else "number"
        if request.kind == "difference":
            if scale != "number":
                return None
            operation = Operation("difference", best.steps, topics=topics)
        else:
            kind: OperationKind = "most" if request.measure.most else "least"
            operation = Operation(kind, best.steps, scale=scale, counted=not best.values, topics=topics)
        return Candidate(RelationPath(topics[0]), best.words, operation=operation), best.fit

    def _of_topic(self, topic: Entity, measure: Measure, *, counted: bool) -> list[Field]:
        candidate = Candidate(RelationPath(topic), "")
        found = []
        fields = self._beside.fields(candidate, measure, either=counted)
        if counted and not fields:
            fields = self._beside.fields(candidate, replace(measure, words=(), phrase=self._request.text), either=True)
        for field in fields:
            values = self._beside.pairs(candidate, field.steps)
            if values and all(self._comparable(value, measure) for _, value in values):
                found.append(replace(field, values=tuple(values)))
            elif counted and values:
                found.append(field)
        return found

    @staticmethod
    def _comparable(value: Value, measure: Measure) -> bool:
        return is_date(value) if measure.scale == "day" else is_number(value)

    def _existing(self, ranked: Scored) -> tuple[Candidate, float] | None:
        """Ask whether a path leads from one topic to another: the best path that may lead to it."""
        alone = [(candidate, score or 0.0) for candidate, score in ranked if not candidate.joins][:TRIED]
        if len(self._topics) != 2 or not alone or alone[0][1] < EXISTS_LEAST:
            return None
        for candidate, score in alone:
            if score < max(EXISTS_LEAST, alone[0][1] - EXISTS_MARGIN):
                break
            other = next(topic for topic in self._topics if topic != candidate.path.topic)
            if other in self._beside.ends(candidate):
                return self._asked(candidate, other), score
        for candidate, score in alone[:1]:
            other = next(topic for topic in self._topics if topic != candidate.path.topic)
            if self._may_be_end(candidate, other):
                return self._asked(candidate, other), score
        return None

    @staticmethod
    def _asked(candidate: Candidate, other: Entity) -> Candidate:
        condition = Condition(len(candidate.path), (), other)
        return replace(candidate, conditions=(*candidate.conditions, condition), operation=Operation("exists"))

    def _may_be_end(self, candidate: Candidate, other: Entity) -> bool:
        """Return whether an entity has a type in common with the ends of a path, so that "no" says something."""
        beside = self._beside
        own = {
            type_
            for predicate in beside.graph.schema.types
            for _, type_ in beside.pairs(Candidate(RelationPath(other), ""), [Step(predicate)])
            if isinstance(type_, Entity) and not beside.graph.tables.is_noise(type_.iri)
        }
        return bool(own & set(beside.types(candidate))) or candidate.path.steps[-1].reversed() in beside.steps(
            RelationPath(other)
        )

    def _is_instances(self, candidate: Candidate) -> bool:
        first = candidate.path.steps[0]
        return first.direction == "in" and first.relation in self._beside.graph.schema.types

    def instances(self) -> Scored:
        """Return the instances of a topic that is a type, as in "the highest mountain", or where they lead to."""
        request = self._request
        if len(self._topics) != 1 or request.kind == "exists":
            return []
        (topic,) = self._topics
        (name,) = self._beside.type_names([topic])
        noun = request.counted if request.kind == "most of" and not request.owned else request.noun
        if stems(name)[-1:] not in (stems(noun)[-1:], stems(request.noun)[-1:]):
            return []
        path = RelationPath(topic, (Step(self._type_predicate(), "in"),))
        instances = Candidate(path, name, hops=(name,), leads_to=name)
        if not self._beside.ends(instances):
            return []
        if request.kind != "most of" or request.owned or stems(name)[-1:] == stems(request.noun)[-1:]:
            return [(instances, 1.0)]
        steps = [step for step in self._beside.steps(path) if not self._beside.graph.tables.leads_to_mediator(step)]
        texts = [self._beside.words(step) for step in steps]
        close = self._beside.similarity(request.text, texts)
        best = max(zip(close, texts, steps), key=lambda item: item[0], default=None)
        return [(Candidate(path.then(best[2]), best[1], hops=(name, best[1])), best[0])] if best else []
