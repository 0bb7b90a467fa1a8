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

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.path_verdicts import (
    PathVerdict,
    RepliedCondition,
    RepliedOperation,
    VerdictKind,
    path_verdict,
)
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.shown_paths import ANSWER, YEAR_IN_TEXT, ShownPath, values_of
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
from kgqa.trace.trace import Trace

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
Extend = Callable[[Candidate], list[Candidate]]
"""Returns the best extensions of a path by one hop."""


class UnknownPart(ValueError):
    """A reply names a field or value that was not shown. The message says so to the language model."""


class Judge:
    """The judge of one question.

    Args:
        graph: The graph.
        view: The question as the language model sees it.
        resources: The resources of the run.
        trace: Records the verdicts.

    Attributes:
        accepted: The path that answers the question, with conditions and operation; None if there is none so far.
        focus: The path that leads towards the answer, according to the last verdict; None if there is none.
    """

    def __init__(self, graph: KnowledgeGraph, view: PromptView, resources: Resources, trace: Trace) -> None:
        self._graph = graph
        self._view = view
        self._resources = resources
        self._trace = trace
        self._asked: set[object] = set()
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
        new = [each for each in candidates if each.identity not in self._rejected][:MOST_PATHS]
        key = tuple(each.identity for each in new)
        if not new or key in self._asked or len(self._asked) >= MOST_PROMPTS:
            return None
        self._asked.add(key)
        rows = _with_different_ends(read_rows(self._graph, new, self._trace))
        shown = [ShownPath(self._graph, self._view, each, self._resources.encoder) for each in rows]
        if not shown:
            return None
        form = path_verdict(len(shown)).then(partial(self._checked, shown=shown))
        prompt = self._resources.prompts.prompt(
            "top/judge",
            "decide",
            form,
            question=self._view.question,
            masked=self._view.masks,
            paths=[each.prompt for each in shown],
        )
        verdict, chosen = self._resources.ask([prompt], self._trace)[0] or (None, None)
        self.focus = chosen if verdict == "missing" else None
        self.accepted = chosen if verdict == "complete" else None
        if verdict == "wrong":
            self._rejected |= {each.identity for each in new}
        self._trace.record(
            Judged(
                paths=tuple(each.candidate.words for each in shown),
                verdict=verdict or "unparsed",
                path=chosen.words if chosen else None,
                conditions=len(chosen.conditions) if chosen else 0,
                operation=chosen.operation.kind if chosen and chosen.operation else None,
            )
        )
        return verdict

    def finish(self, candidates: Sequence[Candidate], extend: Extend) -> list[Candidate]:
        """Ask until a path is accepted or nothing is left to ask, and return the paths, best first.

        Args:
            candidates: The best paths of the search, best first.
            extend: Called with a path that leads towards the answer.
        """
        ranked = list(candidates)
        extensions = 0
        while self.accepted is None:
            pool = ranked
            if self.focus is not None:
                if extensions == MOST_EXTENSIONS:
                    break
                extensions += 1
                longer = extend(self.focus)
                ranked = list(dict.fromkeys([*longer, *ranked]))
                pool = longer or ranked
            if self.judge(pool) is None:
                break
        return ranked

    def _checked(self, verdict: PathVerdict, *, shown: Sequence[ShownPath]) -> tuple[VerdictKind, Candidate | None]:
        """Return a verdict with its path; an `UnknownPart` is what is wrong with the reply."""
        if verdict.kind == "wrong":
            return "wrong", None
        chosen = replied_candidate(shown[verdict.path], verdict, self._view.topics_asked)
        if verdict.kind == "complete" and not self._has_answers(chosen):
            raise UnknownPart("No row meets all of these conditions; give others, or fewer.")
        return verdict.kind, chosen

    def _has_answers(self, chosen: Candidate) -> bool:
        """Return whether a path with new conditions has an answer; a question for a number or yes or no always has."""
        operation = chosen.operation
        if not chosen.conditions or (operation and operation.kind not in Operation.returns_ends):
            return True
        try:
            return bool(self._graph.paths.ends([chosen], limit=1)[0].values)
        except TOLERATED:
            return False


