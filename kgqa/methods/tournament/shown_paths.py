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
from kgqa.text.words import normalise, property_words, relation_words

MOST_ROWS = 6
MOST_FIELDS = 4
"""Most fields with values in a row."""
MOST_NAMES = 8
"""Most further fields of which only the name is shown."""
MOST_ANSWERS = 6
ANSWER = "answer"
_OF_ANSWER = f"{ANSWER}'s "
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
        self.graph, self._rows, self.candidate = graph, rows.rows, rows.candidate
        self._view, self._encoder = view, encoder
        self._asked = set(terms(view.question))
        self._years = set(YEAR_IN_TEXT.findall(view.question))
        path = self.candidate.path
        self._mediators = {at for at, step in enumerate(path.steps, start=1) if graph.tables.leads_to_mediator(step)}
        self.hops = tuple(at for at in range(1, len(path)) if at not in self._mediators)
        names = self._field_names()
        worth = self._worth(names)
        best = sorted(names, key=lambda key: (-worth[key], key[0], len(key[1])))
        valued = [key for key in best if worth[key] >= 0.5][:MOST_FIELDS]
        others = [names[key] for key in best if key not in valued][:MOST_NAMES]
        places = {name: key for key, name in names.items()}
        self.keys = {name: places[name] for name in [*(names[key] for key in valued), *others]}
        self.notes: dict[Value, str] = {}
        texts: dict[str, int] = {}
        common = Counter(v.value for row in self._rows for key in valued for v in values_of(row, key))
        everywhere = {value for value, number in common.items() if number >= len(self._rows) > 1}
        for row in self._rows:
            text, touching = self._row(row, {key: names[key] for key in valued}, everywhere)
            texts[text] = max(touching, texts.get(text, 0))
            self.notes.setdefault(row.end.value, text.partition("; ")[2])
        # a row without fields says nothing more than another row of its answer
        known = {text.partition("; ")[0] for text in texts if "; " in text}
        texts = {text: number for text, number in texts.items() if text not in known}
        first = sorted(texts, key=lambda text: -texts[text])[:MOST_ROWS] if valued else []
        self.prompt: dict[str, Any] = {
            "path": " ".join(view.elements(self.candidate)),
            "answers": self._count(rows, len(texts), len(first)) if first else self._answers(rows),
            "fields": others if first else list(self.keys),
            "rows": first,
        }
        view.texts.update([*first, self.prompt["answers"]])

    def key(self, name: str) -> FieldKey:
        """Return the field that a reply names.

        Raises:
            ValueError: The path has no such field.
        """
        named: dict[str, FieldKey] = {}
        # a field with exactly this name comes first: "from" is the field of a term rather than "answer's from"
        for prefix in (_OF_ANSWER, ""):
            for given, key in reversed(self.keys.items()):
                named[normalise(given.removeprefix(prefix))] = key
        named |= {f"hop {number}": (at, ()) for number, at in enumerate(self.hops, start=1)}
        named[ANSWER] = (len(self.candidate.path), ())
        if normalise(name) not in named:
            fields = ", ".join([*self.keys, ANSWER])
            raise ValueError(f'The path has no field "{name}"; its fields are: {fields}.')
        return named[normalise(name)]

    def values(self, key: FieldKey) -> list[Named]:
        """Return the values of a field in all rows."""
        return [value for row in self._rows for value in values_of(row, key)]

    def name(self, named: Named) -> str:
        """Return the text that is shown for a node or value."""
        return self._view.name(named.value, named.name) or "(no name)"

    def _count(self, rows: PathRows, texts: int, shown: int) -> str:
        least, number = "" if rows.complete else "more than ", len(rows.ends)
        count = f"{least}{number} answer{'s' if number != 1 else ''}"
        return f"{count} in {least}{texts} rows, {shown} shown" if texts > shown else count

    def _answers(self, rows: PathRows) -> str:
        ends = list({row.end.value: row.end for row in self._rows}.values())
        names, more = "; ".join(map(self.name, ends[:MOST_ANSWERS])), max(len(ends) - MOST_ANSWERS, 0)
        if not rows.complete:
            return f"{names}; and more than {more} others"
        return f"{names}; and {more} others" if more else names or "none"

    def _row(self, row: Row, valued: dict[FieldKey, str], everywhere: Container[Value]) -> tuple[str, int]:
        """Return the text of a row, and how many of its values occur in the question.

        Of the values of a field, those in the question come first, and those that all rows have come last.
        """
        nodes = {f"hop {n}": row.walk[at] for n, at in enumerate(self.hops, start=1)}
        parts = [f"{ANSWER} = {self.name(row.end)}"]
        parts += [f"{name} = {self.name(node)}" for name, node in nodes.items() if node.name]
        touching = 0
        for key, name in valued.items():
            if key in row.fields:
                values = sorted(row.fields[key], key=lambda v: (-self._touches(v), v.value in everywhere))
                touching += self._touches(values[0]) > 0
                different = list(dict.fromkeys(map(self.name, values)))  # a date may be stored typed and untyped
                parts.append(f"{name} = {', '.join(different[:2])}")
        return "; ".join(parts), touching

    def _field_names(self) -> dict[FieldKey, str]:
        """Return a distinct name for every field of a path."""
        owner = dict.fromkeys(self._mediators, "") | {at: f"hop {n}'s " for n, at in enumerate(self.hops, start=1)}
        owner[len(self.candidate.path)] = _OF_ANSWER
        named: dict[FieldKey, str] = {}
        for at, steps in dict.fromkeys(key for row in self._rows for key in row.fields):
            short, whole = (
                owner[at] + " / ".join(self._step_words(step, whole=whole) for step in steps) for whole in (False, True)
            )
            numbered = f"{whole} ({len(named)})"
            named[at, steps] = next(name for name in (short, whole, numbered) if name not in named.values())
        return named

    def _step_words(self, step: Step, *, whole: bool) -> str:
        schema, labels = self.graph.schema, self.graph.tables.relation_labels
        if step.relation in schema.types:
            return "type"
        words = relation_words(step.relation, schema, labels)
        if schema.wording == "dotted" and "." in step.relation and not whole and step.relation not in labels:
            words = property_words(step.relation.rsplit(".", 1)[-1])
        return words if step.direction == "out" else f"{words} of"

    def _worth(self, names: dict[FieldKey, str]) -> dict[FieldKey, float]:
        """Score each field: shared words of its name and values with the question, and the similarity of its name."""
        in_time = bool(self._years or _TIME.search(self._view.question))
        similar = np.clip(cosines(self._encoder, self._view.question, list(names.values())), 0.0, 1.0)
        worth: dict[FieldKey, float] = {}
        for (key, name), close in zip(names.items(), map(float, similar)):
            own, values = set(terms(name.removeprefix(_OF_ANSWER))), self.values(key)
            shared = len(self._asked & own) / max(1, len(own))
            worth[key] = 2.0 * max(map(self._touches, values), default=0.0)
            worth[key] += 0.6 * shared + close + (0.5 if key[0] in self._mediators else 0.0)
            # a field with the same values in all rows cannot tell answers apart
            constant = len({frozenset(v.value for v in values_of(row, key)) for row in self._rows}) == 1
            if in_time and any(re.match(DATE_TEXT[YEAR] + r"(?:-|$)", value.name) for value in values[:5]):
                worth[key] += 0.5
            elif key[0] == len(self.candidate.path) and name.endswith("type") and not constant:
                worth[key] += 0.5  # the type tells a college from a school
            elif len(self._rows) > 1 and worth[key] < 2.0 and constant:
                worth[key] -= 0.5
        return worth

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
