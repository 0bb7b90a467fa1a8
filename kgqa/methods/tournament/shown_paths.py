"""Paths as a language model sees them: rows with the fields that touch the question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.prompt_view import PromptView
from kgqa.model import Literal, Named, Step, Value
from kgqa.model.conditions import DATE_TEXT, YEAR
from kgqa.rank.embedding.encoder import CachedEncoder, cosines
from kgqa.rank.lexical import terms
from kgqa.search.conditions.rows import FieldKey, PathRows, Row
from kgqa.text.words import property_words, relation_words

MOST_ROWS = 6
MOST_FIELDS = 4
"""Most fields with values in a row."""
MOST_NAMES = 8
"""Most further fields of which only the name is shown."""
MOST_ANSWERS = 6
ANSWER = "answer"
_TIME = re.compile(
    r"\b(?:first|last|latest|earliest|oldest|youngest|newest|current|currently|now|when|before|after|since|during|until|"
    r"today|year|date|former|previous|next|new|recent|recently|still)\b",
    re.IGNORECASE,
)
YEAR_IN_TEXT = re.compile(r"(?<!\d)\d{4}(?!\d)")


class ShownPath:
    """One path of a prompt.

    Args:
        graph: The graph.
        view: The question as the language model sees it.
        rows: The walks of the path with all their fields.
        encoder: Finds fields whose names have a similar meaning to the question; None to compare only words.

    Attributes:
        candidate: The path.
        hops: The positions of the inner nodes that are no mediators, in the walks.
        keys: Map from the name of each field that is shown to the field.
        prompt: The values of the prompt file for this path.
        notes: Map from an end to its fields that touch the question, as text.
    """

    def __init__(self, graph: KnowledgeGraph, view: PromptView, rows: PathRows, encoder: CachedEncoder | None) -> None:
        self.graph, self.rows, self.candidate = graph, rows, rows.candidate
        self._view, self._encoder = view, encoder
        self._asked = set(terms(view.question))
        self._years = set(YEAR_IN_TEXT.findall(view.question))
        self._in_time = bool(self._years or _TIME.search(view.question))
        path = self.candidate.path
        self._mediators = {at for at, step in enumerate(path.steps, start=1) if graph.tables.leads_to_mediator(step)}
        self.hops = tuple(at for at in range(1, len(path)) if at not in self._mediators)
        names = self._field_names()
        worth = self._worth(names)
        best = sorted(names, key=lambda key: (-worth[key], key[0], len(key[1])))
        valued = [key for key in best if worth[key] >= 0.5][:MOST_FIELDS]
        others = [key for key in best if key not in valued][:MOST_NAMES]
        self.keys = {names[key]: key for key in [*valued, *others]}
        self.notes: dict[Value, str] = {}
        texts: dict[str, int] = {}
        common = Counter(v.value for row in rows.rows for key in valued for v in values_of(row, key))
        everywhere = {value for value, number in common.items() if number >= len(rows.rows) > 1}
        for row in rows.rows:
            text, touching = self._row(row, valued, names, everywhere)
            texts[text] = max(touching, texts.get(text, 0))
            self.notes.setdefault(row.end.value, text.partition("; ")[2])
        more = {text.partition("; ")[0] for text in texts if "; " in text}
        texts = {text: number for text, number in texts.items() if text not in more}
        first = sorted(texts, key=lambda text: -texts[text])[:MOST_ROWS] if valued else []
        number = len(rows.ends)
        count = f"{number if rows.complete else f'more than {number}'} answer{'s' if number != 1 else ''}"
        if len(texts) > len(first) > 0:
            count += f" in {len(texts) if rows.complete else f'more than {len(texts)}'} rows, {len(first)} shown"
        self.prompt: dict[str, Any] = {
            "path": " ".join(view.elements(self.candidate)),
            "answers": count if first else self._answers(),
            "fields": [names[key] for key in others] if first else list(self.keys),
            "rows": first,
        }
        view.texts.update([*first, self.prompt["answers"]])

    def _answers(self) -> str:
        ends = list({row.end.value: row.end for row in self.rows.rows}.values())
        names = "; ".join(self.name(end) for end in ends[:MOST_ANSWERS])
        more = len(ends) - MOST_ANSWERS
        if not self.rows.complete:
            return f"{names}; and more than {max(more, 0)} others"
        return f"{names}; and {more} others" if more > 0 else names or "none"

    def name(self, named: Named) -> str:
        """Return the text that is shown for a node or value."""
        return self._view.name(named.value, named.name) or "(no name)"

    def _row(
        self,
        row: Row,
        valued: Sequence[FieldKey],
        names: dict[FieldKey, str],
        everywhere: Container[Value],
    ) -> tuple[str, int]:
        """Return the text of a row, and how many of its values occur in the question.

        Of the values of a field, those in the question come first, and those that all rows have come last.
        """
        parts = [f"{ANSWER} = {self.name(row.end)}"]
        parts += [
            f"hop {n} = {self.name(row.walk[at])}" for n, at in enumerate(self.hops, start=1) if row.walk[at].name
        ]
        touching = 0
        for key in valued:
            if key in row.fields:
                values = sorted(row.fields[key], key=lambda v: (-self._touches(v), v.value in everywhere))
                touching += self._touches(values[0]) > 0
                different = list(dict.fromkeys(map(self.name, values)))  # a date may be stored typed and untyped
                parts.append(f"{names[key]} = {', '.join(different[:2])}")
        return "; ".join(parts), touching

    def _field_names(self) -> dict[FieldKey, str]:
        """Return a distinct name for every field of a path."""
        owner = dict.fromkeys(self._mediators, "") | {at: f"hop {n}'s " for n, at in enumerate(self.hops, start=1)}
        owner[len(self.candidate.path)] = f"{ANSWER}'s "
        named: dict[FieldKey, str] = {}
        for key in dict.fromkeys(key for row in self.rows.rows for key in row.fields):
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
        schema, labels = self.graph.schema, self.graph.tables.relation_labels
        if step.relation in schema.types:
            return "type"
        dotted = schema.wording == "dotted" and "." in step.relation and not whole and step.relation not in labels
        words = (
            property_words(step.relation.rsplit(".", 1)[-1])
            if dotted
            else relation_words(step.relation, schema, labels)
        )
        return words if step.direction == "out" else f"{words} of"

    def _worth(self, names: dict[FieldKey, str]) -> dict[FieldKey, float]:
        """Score each field: shared words of its name and values with the question, and the similarity of its name."""
        worth = dict.fromkeys(names, 0.0)
        for row in self.rows.rows:
            for key, values in row.fields.items():
                worth[key] = max(worth[key], 2.0 * max(map(self._touches, values)))
        similar = np.clip(cosines(self._encoder, self._view.question, list(names.values())), 0.0, 1.0)
        for (key, name), close in zip(names.items(), map(float, similar)):
            own = name.removeprefix(f"{ANSWER}'s ")
            shared = len(self._asked & set(terms(own))) / max(1, len(set(terms(own))))
            worth[key] += 0.6 * shared + close + (0.5 if key[0] in self._mediators else 0.0)
            if self._in_time and self._is_dated(key):
                worth[key] += 0.5
            elif key[0] == len(self.candidate.path) and name.endswith("type") and not self._is_constant(key):
                worth[key] += 0.5  # the type tells a college from a school
            elif len(self.rows.rows) > 1 and worth[key] < 2.0 and self._is_constant(key):
                worth[key] -= 0.5
        return worth

    def _is_constant(self, key: FieldKey) -> bool:
        """Return whether a field has the same values in all rows, so that it cannot tell answers apart."""
        every = [{value.value for value in values_of(row, key)} for row in self.rows.rows]
        return all(values == every[0] for values in every)

    def _is_dated(self, key: FieldKey) -> bool:
        values = (value for row in self.rows.rows for value in values_of(row, key))
        return any(re.match(DATE_TEXT[YEAR] + r"(?:-|$)", value.name) for value in list(values)[:5])

    def _touches(self, value: Named) -> float:
        """Return the share of a value's words that occur in the question; for a date, whether its year occurs."""
        if isinstance(value.value, Literal) and value.name[:4] in self._years:
            return 1.0
        words = set(terms(value.name))
        return len(words & self._asked) / len(words) if words else 0.0


def values_of(row: Row, key: FieldKey) -> Sequence[Named]:
    """Return the values of one field in a row, or the node of the walk itself if the field has no steps."""
    at, steps = key
    return row.fields.get(key, ()) if steps else [row.walk[at]]