def _with_different_ends(every: Sequence[PathRows]) -> list[PathRows]:
    """Leave out paths with the same ends as a better path; of paths with more ends than were read, all stay."""
    found: dict[object, PathRows] = {}
    for each in every:
        found.setdefault(frozenset(each.ends) if each.complete else each.candidate.identity, each)
    return list(found.values())


def replied_candidate(shown: ShownPath, verdict: PathVerdict, topics: Sequence[Entity]) -> Candidate:
    """Return the path of a verdict, with its conditions and operation.

    Args:
        shown: The path that the verdict names.
        verdict: The verdict.
        topics: The topics of the question, which may be compared.

    Raises:
        UnknownPart: A field, value or comparison of the verdict does not fit the path.
    """
    end = _key(shown, verdict.answer or ANSWER)
    found = _ending_at(shown, end)
    conditions = (with_subclasses(shown.graph, _condition(shown, each, end)) for each in verdict.conditions)
    found = replace(found, conditions=tuple(dict.fromkeys((*found.conditions, *conditions))))
    return _with_operation(shown, found, verdict.operations[0], topics, end) if verdict.operations else found


def _ending_at(shown: ShownPath, end: FieldKey) -> Candidate:
    """Return the path that leads to a field of the rows: to the character in place of the actor, or to a date.

    Raises:
        UnknownPart: The path meets paths from other topics, or has conditions, after the node with the field.
    """
    found, graph = shown.candidate, shown.graph
    at, steps = end
    if end == (len(found.path), ()):
        return found
    if any(join.at > at for join in found.joins) or any(each.at > at for each in found.conditions):
        raise UnknownPart(f'The answer must be "{ANSWER}" or a field of the last node of this path.')
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


def _key(shown: ShownPath, name: str) -> FieldKey:
    wanted = normalise(name)
    path = shown.candidate.path
    if wanted == ANSWER:
        return len(path), ()
    for number, at in enumerate(shown.hops, start=1):
        if wanted == f"hop {number}":
            return at, ()
    # a field with exactly this name comes first: "from" is the field of a term rather than "answer's from"
    exact = {normalise(given): key for given, key in reversed(shown.keys.items())}
    short = {normalise(given.removeprefix(f"{ANSWER}'s ")): key for given, key in reversed(shown.keys.items())}
    if wanted in exact or wanted in short:
        return exact.get(wanted) or short[wanted]
    fields = ", ".join([*shown.keys, ANSWER])
    raise UnknownPart(f'The path has no field "{name}"; its fields are: {fields}.')


def _condition(shown: ShownPath, given: RepliedCondition, end: FieldKey) -> Condition:
    key = _key(shown, given.field)
    at, steps = _placed(shown, key, end)
    if given.sign in ("present", "absent"):
        if not steps:
            raise UnknownPart(f'"{given.field}" is never absent; give "is": "=" or "!=" with a value.')
        return Condition(at, steps, None, negated=given.sign == "absent")
    values = _values(shown, key)
    sign: Any = given.sign
    same = values.get(normalise(given.value))
    if isinstance(same, Entity) and sign in ("=", "!="):
        if key == end and sign == "=":
            raise UnknownPart("A condition may not name the answer; say by another field which answers are meant.")
        return Condition(at, steps, same, negated=sign == "!=")
    literals = [value for value in values.values() if isinstance(value, Literal)]
    if not literals:
        some = "; ".join(list(values)[:10])
        raise UnknownPart(f'"{given.field}" has no value "{given.value}"; its values are: {some}.')
    try:
        test = Comparison(sign, _literal(given.value, literals))
    except ValueError as error:
        raise UnknownPart(f'"{given.field}" cannot be compared with "{given.value}": {error}.') from error
    if steps and sign in (">", ">=") and _END_OF_TERM.search(normalise(given.field)):
        # something that has not ended has no end date, and lasts longer than any date
        return Condition(at, steps, Comparison(_OPPOSITE[sign], test.value), negated=True)
    if steps and sign == "!=":
        return Condition(at, steps, Comparison("=", test.value), negated=True)
    return Condition(at, steps, test)


