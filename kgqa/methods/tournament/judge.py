"""The judge: a language model that reads the rows of the best paths and says which path answers the question, and how.

Its verdict ends the search, adds conditions or an operation to a path, or lets the search go one hop on. It extends the
last decision of System 2 (thesis, section 4.2, step 6), which accepts or rejects one path.

A condition of a reply is taken only if its field was shown and its value is in the rows or, as a number or date, can be
compared. What a language model remembers can therefore not become a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kgqa.llm.replies.path_verdicts import (
    PathVerdict,
    RepliedCondition,
    RepliedOperation,
    VerdictKind,
    path_verdict,
)
from kgqa.methods.tournament.asked import AskedQuestion
from kgqa.methods.tournament.shown_paths import ANSWER, YEAR_IN_TEXT, ShownPath
from kgqa.model import Candidate, Entity, Literal, Named, RelationPath
from kgqa.model.conditions import (
    DATE_TEXT,
    DAY,
    MONTH,
    NUMBER_TEXT,
    NUMBERS,
    XSD,
    YEAR,
    Comparison,
    Condition,
    Operation,
    Operator,
)
from kgqa.search.classes import with_subclasses
from kgqa.search.conditions.rows import FieldKey, PathRows, read_rows
from kgqa.search.tolerance import TOLERATED
from kgqa.text.words import hop_words, normalise
from kgqa.trace import Judged

MOST_PATHS = 5
"""Most paths in one prompt."""
MOST_PROMPTS = 4
"""Most prompts of the judge per question."""
MOST_EXTENSIONS = 2
"""Most hops beyond the depth of the search, along a path that leads towards the answer."""

_DATES = frozenset({YEAR, MONTH, DAY, XSD + "dateTime"})
_DATE = re.compile(r"-?[01]\d{3}|2[01]\d{2}|-?\d{4}-\d{2}(?:-\d{2})?(?:T.*)?")
_OPPOSITE: dict[str, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_END_OF_TERM = re.compile(r"(?:^|\W)(?:to|until|end|ended|end date|to date)$")


class Judge:
    """The judge of one question.

    Attributes:
        accepted: The path that answers the question, with conditions and operation; None if there is none so far.
        focus: The path that leads towards the answer, according to the last verdict; None if there is none.
    """

    def __init__(self, asked: AskedQuestion) -> None:
        self._asked = asked
        self._shown: set[object] = set()
        self._rejected: set[object] = set()
        self.accepted: Candidate | None = None
        self.focus: Candidate | None = None

    def judge(self, candidates: Sequence[Candidate]) -> VerdictKind | None:
        """Ask about the best of the paths that were not rejected before.

        Returns:
            The verdict; None if there is nothing to ask about, or the reply cannot be used.

        Raises:
            BudgetExhausted: The question's budget is spent.
            ModelUnavailable: The language model failed.
            StoreError: The graph failed.
        """
        asked, view = self._asked, self._asked.shown
        new = [each for each in candidates if each.identity not in self._rejected][:MOST_PATHS]
        key = tuple(each.identity for each in new)
        if not new or key in self._shown or len(self._shown) >= MOST_PROMPTS:
            return None
        self._shown.add(key)
        # of paths with the same ends, the best is shown; paths with more ends than were read all are
        different: dict[object, PathRows] = {}
        for rows in read_rows(asked.graph, new, asked.trace):
            different.setdefault(frozenset(rows.ends) if rows.complete else rows.candidate.identity, rows)
        shown = [ShownPath(asked.graph, view, rows, asked.resources.encoder) for rows in different.values()]
        if not shown:
            return None
        form = path_verdict(len(shown)).then(partial(self._checked, shown=shown))
        make, paths = asked.resources.prompts.prompt, [each.prompt for each in shown]
        prompt = make("top/judge", "decide", form, question=view.question, masked=view.masks, paths=paths)
        verdict, chosen = asked.resources.ask([prompt], asked.trace)[0] or (None, None)
        self.focus = chosen if verdict == "missing" else None
        self.accepted = chosen if verdict == "complete" else None
        if verdict == "wrong":
            self._rejected |= {each.identity for each in new}
        asked.trace.record(
            Judged(
                paths=tuple(each.candidate.words for each in shown),
                verdict=verdict or "unparsed",
                path=chosen.words if chosen else None,
                conditions=len(chosen.conditions) if chosen else 0,
                operation=chosen.operation.kind if chosen and chosen.operation else None,
            )
        )
        return verdict

    def finish(
        self, candidates: Sequence[Candidate], extend: Callable[[Candidate], list[Candidate]]
    ) -> Sequence[Candidate]:
        """Ask until a path is accepted or nothing is left to ask, and return the paths, best first.

        Args:
            candidates: The best paths of the search, best first.
            extend: Called with a path that leads towards the answer; returns its best extensions by one hop.
        """
        extensions = 0
        while self.accepted is None and not (self.focus and extensions == MOST_EXTENSIONS):
            longer = extend(self.focus) if self.focus else []
            extensions += self.focus is not None
            candidates = list(dict.fromkeys([*longer, *candidates]))
            if self.judge(longer or candidates) is None:
                break
        return candidates

    def _checked(self, verdict: PathVerdict, *, shown: Sequence[ShownPath]) -> tuple[VerdictKind, Candidate | None]:
        """Return a verdict with its path; a ValueError is what is wrong with the reply."""
        if verdict.kind == "wrong":
            return "wrong", None
        chosen = replied_candidate(shown[verdict.path], verdict, self._asked.entities)
        if verdict.kind == "complete" and not self._has_answers(chosen):
            raise ValueError("No row meets all of these conditions; give others, or fewer.")
        return verdict.kind, chosen

    def _has_answers(self, chosen: Candidate) -> bool:
        """Return whether a path with new conditions has an answer; a question for a number or yes or no always has."""
        if not chosen.conditions or (chosen.operation and chosen.operation.is_computed):
            return True
        (found,) = self._asked.graph.paths.ends([chosen], limit=1, tolerated=TOLERATED)
        return not isinstance(found, TOLERATED) and bool(found.values)


def replied_candidate(shown: ShownPath, verdict: PathVerdict, topics: Sequence[Entity]) -> Candidate:
    """Return the path of a verdict, with its conditions and operation.

    Args:
        shown: The path that the verdict names.
        verdict: The verdict.
        topics: The topics of the question, which may be compared.

    Raises:
        ValueError: A field, value or comparison of the verdict does not fit the path. The message says so to the
            language model.
    """
    end = shown.key(verdict.answer or ANSWER)
    found = _ending_at(shown, end)
    conditions = (with_subclasses(shown.graph, _condition(shown, each, end)) for each in verdict.conditions)
    found = replace(found, conditions=tuple(dict.fromkeys((*found.conditions, *conditions))))
    return _with_operation(shown, found, verdict.operations[0], topics, end) if verdict.operations else found


def _ending_at(shown: ShownPath, end: FieldKey) -> Candidate:
    """Return the path that leads to a field of the rows: to the character in place of the actor, or to a date."""
    found, graph = shown.candidate, shown.graph
    at, steps = end
    if end == (len(found.path), ()):
        return found
    if any(each > at for each in (*(join.at for join in found.joins), *(each.at for each in found.conditions))):
        raise ValueError(f'The answer must be "{ANSWER}" or a field of the last node of this path.')
    path = RelationPath(found.path.topic, (*found.path.steps[:at], *steps))
    hops = hop_words(path, graph.schema, graph.tables.relation_labels, is_mediator=graph.tables.leads_to_mediator)
    restricted = tuple(each for each in found.restricted if each[0] < len(path))
    return replace(found, path=path, words=", ".join(hops), hops=hops, leads_to="", restricted=restricted)


def _placed(shown: ShownPath, key: FieldKey, end: FieldKey) -> FieldKey:
    """Return where a field lies in the walks of the path that leads to `end`."""
    (at, steps), (last, ending) = key, end
    if key == end:
        return last + len(ending), ()
    if at > last:
        return last, (*shown.candidate.path.steps[last:at], *steps)
    if at == last and len(ending) == len(steps) == 2 and steps[0] == ending[0]:
        return at + 1, steps[1:]  # a field of the same record
    return key


def _condition(shown: ShownPath, given: RepliedCondition, end: FieldKey) -> Condition:
    key = shown.key(given.field)
    at, steps = _placed(shown, key, end)
    if given.sign in ("present", "absent"):
        if not steps:
            raise ValueError(f'"{given.field}" is never absent; give "is": "=" or "!=" with a value.')
        return Condition(at, steps, None, negated=given.sign == "absent")
    values = {normalise(name): each.value for each in shown.values(key)[::-1] for name in (shown.name(each), each.name)}
    sign: Any = given.sign
    same = values.get(normalise(given.value))
    if isinstance(same, Entity) and sign in ("=", "!="):
        if key == end and sign == "=":
            raise ValueError("A condition may not name the answer; say by another field which answers are meant.")
        return Condition(at, steps, same, negated=sign == "!=")
    literals = [value for value in values.values() if isinstance(value, Literal)]
    if not literals:
        some = "; ".join(list(values)[:-11:-1])
        raise ValueError(f'"{given.field}" has no value "{given.value}"; its values are: {some}.')
    test = Comparison(sign, _literal(given, literals))
    if steps and sign in (">", ">=") and _END_OF_TERM.search(normalise(given.field)):
        # something that has not ended has no end date, and lasts longer than any date
        return Condition(at, steps, Comparison(_OPPOSITE[sign], test.value), negated=True)
    if steps and sign == "!=":
        return Condition(at, steps, Comparison("=", test.value), negated=True)
    return Condition(at, steps, test)


def _with_operation(
    shown: ShownPath, found: Candidate, given: RepliedOperation, topics: Sequence[Entity], end: FieldKey
) -> Candidate:
    kind: Any = given.kind
    path = found.path
    if given.compared:
        if len(topics) < 2 or found.conditions or found.joins:
            raise ValueError('There is nothing to compare; leave "compare" out.')
        alone = replace(found, path=RelationPath(path.topic), joins=(), restricted=())
        scale: Any = _scale(shown.values(end)) if kind in Operation.returns_ends else "number"
        return replace(alone, operation=Operation(kind, path.steps, scale=scale, topics=tuple(topics)))
    if kind in ("count", "exists"):
        return replace(found, operation=Operation(kind))
    key = end if normalise(given.field) in ("", ANSWER) else shown.key(given.field)
    at, steps = _placed(shown, key, end)
    inner = None if at == len(path) else at
    if kind in ("sum", "average"):
        if inner is not None:
            raise ValueError(f'Only fields of the answer can be added, not "{given.field}".')
        return replace(found, operation=Operation(kind, steps))
    scale = "number" if given.counted else _scale(shown.values(key))
    operation = Operation(kind, steps, scale=scale, counted=given.counted, rank=given.rank, at=inner)
    return replace(found, operation=operation)


def _scale(values: Sequence[Named]) -> Any:
    """Return how values are ordered: as numbers, or by day if most of them are dates."""
    literals = [value.value for value in values if isinstance(value.value, Literal)]
    if not literals:
        raise ValueError("The field has no numbers or dates to compare.")
    return "day" if _are_dates(literals) else "number"


def _are_dates(values: Sequence[Literal]) -> bool:
    """Return whether values are dates. Numbers without a datatype are years only if all values can be dates."""
    typed = [value.datatype in _DATES for value in values if value.datatype in _DATES or value.datatype in NUMBERS]
    if typed:
        return 2 * sum(typed) > len(typed)
    return all(_DATE.fullmatch(value.value) for value in values)


def _literal(given: RepliedCondition, values: Sequence[Literal]) -> Literal:
    """Return the literal with which values are compared, of the same sort as these values: date, number or text."""
    text = given.value.strip()
    if _are_dates(values):
        for datatype in (YEAR, MONTH, DAY):
            if re.fullmatch(DATE_TEXT[datatype], text[:10]):
                return Literal(text[:10], datatype)
        if found := YEAR_IN_TEXT.search(text):
            return Literal(found[0], YEAR)
        raise ValueError(
            f'"{given.field}" cannot be compared with "{text}": it is not a date such as 1998 or 1998-05-31.'
        )
    number = text.replace(",", "")
    if re.fullmatch(NUMBER_TEXT, number) and any(re.fullmatch(NUMBER_TEXT, value.value) for value in values):
        return Literal(number, XSD + "decimal")
    return next((value for value in values if normalise(value.value) == normalise(text)), Literal(text))
