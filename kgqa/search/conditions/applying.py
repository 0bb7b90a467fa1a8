"""Finds the conditions that a question puts on the ranked paths, and adds them with the operation it asks for.

Conditions are times, values that the question names, types, genders, and excluded entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.export import all_words
from kgqa.model import Candidate, Entity, Literal, RelationPath
from kgqa.model.conditions import Comparison, Condition
from kgqa.rank.lexical import stem, terms
from kgqa.search.classes import with_subclasses
from kgqa.search.conditions.amounts import Amount, read_amount
from kgqa.search.conditions.beside import Beside
from kgqa.search.conditions.operations import Operations, Undecidable
from kgqa.search.conditions.requests import Request
from kgqa.search.conditions.rows import FieldKey, PathRows, Row, read_rows
from kgqa.search.conditions.times import Time, is_date, read_time, time_conditions
from kgqa.search.cues import Cues
from kgqa.search.masking import Span, drop_spans
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
NOT_APPLIED = "The {} in the question was not applied"

Scored = list[tuple[Candidate, float | None]]
"""Paths with their scores, best first; a score may be unknown."""
Reading = tuple[str, int, Sequence[Condition]]
"""Words of the question, how many of its words they explain, and the conditions to which they lead, if any."""


class Wording:
    """What a question says apart from the names of its topics.

    Args:
        asked: The question.
        spans: The names of its topics.
        excluded: The entities after "other than" and the like, which are not in the question.
        cues: The cues about the path in the question.

    Attributes:
        text: The question without the names of its topics.
        named: The names of its topics.
        noun: The kind of the answers, such as "university", or what stands for it: "person" for "who".
        amount: The amount with which it compares a number; None if there is none.
        time: The time in it.
        unread_time: The words of a time that could not be read; "" if there are none.
        names: The stems of the capitalised words after the first, which are names that were not linked.
    """

    def __init__(self, asked: str, spans: Sequence[Span], excluded: tuple[Entity, ...], cues: Cues) -> None:
        self.text = drop_spans(asked, spans)
        self.named = " ".join(asked[span.start : span.end] for span in spans)
        self.cues, self.noun, self.excluded = cues, cues.asked_for, excluded
        self.amount = read_amount(self.text)
        self.time, self.unread_time = read_time(self.text.replace(self.amount.cue, " ") if self.amount else self.text)
        has_case = re.search(r"[a-z]", self.text) is not None
        self.names = terms(" ".join(re.findall(r"(?<!^)\b[A-Z][\w.]*", self.text.strip()))) if has_case else []

    def left(self, candidate: Candidate) -> list[str]:
        """Return the words that nothing explains if a path has no conditions and takes none of its ends out."""
        if candidate.conditions or (candidate.operation and candidate.operation.kind != "count"):
            return []
        unexplained = self.unexplained(candidate).difference(terms("".join(self.noun.split()[-1:])))  # "red ferries"
        return [word for word in self.cues.words if set(terms(word)) & unexplained]

    def unexplained(self, candidate: Candidate) -> set[str]:
        """Return the stems of the words that neither the path nor the type of its ends explains."""
        head = "" if candidate.leads_to else "".join(self.noun.split()[-1:])  # what is of no known kind may be of any
        return set(terms(self.text)).difference(terms(f"{candidate.words} {candidate.leads_to} {head}"))


@dataclass(frozen=True, slots=True)
class Filtered:
    """A path with the conditions that a question puts on it.

    Attributes:
        candidate: The path with the conditions.
        cues: The words of the question that led to them, one per condition.
        explained: How many words of the question they explain.
        note: A sentence for the reader if the conditions are weaker than the question; "" if they are not.
    """

    candidate: Candidate
    cues: tuple[str, ...] = ()
    explained: int = 0
    note: str = ""

    def unmet(self, wording: Wording) -> list[Time | Amount | Entity]:
        """Return the time, the amount and the excluded entities of the question that did not become conditions."""
        excluded = {each.test for each in self.candidate.conditions if each.negated}
        read = [each for each in (wording.time, wording.amount) if each is not None and each.cue not in self.cues]
        return [*read, *(entity for entity in wording.excluded if entity not in excluded)]

    def is_whole(self, wording: Wording) -> bool:
        """Return whether the time, the exclusions and the names in the question are in the path and its conditions."""
        known = terms(" ".join([self.candidate.words, self.candidate.leads_to, *self.cues]))
        return not self.unmet(wording) and not self.note and set(wording.names).issubset(known)


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


def apply_conditions(
    beside: Beside,
    wording: Wording,
    request: Request | None,
    topics: Sequence[Entity],
    ranked: Scored,
    trace: Trace,
) -> tuple[Scored, list[str]]:
    """Return the paths with the conditions and the operation of a question, and sentences for the reader.

    Without an operation, the path whose conditions explain the most words of the question comes first, before the
    others; with a condition on a time or an amount, only this path is returned. With an operation, only the best path
    with it is returned; no path if there is none.

    Args:
        beside: Lookups beside the paths.
        wording: The question without its topics.
        request: What the question asks to compute; None if it asks for the ends of a path.
        topics: The topics of the question, in its order.
        ranked: Paths with their scores, best first.
        trace: Records what was found.
    """
    if request is None:
        return _conditioned(beside, wording, ranked, trace)
    # two topics are compared by their values in the graph, which are those of the present
    past = wording.time is not None and not wording.time.is_now
    if wording.unread_time or (request.kind in ("compare", "difference") and (wording.excluded or past)):
        return [], []
    cues = wording.cues
    operations = Operations(request, tuple(topics), beside, wording.named, cues.words, cues.hops, cues.asked_for)
    try:
        every = _filtered(beside, wording, ranked[:LOOKED_AT], trace)
        whole = [(each, score or 0.0) for each, score in every if each.is_whole(wording)]
        best = operations.found([(each.candidate, score) for each, score in whole])
    except (Undecidable, *TOLERATED):
        best = None
    if best is None:
        return [], []
    found = next((each.cues for each, _ in whole if each.candidate.path == best[0].path), ())
    _record(beside.graph, best[0], found, request.noun, request.cue, trace)
    return [best], operations.notes


def _conditioned(beside: Beside, wording: Wording, ranked: Scored, trace: Trace) -> tuple[Scored, list[str]]:
    best = [pair for pair in ranked[:LOOKED_AT] if (ranked[0][1] or 0.0) - (pair[1] or 0.0) <= MARGIN]
    if not best:
        return ranked, []
    every = sorted(_filtered(beside, wording, best, trace), key=lambda pair: -pair[0].explained)
    chosen = every[0][0]
    unmet = chosen.unmet(wording)
    present = beside.graph.named([each for each in unmet if isinstance(each, Entity)])
    not_excluded = (f"{entity.name} was not excluded, because it is not among the answers." for entity in present)
    amounts = [f"{NOT_APPLIED.format('amount')}: “{each.cue}”." for each in unmet if isinstance(each, Amount)]
    said = stems(" ".join([chosen.candidate.words, *all_words(beside.graph, chosen.candidate)[0]]))
    # "last month" may be a part of "downloads in the last month"
    times = [] if wording.unread_time and set(stems(wording.unread_time)) <= set(said) else _time_notes(wording, unmet)
    notes = [*times, *amounts, *filter(None, [chosen.note]), *not_excluded]
    if not chosen.cues:
        return ranked, notes
    _record(beside.graph, chosen.candidate, chosen.cues, wording.noun, "", trace)
    # no answer rather than one from another time or with another amount
    is_limited = any(each is not None and each not in unmet for each in (wording.time, wording.amount))
    alike = [(each.candidate, score) for each, score in every if each.explained == chosen.explained]
    return [*alike, *([] if is_limited else ranked)], notes


def _time_notes(wording: Wording, unmet: Sequence[Time | Amount | Entity]) -> list[str]:
    """Return what the reader is told of a time in the question that is not applied, or only in part."""
    if wording.time is not None and wording.time not in unmet:
        return ["Only the year of the time in the question was applied."] if wording.unread_time else []
    if wording.time is not None and wording.time.is_now:
        return [f"{NOT_APPLIED.format('time')}."]
    words = wording.unread_time or (wording.time and wording.time.cue)
    return [f"{NOT_APPLIED.format('time')}: “{words}”."] if words else []


def _record(
    graph: KnowledgeGraph, candidate: Candidate, cues: Sequence[str], noun: str, cue: str, trace: Trace
) -> None:
    """Record which words led to which conditions, and to the operation; without a cue, it was the noun."""
    conditions, operation = all_words(graph, candidate)
    found = [ReadCondition(*pair) for pair in zip([*cues, *[noun] * len(conditions)], conditions)]
    found += [ReadCondition(cue, operation)] if operation else []
    trace.record(ConditionsRead(path=candidate.words, found=tuple(found)))


def _filtered(beside: Beside, wording: Wording, pairs: Scored, trace: Trace) -> list[tuple[Filtered, float | None]]:
    near = [c for c, _ in pairs if wording.time or wording.excluded or wording.unexplained(c)]
    rows = {each.candidate: each for each in read_rows(beside.graph, near, trace, limit=MAX_WALKS)}
    return [(_with_conditions(beside, wording, rows[c]) if c in rows else Filtered(c), score) for c, score in pairs]


def _with_conditions(beside: Beside, wording: Wording, rows: PathRows) -> Filtered:
    """Return a path with the conditions that a question puts on it, given rows of the path.

    If the question asks for things with a date in some time, and the path leads to the dates, the conditions are found
    on the path up to the things.
    """
    graph, steps, time = beside.graph, rows.candidate.path.steps, wording.time
    asks_for_others = time is not None and _asks_for_others(wording, time, rows)
    if asks_for_others and len(steps) > 1 and not graph.tables.leads_to_mediator(steps[-2]):
        rows, asks_for_others = _before_dates(rows), False
    candidate, note = rows.candidate, ""
    found: list[Reading] = []
    if time is not None and rows.rows and not asks_for_others:
        dated, note = time_conditions(graph, time, wording.text, rows)
        found.append((time.cue, 1, dated))
    if wording.amount is not None and (field := beside.compared(candidate, wording.amount.measure)):
        found.append((wording.amount.cue, 1, [Condition(len(steps), field.steps, wording.amount.comparison)]))
    used = terms(" ".join(cue for cue, _, several in found if several))
    found += [*_excluding(graph, wording, rows), *_of_kind(graph, wording, rows), *_named(graph, wording, rows, used)]
    conditions = tuple(condition for _, _, several in found for condition in several)
    cues = tuple(cue for cue, _, several in found for _ in several)
    explained = sum(explained for _, explained, several in found if several)
    return Filtered(replace(candidate, conditions=(*candidate.conditions, *conditions)), cues, explained, note)


def _asks_for_others(wording: Wording, time: Time, rows: PathRows) -> bool:
    """Return whether the ends are dates, and the question asks for something else that has a time."""
    words = stems(f"{wording.noun} {wording.text.replace(time.cue, ' ')}")
    return all(map(is_date, rows.ends)) and set(words).isdisjoint(stem_list("date_nouns"))


def _before_dates(rows: PathRows) -> PathRows:
    """Return the rows without their ends."""
    path, hops = rows.candidate.path, rows.candidate.hops[:-1]
    before = RelationPath(path.topic, path.steps[:-1])
    shorter = replace(rows.candidate, path=before, words=", ".join(hops), hops=hops, leads_to="")
    every = {
        row.walk[:-1]: {key: values for key, values in row.fields.items() if key[0] < len(path)} for row in rows.rows
    }
    return PathRows(shorter, tuple(Row(walk, fields) for walk, fields in every.items()), rows.complete)


def _excluding(graph: KnowledgeGraph, wording: Wording, rows: PathRows) -> Iterator[Reading]:
    """Exclude entities that are ends, or values beside the walks; an end may be on a walk that was not read."""
    ends: FieldKey = (len(rows.candidate.path), ())
    for entity in wording.excluded:
        is_end = entity in rows.ends
        if not is_end and not rows.complete:
            there = replace(rows.candidate, conditions=(Condition(*ends, entity),))
            (found,) = graph.paths.ends([there], limit=1, tolerated=TOLERATED)
            is_end = isinstance(found, TOLERATED) or bool(found.values)
        places = [ends] if is_end else [key for key, value in rows.values() if value.value == entity]
        yield "not", 1, [Condition(*place, entity, negated=True) for place in places[:1]]


def _some(rows: PathRows) -> list[tuple[FieldKey, str, Entity | Comparison, set[int]]]:
    """Return tests for the entities and texts beside the walks that only some rows have, with the rows' numbers."""
    return [
        (key, value.name, value.value if isinstance(value.value, Entity) else _is_text(value.value), numbers)
        for (key, value), numbers in rows.values().items()
        if len(numbers) < len(rows.rows) and (isinstance(value.value, Entity) or not is_date(value.value))
    ]


