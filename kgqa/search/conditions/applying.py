"""Finds the conditions that a question puts on the ranked paths, and adds them with the operation it asks for.

Conditions are times, values that the question names, types, genders, and excluded entities.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.words import all_words
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.model.conditions import Condition
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import stem, terms
from kgqa.search.beam import logical_hops
from kgqa.search.conditions.beside import Beside
from kgqa.search.conditions.operations import Operations, Scored
from kgqa.search.conditions.requests import Request
from kgqa.search.conditions.times import Time, is_date, read_time, time_conditions
from kgqa.search.masking import Span
from kgqa.search.rows import FieldKey, PathRows, Row, read_rows
from kgqa.search.tolerance import TOLERATED
from kgqa.search.words import pattern, stem_list, stems, word_table
from kgqa.text.words import relation_words
from kgqa.trace import ConditionsRead, ReadCondition
from kgqa.trace.trace import Trace

LOOKED_AT = 3
"""Most paths beside which conditions are looked for."""
MARGIN = 0.1
"""Most difference between the scores of the best path and of a path beside which conditions are looked for."""
MAX_WALKS = 200
NOT_APPLIED = "The time in the question was not applied"
ONLY_PART = "Only the year of the time in the question was applied."


@dataclass(slots=True)
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
    cues: list[str] = field(default_factory=list)
    explained: int = 0
    applied: set[Time | Entity] = field(default_factory=set)
    note: str = ""

    def add(self, cue: str, *conditions: Condition, explained: int = 1) -> None:
        """Add conditions that a cue led to."""
        self.candidate = replace(self.candidate, conditions=(*self.candidate.conditions, *conditions))
        self.cues += [cue] * len(conditions)
        self.explained += explained


class Wording:
    """What the question says apart from the names of its topics.

    Args:
        asked: The question.
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

    def __init__(self, asked: str, text: str, noun: str, excluded: tuple[Entity, ...], last: str) -> None:
        self.text, self.noun, self.excluded, self.last = text, noun, excluded, last
        self.time, self.unread_time = read_time(asked)[0], read_time(text)[1]
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
        found = (follows and pattern("{conjunction}").fullmatch(between)) or pattern("{exclusion}").search(between)
        if found:
            excluded.append(span)
        kept += between.removesuffix(found[0]) if found else text[start : span.end]
        start = span.end
    return " ".join((kept + text[start:]).split()), tuple(dict.fromkeys(span.topic for span in excluded))


def is_negated(text: str) -> bool:
    """Return whether a question has a negation, once the entities that it excludes by name are removed."""
    return pattern("{negation}").search(text) is not None


