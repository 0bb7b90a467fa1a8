"""Finds the conditions that a question puts on a path: times, values named beside the walks, types, and exclusions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Named, Value
from kgqa.model.conditions import Condition
from kgqa.rank.lexical import stem, terms
from kgqa.search.beam import logical_hops
from kgqa.search.conditions.beside import is_date, stems
from kgqa.search.conditions.times import Time, time_conditions, unread_time
from kgqa.search.masking import Span
from kgqa.search.rows import Field, FieldKey, PathRows
from kgqa.search.tolerance import TOLERATED
from kgqa.text.words import relation_words

NO_DATES = frozenset(["person", "location place"])
"""Kinds of answers that stand for "who" and "where"."""
STANDS_FOR = NO_DATES | {"date time"}
"""Kinds of answers that stand for "who", "where" and "when"; they are no types."""

_EXCLUDING = re.compile(
    r"(?:^|\s)(?:other than|besides|except(?: for)?|apart from|excluding|aside from|(?:but|and|is|are|was|were)?\s*not)"
    r"(?:\s+(?:in|by|from|of|with))?(?:\s+(?:the|a|an))?(?:\s+[^\W\d_]+)?\s*$",
    re.IGNORECASE,
)
_FEMALE = ("mom", "mother", "mum", "wife", "sister", "daughter", "queen", "aunt", "grandmother", "actress", "female")
_MALE = ("dad", "father", "husband", "brother", "son", "king", "uncle", "grandfather", "male")
_GENDERS = dict.fromkeys(_FEMALE, "female") | dict.fromkeys(_MALE, "male")
NEGATED = re.compile(r"\bnot\b|\b(?:did|does|do|is|are|was|were|has|have)n['’]t\b", re.IGNORECASE)
"""A negation that excludes no entity by its name."""
_AND = re.compile(r"\s*(?:,|and|or|nor|, and|, or)(?:\s+the)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """Conditions that were found on a path.

    Attributes:
        candidate: The path with the conditions.
        cues: The words of the question that led to them, one per condition.
        explained: How many words of the question they explain.
        applied: The restrictions of the question, a time or excluded entities, that became conditions.
        note: A sentence for the reader if the conditions are weaker than the question; "" if they are not.
    """

    candidate: Candidate
    cues: tuple[str, ...] = ()
    explained: int = 0
    applied: frozenset[Time | Entity] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """What the question says apart from the names of its topics.

    Attributes:
        text: The question without its topics.
        time: The time in it.
        noun: The noun that the answers are, such as "university".
        excluded: The entities after "other than" and the like.
        last: The word for the last hop.
    """

    text: str
    time: Time | None
    noun: str = ""
    excluded: tuple[Entity, ...] = ()
    last: str = ""

    @property
    def restrictions(self) -> tuple[Time | Entity, ...]:
        """The time and the excluded entities."""
        return (*([self.time] if self.time is not None else ()), *self.excluded)

    @property
    def unread_time(self) -> str:
        """The words of a time that could not be read; "" if there are none."""
        return unread_time(self.text)

    @property
    def names(self) -> list[str]:
        """The stems of the capitalised words after the first, which are names that were not linked."""
        if not re.search(r"[a-z]", self.text):
            return []
        return terms(" ".join(re.findall(r"(?<!^)\b[A-Z][\w.]*", self.text.strip())))

    def unexplained(self, candidate: Candidate) -> tuple[str, ...]:
        """Return the stems of the words that neither the path nor the type of its ends explains."""
        known = set(terms(" ".join([candidate.words, candidate.leads_to, self.noun])))
        return tuple(each for each in dict.fromkeys(terms(self.text)) if each not in known)


def without_excluded(text: str, spans: Sequence[Span]) -> tuple[str, tuple[Entity, ...]]:
    """Remove "other than NAME" and the like from a question; return the text and the entities with these names."""
    excluded: list[Span] = []
    kept, start = "", 0
    for span in spans:
        between = text[start : span.start]
        if excluded and excluded[-1].end == start and _AND.fullmatch(between):
            cue = between
        elif found := _EXCLUDING.search(between):
            cue = found[0]
        else:
            kept, start = kept + text[start : span.end], span.end
            continue
        excluded.append(span)
        kept, start = kept + between.removesuffix(cue), span.end
    return " ".join((kept + text[start:]).split()), tuple(dict.fromkeys(span.topic for span in excluded))


class Filters:
    """Finds the conditions that a question puts on paths.

    Args:
        graph: The graph.
        wording: The question without its topics.
    """

    def __init__(self, graph: KnowledgeGraph, wording: Wording) -> None:
        self._graph = graph
        self._wording = wording

    def found(self, rows: PathRows) -> Found:
        """Return a path with the conditions that the question puts on it."""
        found = Found(rows.candidate)
        if not rows.rows:
            return found
        fields = list(
            dict.fromkeys((each.key, value) for row in rows.rows for each in row.fields for value in each.values)
        )
        time = self._wording.time
        # of a path to dates, no end would be who or where something was at a time
        if time is not None and not (self._wording.noun in NO_DATES and all(is_date(end) for end in rows.ends)):
            words = {key: self._words(key) for key, _ in fields}
            placed = time_conditions(time, self._wording.text, rows, words)
            if placed.conditions:
                found = replace(_more(found, placed.conditions, time.cue, 1, time), note=placed.note)
        for entity in self._wording.excluded:
            found = self._excluding(found, rows, entity)
        return self._named(self._gendered(self._typed(found, rows), rows), rows, fields)

    def _words(self, key: FieldKey) -> str:
        return " ".join(
            relation_words(s.relation, self._graph.schema, self._graph.tables.relation_labels) for s in key[1]
        )

    def _typed(self, found: Found, rows: PathRows) -> Found:
        """Add the type that the question asks for if only some ends have it."""
        noun = stems(self._wording.noun)
        leads_to = stems(rows.candidate.leads_to)
        if not noun or self._wording.noun in STANDS_FOR or noun[-1] in leads_to:
            return found
        last = len(rows.candidate.path)
        of_type: dict[FieldKey, dict[Named, set[Value]]] = {}
        for row in rows.rows:
            for field in row.fields:
                if field.at == last and len(field.steps) == 1 and field.steps[0].relation in self._graph.schema.types:
                    for value in field.values:
                        of_type.setdefault(field.key, {}).setdefault(value, set()).add(row.end.value)
        for key, types in of_type.items():
            for type_, ends in types.items():
                same = stems(type_.name)[-1:] == noun[-1:] and isinstance(type_.value, Entity)
                if same and len(ends) < len(rows.ends):
                    return _more(found, [Condition(*key, type_.value)], self._wording.noun, 1)  # type: ignore[arg-type]
        return found

    def _gendered(self, found: Found, rows: PathRows) -> Found:
        """Add the gender that a word such as "mother" implies if only some ends have it.

        Of several words for hops, only the last is about the ends: the father's country is not male.
        """
        implied = [
            (word, _GENDERS[word]) for word in map(singular, self._wording.text.lower().split()) if word in _GENDERS
        ]
        if len({gender for _, gender in implied}) != 1 or set(map(stem, (word for word, _ in implied))) & set(
            stems(rows.candidate.words)
        ):
            return found
        word, gender = implied[0]
        if stem(word) not in terms(self._wording.last) and logical_hops(self._graph, rows.candidate.path) > 1:
            return found
        last = len(rows.candidate.path)
        of_gender: dict[tuple[FieldKey, Entity], set[Value]] = {}
        for row in rows.rows:
            for field in row.fields:
                for value in field.values:
                    if field.at == last and value.name.lower() == gender and isinstance(value.value, Entity):
                        of_gender.setdefault((field.key, value.value), set()).add(row.end.value)
        for (key, entity), ends in of_gender.items():
            if len(ends) < len(rows.ends):
                return _more(found, [Condition(*key, entity)], word, 0)
        return found

    def _excluding(self, found: Found, rows: PathRows, entity: Entity) -> Found:
        """Exclude an entity that is an end, or a value beside the walks."""
        last = len(rows.candidate.path)
        if entity in rows.ends or (not rows.complete and self._is_end(rows.candidate, entity)):
            return _more(found, [Condition(last, (), entity, negated=True)], "not", 1, entity)
        for row in rows.rows:
            for field in row.fields:
                if any(value.value == entity for value in field.values):
                    return _more(found, [Condition(*field.key, entity, negated=True)], "not", 1, entity)
        return found

    def _is_end(self, candidate: Candidate, entity: Entity) -> bool:
        """Return whether an entity is an end of a path of which only some walks were read."""
        asked = replace(candidate, conditions=(*candidate.conditions, Condition(len(candidate.path), (), entity)))
        (ends,) = self._graph.paths.ends([asked], limit=1, tolerated=TOLERATED)
        # the graph did not tell in time: excluding an entity that is no end changes nothing
        return isinstance(ends, TOLERATED) or bool(ends.values)

    def _named(self, found: Found, rows: PathRows, fields: Sequence[tuple[FieldKey, Named]]) -> Found:
        """Add the values beside the walks whose names stand in the question, longest names first."""
        unexplained = set(self._wording.unexplained(rows.candidate))
        text = f" {' '.join(stems(self._wording.text))} "
        kept = frozenset(range(len(rows.rows)))
        for key, value in sorted(fields, key=lambda item: -len(item[1].name)):
            words = set(terms(value.name))
            if not words or not words <= unexplained or not isinstance(value.value, Entity):
                continue
            if f" {' '.join(stems(value.name))} " not in text:
                continue
            having = frozenset(number for number, row in enumerate(rows.rows) if _has(row.fields, key, value))
            if not having & kept or kept <= having:
                continue
            kept &= having
            unexplained -= words
            found = _more(found, [Condition(*key, value.value)], value.name, len(words))
        return found


def singular(word: str) -> str:
    """Return a word of the question without punctuation and the ending of a plural."""
    bare = word.strip("?!.,;:'’\"")
    return bare if bare in _GENDERS else bare.removesuffix("s").removesuffix("'").removesuffix("’")


def _more(
    found: Found, conditions: Sequence[Condition], cue: str, explained: int, restriction: Time | Entity | None = None
) -> Found:
    return replace(
        found,
        candidate=replace(found.candidate, conditions=(*found.candidate.conditions, *conditions)),
        cues=(*found.cues, *[cue] * len(conditions)),
        explained=found.explained + explained,
        applied=found.applied | ({restriction} if restriction is not None else set()),
    )


def _has(fields: Iterable[Field], key: FieldKey, value: Named) -> bool:
    return any(field.key == key and value in field.values for field in fields)
