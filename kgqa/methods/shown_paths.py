"""Paths as a judge sees them: rows with the fields that touch the question, and what a reply about them means.

A condition of a reply is taken only if its field was shown and its value is in the rows or, as a number or date, can be
compared. What a language model remembers can therefore not become a condition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kgqa.conditions import DATE_TEXT, DAY, MONTH, NUMBER_TEXT, XSD, YEAR, Comparison, Condition, Operation, Operator
from kgqa.explore.rows import Field, FieldKey, PathRows, Row
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.path_verdicts import PathVerdict, RepliedCondition, RepliedOperation
from kgqa.methods.prompt_view import PromptView
from kgqa.model import Candidate, Entity, Literal, Named, RelationPath, Step
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import terms
from kgqa.words import normalise, relation_words, type_words

MOST_ROWS = 4
MOST_FIELDS = 4
"""Most fields with values in a row."""
MOST_NAMES = 8
"""Most further fields of which only the name is shown."""
MOST_ANSWERS = 6
ANSWER = "answer"
_OPPOSITE: dict[str, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_END_OF_TERM = re.compile(r"(?:^|\W)(?:to|until|end|ended|end date|to date)$")
_TIME = re.compile(
    r"\b(?:first|last|latest|earliest|oldest|youngest|newest|current|currently|now|when|before|after|since|during|until|"
    r"today|year|date|former|previous|next|new|recent|recently|still)\b",
    re.IGNORECASE,
)
_YEAR_IN_TEXT = re.compile(r"(?<!\d)\d{4}(?!\d)")


class UnknownPart(Exception):
    """A reply names a field or value that was not shown. The message says so to the language model."""


@dataclass
class ShownPath:
    """One path of a prompt.

    Attributes:
        candidate: The path.
        rows: Its walks with all their fields.
        keys: Map from the name of each field that is shown to the field.
        prompt: The values of the prompt file for this path.
    """

    candidate: Candidate
    rows: PathRows
    keys: dict[str, FieldKey] = field(default_factory=dict)
    prompt: dict[str, Any] = field(default_factory=dict)


class ShownPaths:
    """The paths of one prompt.

    Args:
        graph: The graph.
        view: The question as the language model sees it.
        every: The paths with their rows.
        counts: Map from a path to its number of answers, in words.
        encoder: Finds fields whose names have a similar meaning to the question; None to compare only words.
    """

    def __init__(
        self, graph: KnowledgeGraph, view: PromptView, every: Sequence[PathRows], encoder: CachedEncoder | None
    ) -> None:
        self._graph = graph
        self._view = view
        self._encoder = encoder
        self._asked = set(terms(view.question))
        self._years = set(_YEAR_IN_TEXT.findall(view.question))
        self._in_time = bool(self._years or _TIME.search(view.question))
        self.paths = [self._shown(each) for each in every]

    # --- the prompt

    def _shown(self, rows: PathRows) -> ShownPath:
        shown = ShownPath(rows.candidate, rows)
        names = self._field_names(rows)
        worth = self._worth(rows, names)
        best = sorted(names, key=lambda key: (-worth[key], key[0], len(key[1])))
        valued = [key for key in best if worth[key] >= 0.5][:MOST_FIELDS]
        others = [key for key in best if key not in valued][:MOST_NAMES]
        shown.keys = {names[key]: key for key in [*valued, *others]}
        texts: dict[str, int] = {}
        for row in rows.rows:
            text, touching = self._row(row, valued, names)
            texts[text] = max(touching, texts.get(text, 0))
        first = sorted(texts, key=lambda text: -texts[text])[:MOST_ROWS] if valued else []
        number = len(rows.ends)
        count = f"{number if rows.complete else f'more than {number}'} answer{'s' if number != 1 else ''}"
        if len(texts) > len(first) > 0:
            count += f" in {len(texts) if rows.complete else f'more than {len(texts)}'} rows, {len(first)} shown"
        shown.prompt = {
            "path": " ".join(self._view.elements(rows.candidate)),
            "answers": count if first else self._answers(rows),
            "fields": [names[key] for key in others] if first else list(shown.keys),
            "rows": first,
        }
        self._view.texts.update([*first, shown.prompt["answers"]])
        return shown

    def _answers(self, rows: PathRows) -> str:
        ends = list({row.end.value: row.end for row in rows.rows}.values())
        names = "; ".join(self._name(end) for end in ends[:MOST_ANSWERS])
        more = len(ends) - MOST_ANSWERS
        if not rows.complete:
            return f"{names}; and more than {max(more, 0)} others"
        return f"{names}; and {more} others" if more > 0 else names or "none"

    def _name(self, named: Named) -> str:
        return self._view.name(named.value, named.name) or "(no name)"

    def _row(self, row: Row, valued: Sequence[FieldKey], names: dict[FieldKey, str]) -> tuple[str, int]:
        """Return the text of a row, and how many of its values occur in the question."""
        parts = [f"{ANSWER} = {self._name(row.end)}"]
        path_hops = self._hops(row, names)
        parts[:0] = path_hops
        touching = 0
        found = {each.key: each for each in row.fields}
        for key in valued:
            if key in found:
                values = sorted(found[key].values, key=lambda value: -self._touches(value))
                touching += self._touches(values[0]) > 0
                parts.append(f"{names[key]} = {', '.join(self._name(value) for value in values[:2])}")
        return "; ".join(parts), touching

    def _hops(self, row: Row, names: dict[FieldKey, str]) -> list[str]:
        inner = [at for at in self._named_nodes(row) if row.walk[at].name]
        return [f"hop {number} = {self._name(row.walk[at])}" for number, at in enumerate(inner, start=1)]

    def _named_nodes(self, row: Row) -> list[int]:
        return [at for at in range(1, len(row.walk) - 1) if at not in self._mediators]

    def _field_names(self, rows: PathRows) -> dict[FieldKey, str]:
        """Return a distinct name for every field of a path."""
        path = rows.candidate.path
        leads = self._graph.leads_to_mediator
        self._mediators = {at for at, step in enumerate(path.steps, start=1) if leads(step)}
        hops = [at for at in range(1, len(path)) if at not in self._mediators]
        owner = dict.fromkeys(self._mediators, "") | {at: f"hop {n}'s " for n, at in enumerate(hops, start=1)}
        owner[len(path)] = f"{ANSWER}'s "
        named: dict[FieldKey, str] = {}
        for key in dict.fromkeys(each.key for row in rows.rows for each in row.fields):
            at, steps = key
            name = owner[at] + " / ".join(self._step_words(step) for step in steps)
            if name in named.values():
                name = owner[at] + " / ".join(self._step_words(step, whole=True) for step in steps)
            number = 2
            while name in named.values():
                name, number = f"{name} ({number})", number + 1
            named[key] = name
        return named

    def _step_words(self, step: Step, *, whole: bool = False) -> str:
        schema, labels = self._graph.schema, self._graph.relation_labels
        if step.relation in schema.types:
            return "type"
        dotted = schema.wording == "dotted" and "." in step.relation and not whole and step.relation not in labels
        words = type_words(step.relation, schema) if dotted else relation_words(step.relation, schema, labels)
        return words if step.direction == "out" else f"{words} of"

    def _worth(self, rows: PathRows, names: dict[FieldKey, str]) -> dict[FieldKey, float]:
        """Score each field: shared words of its name and values with the question, and the similarity of its name."""
        worth = dict.fromkeys(names, 0.0)
        for row in rows.rows:
            for each in row.fields:
                worth[each.key] = max(worth[each.key], 2.0 * max(map(self._touches, each.values), default=0.0))
        similar = self._similarity(list(names.values()))
        for (key, name), close in zip(names.items(), similar):
            own = name.removeprefix(f"{ANSWER}'s ")
            shared = len(self._asked & set(terms(own))) / max(1, len(set(terms(own))))
            worth[key] += 0.6 * shared + close + (0.5 if key[0] in self._mediators else 0.0)
            if self._in_time and self._is_dated(rows, key):
                worth[key] += 0.5
            elif len(rows.rows) > 1 and worth[key] < 2.0 and self._is_constant(rows, key):
                worth[key] -= 0.5
        return worth

    def _is_constant(self, rows: PathRows, key: FieldKey) -> bool:
        """Return whether a field has the same values in all rows, so that it cannot tell answers apart."""
        every = [{value.value for value in _values_in(row.fields, key)} for row in rows.rows]
        return all(values == every[0] for values in every)

    def _similarity(self, texts: list[str]) -> list[float]:
        if self._encoder is None or not texts:
            return [0.0] * len(texts)
        found = self._encoder.encode(texts) @ self._encoder.encode_questions([self._view.question])[0]
        return [float(each) for each in np.clip(found, 0.0, 1.0)]

    def _is_dated(self, rows: PathRows, key: FieldKey) -> bool:
        values = (value for row in rows.rows for each in row.fields if each.key == key for value in each.values)
        return any(re.match(DATE_TEXT[YEAR] + r"(?:-|$)", value.name) for value in list(values)[:5])

    def _touches(self, value: Named) -> float:
        """Return the share of a value's words that occur in the question; for a date, whether its year occurs."""
        if isinstance(value.value, Literal) and value.name[:4] in self._years:
            return 1.0
        words = set(terms(value.name))
        return len(words & self._asked) / len(words) if words else 0.0

    # --- the reply

    def candidate(self, verdict: PathVerdict) -> Candidate:
        """Return the path of a verdict, with its conditions and operation.

        Raises:
            UnknownPart: A field, value or comparison of the verdict does not fit the path.
        """
        assert verdict.path is not None
        shown = self.paths[verdict.path]
        found = shown.candidate
        conditions = tuple(self._condition(shown, each) for each in verdict.conditions)
        found = replace(found, conditions=tuple(dict.fromkeys((*found.conditions, *conditions))))
        return self._with_operation(shown, found, verdict.operation) if verdict.operation else found

    def _key(self, shown: ShownPath, name: str) -> FieldKey:
        wanted = normalise(name)
        path = shown.candidate.path
        if wanted == ANSWER:
            return len(path), ()
        for number, at in enumerate((at for at in range(1, len(path)) if not self._is_mediator(path, at)), start=1):
            if wanted == f"hop {number}":
                return at, ()
        for given, key in shown.keys.items():
            if wanted in (normalise(given), normalise(given.removeprefix(f"{ANSWER}'s "))):
                return key
        fields = ", ".join([*shown.keys, ANSWER])
        raise UnknownPart(f'The path has no field "{name}"; its fields are: {fields}.')

    def _is_mediator(self, path: RelationPath, at: int) -> bool:
        return self._graph.leads_to_mediator(path.steps[at - 1])

    def _condition(self, shown: ShownPath, given: RepliedCondition) -> Condition:
        at, steps = self._key(shown, given.field)
        if given.sign in ("present", "absent"):
            if not steps:
                raise UnknownPart(f'"{given.field}" is never absent; give "is": "=" or "!=" with a value.')
            return Condition(at, steps, None, negated=given.sign == "absent")
        values = self._values(shown, (at, steps))
        sign: Any = given.sign
        same = values.get(normalise(given.value))
        if isinstance(same, Entity) and sign in ("=", "!="):
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

    def _values(self, shown: ShownPath, key: FieldKey) -> dict[str, Entity | Literal]:
        """Return the values of a field in all rows, by their normalised name as the prompt shows it."""
        at, steps = key
        found: dict[str, Entity | Literal] = {}
        for row in shown.rows.rows:
            values = [row.walk[at]] if not steps else [v for each in row.fields if each.key == key for v in each.values]
            for value in values:
                found.setdefault(normalise(value.name), value.value)
                found.setdefault(normalise(self._name(value)), value.value)
        return found

    def _with_operation(self, shown: ShownPath, found: Candidate, given: RepliedOperation) -> Candidate:
        kind: Any = given.kind
        path = found.path
        try:
            if given.compared:
                topics = self._view.topics_asked
                if len(topics) < 2 or found.conditions or found.joins:
                    raise UnknownPart('There is nothing to compare; leave "compare" out.')
                alone = replace(found, path=RelationPath(path.topic), joins=(), restricted=())
                ends = [row.end for row in shown.rows.rows]
                scale: Any = _scale(ends) if kind in Operation.returns_ends else "number"
                return replace(alone, operation=Operation(kind, path.steps, scale=scale, topics=topics))
            if kind in ("count", "exists"):
                return replace(found, operation=Operation(kind))
            at, steps = self._key(shown, given.field or ANSWER)
            values = [
                value
                for row in shown.rows.rows
                for value in ([row.walk[at]] if not steps else _values_in(row.fields, (at, steps)))
            ]
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
        except ValueError as error:
            raise UnknownPart(f"The operation is not possible: {error}.") from error