class Filters:
    """Finds the conditions that a question puts on one path.

    If the question asks for things with a date in some time, and the path leads to the dates, the conditions are found
    on the path up to the things.

    Args:
        graph: The graph.
        wording: The question without its topics.
        rows: Rows of the path.

    Attributes:
        found: The path with its conditions.
    """

    def __init__(self, graph: KnowledgeGraph, wording: Wording, rows: PathRows) -> None:
        self._graph = graph
        self._wording = wording
        steps = rows.candidate.path.steps
        leads_to_things = len(steps) > 1 and not graph.tables.leads_to_mediator(steps[-2])
        self._rows = _before_dates(rows) if leads_to_things and self._asks_for_others(rows) else rows
        self._values = self._rows.values()
        self.found = Found(self._rows.candidate)
        if self._rows.rows:
            self._at_time()
            self._excluding()
            self._typed()
            self._gendered()
            self._named()

    def _asks_for_others(self, rows: PathRows) -> bool:
        """Return whether the ends are dates, and the question asks for something else that has a time."""
        wording, time = self._wording, self._wording.time
        words = {*stems(wording.noun), *stems(wording.text.replace(time.cue, " ") if time is not None else "")}
        return time is not None and words.isdisjoint(stem_list("date_nouns")) and all(map(is_date, rows.ends))

    def _at_time(self) -> None:
        time = self._wording.time
        if time is None or self._asks_for_others(self._rows):
            return
        tables = self._graph.tables
        words = {
            key: " ".join(relation_words(s.relation, tables.schema, tables.relation_labels) for s in key[1])
            for key, _ in self._values
        }
        conditions, self.found.note = time_conditions(time, self._wording.text, self._rows, words)
        if conditions:
            self.found.add(time.cue, *conditions)
            self.found.applied.add(time)

    def _excluding(self) -> None:
        """Exclude entities that are ends, or values beside the walks; an end may be on a walk that was not read."""
        ends: FieldKey = (len(self._rows.candidate.path), ())
        for entity in self._wording.excluded:
            places = [ends] if self._is_end(entity) else [key for key, found in self._values if found.value == entity]
            for place in places[:1]:
                self.found.add("not", Condition(*place, entity, negated=True))
                self.found.applied.add(entity)

    def _is_end(self, entity: Entity) -> bool:
        candidate = self._rows.candidate
        if entity in self._rows.ends or self._rows.complete:
            return entity in self._rows.ends
        there = replace(candidate, conditions=(Condition(len(candidate.path), (), entity),))
        (found,) = self._graph.paths.ends([there], limit=1, tolerated=TOLERATED)
        return isinstance(found, TOLERATED) or bool(found.values)

    def _typed(self) -> None:
        """Add the type that the question asks for if only some ends have it."""
        noun, types = self._wording.noun, self._graph.schema.types
        last = stems(noun)[-1:]
        if (
            last
            and noun not in word_table("stands_for", "en").values()
            and last[0] not in stems(self.found.candidate.leads_to)
        ):
            self._of_kind(
                noun, 1, lambda steps, name: steps[0].relation in types and not steps[1:] and stems(name)[-1:] == last
            )

    def _gendered(self) -> None:
        """Add the gender that a word such as "mother" implies if only some ends have it.

        Of several words for hops, only the last is about the ends: the father's country is not male.
        """
        genders = {stem(word): gender for word, gender in word_table("genders", "en").items()}
        words = [word for word in stems(self._wording.text) if word in genders]
        path = self.found.candidate
        is_last = words[:1] == list(stems(self._wording.last)) or logical_hops(self._graph, path.path) == 1
        if len({genders[word] for word in words}) == 1 and is_last and not set(words) & set(stems(path.words)):
            self._of_kind(words[0], 0, lambda steps, name: name.lower() == genders[words[0]])

    def _of_kind(self, cue: str, explained: int, fits: Callable[[Sequence[Step], str], bool]) -> None:
        """Add the first fitting entity beside the ends that only some of them have."""
        rows = self._rows.rows
        for (key, value), numbers in self._values.items():
            is_some = len({rows[number].end.value for number in numbers}) < len(self._rows.ends)
            is_end = key[0] == len(self._rows.candidate.path) and fits(key[1], value.name)
            if is_some and is_end and isinstance(value.value, Entity):
                self.found.add(cue, Condition(*key, value.value), explained=explained)
                return

    def _named(self) -> None:
        """Add the values beside the walks whose names stand in the question, longest names first."""
        unexplained = set(self._wording.unexplained(self._rows.candidate))
        text = f" {' '.join(stems(self._wording.text))} "
        kept = set(range(len(self._rows.rows)))
        for (key, value), numbers in sorted(self._values.items(), key=lambda item: -len(item[0][1].name)):
            words = set(terms(value.name))
            stands_there = words and words <= unexplained and f" {' '.join(stems(value.name))} " in text
            if stands_there and isinstance(value.value, Entity) and numbers & kept and not kept <= numbers:
                kept &= numbers
                unexplained -= words
                self.found.add(value.name, Condition(*key, value.value), explained=len(words))


def _before_dates(rows: PathRows) -> PathRows:
    """Return the rows without their ends."""
    path, hops = rows.candidate.path, rows.candidate.hops[:-1]
    before = RelationPath(path.topic, path.steps[:-1])
    shorter = replace(rows.candidate, path=before, words=", ".join(hops), hops=hops, leads_to="")
    walks = {row.walk[:-1]: tuple(each for each in row.fields if each.at < len(path)) for row in rows.rows}
    return PathRows(shorter, tuple(Row(walk, fields) for walk, fields in walks.items()), rows.complete)