def _is_text(value: Literal) -> Comparison:
    return Comparison("=", Literal(value.value))


def _of_kind(graph: KnowledgeGraph, wording: Wording, rows: PathRows) -> Iterator[Reading]:
    """Yield the type that the question asks for, and the gender that a word such as "mother" implies.

    Of several words for hops, only the last is about the ends: the father's country is not male.
    """
    path, types, noun = rows.candidate, graph.schema.types, stems(wording.noun)[-1:]
    beside = [(name, Condition(*key, test)) for key, name, test, _ in _some(rows) if key[0] == len(path.path)]
    if noun and wording.noun not in word_table("stands_for", "en").values() and wording.unexplained(path) >= {*noun}:
        of_type = [pair for pair in beside if len(pair[1].steps) == 1 and pair[1].steps[0].relation in types]
        typed = [with_subclasses(graph, each) for name, each in of_type if stems(name)[-1:] == noun]
        yield wording.noun, 1, typed[:1]
    genders = {stem(word): gender for word, gender in word_table("genders", "en").items()}
    last = stem("".join(wording.cues.words[-1:]))
    if last in genders and last not in stems(path.words):
        yield last, 0, [each for name, each in beside if name.lower() == genders[last]][:1]


def _named(graph: KnowledgeGraph, wording: Wording, rows: PathRows, used: Sequence[str]) -> Iterator[Reading]:
    """Yield the values beside the walks whose names stand in the question, longest names first.

    What is true has the name of its relation, as in "which orchids are endangered". `used` are the stems of the words
    that other conditions explain.
    """
    schema, labels = graph.schema, graph.tables.relation_labels
    said = [
        (relation_words(key[1][-1].relation, schema, labels) if name == "true" and key[1] else name, key, test, numbers)
        for key, name, test, numbers in _some(rows)
    ]
    unexplained = wording.unexplained(rows.candidate).difference(used)
    text = f" {' '.join(stems(wording.text))} "
    kept = set(range(len(rows.rows)))
    for name, key, test, numbers in sorted(said, key=lambda item: -len(item[0])):
        words = set(terms(name))
        stands_there = words and words <= unexplained and f" {' '.join(stems(name))} " in text
        if stands_there and numbers & kept and not kept <= numbers:
            kept &= numbers
            unexplained -= words
            yield name, len(words), [Condition(*key, test)]