def _values_in(fields: Sequence[Field], key: FieldKey) -> list[Named]:
    return [value for each in fields if each.key == key for value in each.values]


def _scale(values: Sequence[Named]) -> Any:
    """Return how values are ordered: as numbers, or by day if most of them are dates.

    Raises:
        UnknownPart: They are neither.
    """
    texts = [value.name for value in values if isinstance(value.value, Literal)]
    if not texts:
        raise UnknownPart("The field has no numbers or dates to compare.")
    dates = sum(bool(re.fullmatch(r"-?\d{4}(-\d{2}){0,2}(T.*)?", text)) for text in texts)
    return "day" if 2 * dates > len(texts) else "number"


def _literal(text: str, values: Sequence[Literal]) -> Literal:
    """Return the literal with which values are compared, of the same sort as these values: date, number or text.

    Raises:
        ValueError: The values are dates or numbers, and the text is neither.
    """
    text = text.strip()
    dates = [value for value in values if re.match(r"-?\d{4}(-|$)", value.value)]
    if 2 * len(dates) > len(values):
        for datatype in (YEAR, MONTH, DAY):
            if re.fullmatch(DATE_TEXT[datatype], text[:10]):
                return Literal(text[:10], datatype)
        if found := _YEAR_IN_TEXT.search(text):
            return Literal(found[0], YEAR)
        raise ValueError("it is not a date such as 1998 or 1998-05-31")
    number = text.replace(",", "")
    if re.fullmatch(NUMBER_TEXT, number) and any(re.fullmatch(NUMBER_TEXT, value.value) for value in values):
        return Literal(number, XSD + "decimal")
    return next((value for value in values if normalise(value.value) == normalise(text)), Literal(text))