class Conditions:
    """Finds the conditions and the operation that one question asks for.

    Args:
        graph: The graph.
        encoder: The embedding model; None to compare words only.
        wording: The question without its topics.
        request: What the question asks to compute; None if it asks for the ends of a path.
        topics: The topics of the question, in its order.
        named: The names of the topics in the question.
        trace: Records what was found.

    Attributes:
        notes: Sentences for the reader: how a word was read, and what was left out.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        encoder: CachedEncoder | None,
        wording: Wording,
        request: Request | None,
        topics: Sequence[Entity],
        named: str,
        trace: Trace,
    ) -> None:
        self._graph = graph
        self._wording = wording
        self._request = request
        self._operations = Operations(request, topics, Beside(graph, encoder), named) if request else None
        self._trace = trace
        self.notes: list[str] = []

    def applied(self, ranked: Scored, *, worded: bool = True) -> Scored:
        """Return the paths with the conditions and the operation of the question.

        Without an operation, the path whose conditions explain the most words of the question comes first, before the
        others; with a condition on the time, only this path is returned. With an operation, only the best path with it
        is returned; no path if there is none.

        Args:
            ranked: Paths with their scores, best first.
            worded: Whether the question has words for the path, apart from its topics and cue words.
        """
        if self._request is None or self._operations is None:
            return self._conditioned(ranked)
        between_topics = self._request.kind in ("compare", "difference")
        # two topics are compared by their values in the graph, which are those of the present
        past = self._wording.time is not None and not self._wording.time.is_now
        if self._wording.unread_time or (between_topics and (self._wording.excluded or past)):
            return []
        instances = self._operations.instances()
        every = [*ranked, *instances]
        found = self._found([*ranked[:LOOKED_AT], *instances])
        whole = [(found.get(each, Found(each)), score) for each, score in every]
        whole = [(each, score) for each, score in whole if self._is_whole(each)]
        best = self._operations.found([(each.candidate, score) for each, score in whole], worded=worded)
        if best is None:
            return []
        cues = next((each.cues for each, _ in whole if each.candidate.path == best[0].path), ())
        self._record(best[0], cues, self._request.noun)
        self.notes += self._operations.notes
        return [best]

    def _is_whole(self, found: Found) -> bool:
        """Return whether the time, the exclusions and the names in the question are in the path and its conditions."""
        known = terms(" ".join([found.candidate.words, found.candidate.leads_to, *found.cues]))
        applied = found.applied.issuperset(self._wording.restrictions) and not found.note
        return applied and set(known).issuperset(self._wording.names)

    def _conditioned(self, ranked: Scored) -> Scored:
        best = [pair for pair in ranked[:LOOKED_AT] if (ranked[0][1] or 0.0) - (pair[1] or 0.0) <= MARGIN]
        if not best:
            return ranked
        found = self._found(best)
        chosen, score = max(((found.get(c, Found(c)), score) for c, score in best), key=lambda pair: pair[0].explained)
        self._note_ignored(chosen)
        if not chosen.cues:
            return ranked
        self._record(chosen.candidate, chosen.cues, self._wording.noun)
        # no answer rather than one from another time
        return [(chosen.candidate, score), *([] if self._wording.time in chosen.applied else ranked)]

    def _note_ignored(self, chosen: Found) -> None:
        """Note which restrictions of the question the answers do not fulfil."""
        wording = self._wording
        if wording.time is not None and wording.time in chosen.applied:
            self.notes += [ONLY_PART] if wording.unread_time else []
        elif wording.time is not None and wording.time.is_now:
            self.notes.append(f"{NOT_APPLIED}.")
        elif words := wording.unread_time or (wording.time and wording.time.cue):
            self.notes.append(f"{NOT_APPLIED}: “{words}”.")
        self.notes += [chosen.note] if chosen.note else []
        for entity in self._graph.named([each for each in wording.excluded if each not in chosen.applied]):
            self.notes.append(f"{entity.name} was not excluded, because it is not among the answers.")

    def _record(self, candidate: Candidate, cues: Sequence[str], noun: str) -> None:
        """Record which words led to which conditions, and to the operation; without a cue, it was the noun."""
        words, computed = all_words(self._graph, candidate)
        found = [ReadCondition(cue, text) for cue, text in zip([*cues, *[noun] * len(words)], words)]
        if computed and self._request is not None:
            found.append(ReadCondition(self._request.cue, computed))
        self._trace.record(ConditionsRead(path=candidate.words, found=tuple(found)))

    def _found(self, pairs: Scored) -> dict[Candidate, Found]:
        near = [c for c, _ in pairs if self._wording.restrictions or self._wording.unexplained(c)]
        rows = read_rows(self._graph, near, self._trace, limit=MAX_WALKS) if near else []
        return {each.candidate: Filters(self._graph, self._wording, each).found for each in rows}