def _values(shown: ShownPath, key: FieldKey) -> dict[str, Entity | Literal]:
    """Return the values of a field in all rows, by their normalised name as the prompt shows it."""
    found: dict[str, Entity | Literal] = {}
    for row in shown.rows.rows:
        for value in values_of(row, key):
            found.setdefault(normalise(value.name), value.value)
            found.setdefault(normalise(shown.name(value)), value.value)
    return found


def _with_operation(
    shown: ShownPath, found: Candidate, given: RepliedOperation, topics: Sequence[Entity], end: FieldKey
) -> Candidate:
    kind: Any = given.kind
    path = found.path
    try:
        if given.compared:
            if len(topics) < 2 or found.conditions or found.joins:
                raise UnknownPart('There is nothing to compare; leave "compare" out.')
            alone = replace(found, path=RelationPath(path.topic), joins=(), restricted=())
            ends = [value for row in shown.rows.rows for value in values_of(row, end)]
            scale: Any = _scale(ends) if kind in Operation.returns_ends else "number"
            return replace(alone, operation=Operation(kind, path.steps, scale=scale, topics=tuple(topics)))
        if kind in ("count", "exists"):
            return replace(found, operation=Operation(kind))
        key = end if normalise(given.field) in ("", ANSWER) else _key(shown, given.field)
        at, steps = _placed(shown, key, end)
        values = [value for row in shown.rows.rows for value in values_of(row, key)]
        if kind in ("sum", "average"):
            if at != len(path):
                raise UnknownPart(f'Only fields of the answer can be added, not "{given.field}".')
            return replace(found, operation=Operation(kind, steps))
        scale = "number" if given.counted else _scale(values)
        inner = None if at == len(path) else at
        return replace(
            found,
            operation=Operation(kind, steps, scale=scale, counted=given.counted, rank=given.rank, at=inner),
        )
    except UnknownPart:
        raise
    except ValueError as error:
        raise UnknownPart(f"The operation is not possible: {error}.") from error


def _scale(values: Sequence[Named]) -> Any:
    """Return how values are ordered: as numbers, or by day if most of them are dates.

    Raises:
        UnknownPart: They are neither.
    """
    literals = [value.value for value in values if isinstance(value.value, Literal)]
    if not literals:
        raise UnknownPart("The field has no numbers or dates to compare.")
    return "day" if _are_dates(literals) else "number"


def _are_dates(values: Sequence[Literal]) -> bool:
    """Return whether values are dates. Numbers without a datatype are years only if all values can be dates."""
    typed = [value.datatype in _DATES for value in values if value.datatype in _DATES or value.datatype in NUMBERS]
    if typed:
        return 2 * sum(typed) > len(typed)
    return all(_DATE.fullmatch(value.value) for value in values)


def _literal(text: str, values: Sequence[Literal]) -> Literal:
    """Return the literal with which values are compared, of the same sort as these values: date, number or text.

    Raises:
        ValueError: The values are dates or numbers, and the text is neither.
    """
    text = text.strip()
    if _are_dates(values):
        for datatype in (YEAR, MONTH, DAY):
            if re.fullmatch(DATE_TEXT[datatype], text[:10]):
                return Literal(text[:10], datatype)
        if found := YEAR_IN_TEXT.search(text):
            return Literal(found[0], YEAR)
        raise ValueError("it is not a date such as 1998 or 1998-05-31")
    number = text.replace(",", "")
    if re.fullmatch(NUMBER_TEXT, number) and any(re.fullmatch(NUMBER_TEXT, value.value) for value in values):
        return Literal(number, XSD + "decimal")
    return next((value for value in values if normalise(value.value) == normalise(text)), Literal(text))
