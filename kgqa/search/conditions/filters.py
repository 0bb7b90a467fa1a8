"""Finds the conditions that a question puts on a path: times, values named beside the walks, types, and exclusions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Named, RelationPath
from kgqa.model.conditions import Condition
from kgqa.rank.lexical import terms
from kgqa.search.beam import logical_hops
from kgqa.search.conditions.times import Time, is_date, read_time, time_conditions
from kgqa.search.masking import Span
from kgqa.search.rows import FieldKey, PathRows, Row
from kgqa.search.tolerance import TOLERATED
from kgqa.search.words import pattern, stem_list, stems, word_table
from kgqa.text.words import relation_words

_EXCLUDING = r"(?:^|\s){excluding}(?:\s+(?:in|by|from|of|with))?(?:\s+(?:the|a|an))?(?:\s+[^\W\d_]+)?\s*$"
_AND = r"\s*(?:,|and|or|nor|, and|, or)(?:\s+the)?\s*"
_NEGATED = r"\bnot\b|\b(?:did|does|do|is|are|was|were|has|have)n['’]t\b"


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

    def and_also(
        self, conditions: Sequence[Condition], cue: str, explained: int, restriction: Time | Entity | None = None
    ) -> Found:
        """Return these conditions and others, which a cue led to."""
        return replace(
            self,
            candidate=replace(self.candidate, conditions=(*self.candidate.conditions, *conditions)),
            cues=(*self.cues, *[cue] * len(conditions)),
            explained=self.explained + explained,
            applied=self.applied | ({restriction} if restriction is not None else set()),
        )


class Wording:
    """What the question says apart from the names of its topics.

    Args:
        text: The question without its topics.
        noun: The kind of the answers, such as "university", or what stands for it: "person" for "who".
        excluded: The entities after "other than" and the like.
        last: The word for the last hop.

    Attributes:
        time: The time in it.
        unread_time: The words of a time that could not be read; "" if there are none.
        restrictions: The time and the excluded entities.
        names: The stems of the capitalised words after the first, which are names that were not linked.
    """

    def __init__(self, text: str, noun: str = "", excluded: tuple[Entity, ...] = (), last: str = "") -> None:
        self.text, self.noun, self.excluded, self.last = text, noun, excluded, last
        self.time, self.unread_time = read_time(text)
        self.restrictions = (*([self.time] if self.time is not None else ()), *excluded)
        has_case = re.search(r"[a-z]", text) is not None
        self.names = terms(" ".join(re.findall(r"(?<!^)\b[A-Z][\w.]*", text.strip()))) if has_case else []

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
        follows = bool(excluded) and excluded[-1].end == start
        found = (follows and pattern(_AND).fullmatch(between)) or pattern(_EXCLUDING).search(between)
        if found:
            excluded.append(span)
        kept += between.removesuffix(found[0]) if found else text[start : span.end]
        start = span.end
    return " ".join((kept + text[start:]).split()), tuple(dict.fromkeys(span.topic for span in excluded))


def is_negated(text: str) -> bool:
    """Return whether a question has a negation, once the entities that it excludes by name are removed."""
    return pattern(_NEGATED).search(text) is not None


class Filters:
    """Finds the conditions that a question puts on one path.

    Args:
        graph: The graph.
        wording: The question without its topics.
        rows: Rows of the path.
    """

    def __init__(self, graph: KnowledgeGraph, wording: Wording, rows: PathRows) -> None:
        self._graph = graph
        self._wording = wording
        self._rows = self._before_dates(rows) if wording.time is not None and rows.rows else rows
        self._last = len(self._rows.candidate.path)
        self._having: dict[tuple[FieldKey, Named], set[int]] = {}
        """The numbers of the rows that have a value in a field."""
        for number, row in enumerate(self._rows.rows):
            for field in row.fields:
                for value in field.values:
                    self._having.setdefault((field.key, value), set()).add(number)

    def found(self) -> Found:
        """Return the path with its conditions.

        If the question asks for things with a date in some time, and the path leads to the dates, the path is returned
        up to the things.
        """
        found = self._at_time(Found(self._rows.candidate))
        for entity in self._wording.excluded:
            found = self._excluding(found, entity)
        return self._named(self._gendered(self._typed(found)))

    def _before_dates(self, rows: PathRows) -> PathRows:
        path = rows.candidate.path
        if len(path) < 2 or not self._asks_for_others(rows) or self._graph.tables.leads_to_mediator(path.steps[-2]):
            return rows
        last = len(path) - 1
        self._date = (last, path.steps[-1:])
        hops = rows.candidate.hops[:-1]
        shorter = replace(
            rows.candidate,
            path=RelationPath(path.topic, path.steps[:-1]),
            words=", ".join(hops),
            hops=hops,
            leads_to="",
        )
        walks = {row.walk[:-1]: tuple(field for field in row.fields if field.at <= last) for row in rows.rows}
        return PathRows(shorter, tuple(Row(walk, fields) for walk, fields in walks.items()), rows.complete)

    def _asks_for_others(self, rows: PathRows) -> bool:
        """Return whether the ends are dates, and the question asks for something else."""
        wording, time = self._wording, self._wording.time
        text = wording.text.replace(time.cue, " ") if time is not None else wording.text
        asks_for_dates = set(stems(f"{wording.noun} {text}")) & set(stem_list("date_nouns"))
        return not asks_for_dates and all(map(is_date, rows.ends))

    def _at_time(self, found: Found) -> Found:
        time = self._wording.time
        if time is None or not self._rows.rows or self._asks_for_others(self._rows):
            return found
        words = {key: self._words(key) for key, _ in self._having}
        conditions, note = time_conditions(time, self._wording.text, self._rows, words)
        return replace(found.and_also(conditions, time.cue, 1, time), note=note) if conditions else found

    def _words(self, key: FieldKey) -> str:
        return " ".join(
            relation_words(s.relation, self._graph.schema, self._graph.tables.relation_labels) for s in key[1]
        )

    def _typed(self, found: Found) -> Found:
        """Add the type that the question asks for if only some ends have it."""
        noun, types = stems(self._wording.noun), self._graph.schema.types
        stands_for = self._wording.noun in word_table("stands_for", "en").values()
        if not noun or stands_for or noun[-1] in stems(found.candidate.leads_to):
            return found
        return self._of_kind(
            found,
            self._wording.noun,
            lambda key, value: len(key[1]) == 1 and key[1][0].relation in types and stems(value.name)[-1:] == noun[-1:],
            explained=1,
        )

    def _gendered(self, found: Found) -> Found:
        """Add the gender that a word such as "mother" implies if only some ends have it.

        Of several words for hops, only the last is about the ends: the father's country is not male.
        """
        genders = word_table("genders", "en")
        words = [word for word in map(_singular, self._wording.text.lower().split()) if word in genders]
        if len({genders[word] for word in words}) != 1:
            return found
        if set(stems(" ".join(words))) & set(stems(found.candidate.words)):
            return found
        if words[0] not in self._wording.last and logical_hops(self._graph, found.candidate.path) > 1:
            return found
        gender = genders[words[0]]
        return self._of_kind(found, words[0], lambda key, value: value.name.lower() == gender, explained=0)

    def _of_kind(self, found: Found, cue: str, fits: Callable[[FieldKey, Named], bool], *, explained: int) -> Found:
        """Add the first fitting value of the ends that only some of them have."""
        for (key, value), numbers in self._having.items():
            ends = {self._rows.rows[number].end.value for number in numbers}
            is_some = key[0] == self._last and isinstance(value.value, Entity) and len(ends) < len(self._rows.ends)
            if is_some and fits(key, value):
                return found.and_also([Condition(*key, value.value)], cue, explained)
        return found

    def _excluding(self, found: Found, entity: Entity) -> Found:
        """Exclude an entity that is an end, or a value beside the walks."""
        if entity in self._rows.ends or (not self._rows.complete and self._is_end(entity)):
            return found.and_also([Condition(self._last, (), entity, negated=True)], "not", 1, entity)
        for key, value in self._having:
            if value.value == entity:
                return found.and_also([Condition(*key, entity, negated=True)], "not", 1, entity)
        return found

    def _is_end(self, entity: Entity) -> bool:
        """Return whether an entity is an end of a path of which only some walks were read."""
        candidate = self._rows.candidate
        asked = replace(candidate, conditions=(*candidate.conditions, Condition(self._last, (), entity)))
        (ends,) = self._graph.paths.ends([asked], limit=1, tolerated=TOLERATED)
        # the graph did not tell in time: excluding an entity that is no end changes nothing
        return isinstance(ends, TOLERATED) or bool(ends.values)

    def _named(self, found: Found) -> Found:
        """Add the values beside the walks whose names stand in the question, longest names first."""
        unexplained = set(self._wording.unexplained(self._rows.candidate))
        text = f" {' '.join(stems(self._wording.text))} "
        kept = set(range(len(self._rows.rows)))
        for (key, value), numbers in sorted(self._having.items(), key=lambda item: -len(item[0][1].name)):
            words = set(terms(value.name))
            if not words or not words <= unexplained or not isinstance(value.value, Entity):
                continue
            if f" {' '.join(stems(value.name))} " in text and numbers & kept and not kept <= numbers:
                kept &= numbers
                unexplained -= words
                found = found.and_also([Condition(*key, value.value)], value.name, len(words))
        return found


def _singular(word: str) -> str:
    """Return a word of the question without punctuation and the ending of a plural."""
    bare = word.strip("?!.,;:'’\"")
    return bare if bare in word_table("genders", "en") else bare.removesuffix("s").rstrip("'’")
