"""What kind of thing a question asks for, and whether a path leads to it, by what the graph says of the path's ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kgqa.errors import StoreError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, Step, Value
from kgqa.schema import Schema
from kgqa.search.words import stems
from kgqa.text.words import clean, normalise, type_words

VALUES = {"date time": "date", "time": "date", "number": "number", "boolean": "boolean", "text": "text"}
"""What a value is, by the words of its datatype. The end of a path whose kind has other words is a thing."""
_MAX_TYPES = 50
NEUTRAL = {
    "date": ("text", "number"), "year": ("text", "number", "thing"), "number": ("text", "thing"), "thing": ("text",),
    "": ("text",),
}  # fmt: skip
"""What may be meant, too: a year may be a number, a text or an event named by it, and things are counted."""


def value_kinds(kinds: Iterable[str], schema: Schema) -> set[str]:
    """Return what nodes of these types or datatypes are: "date", "number", "boolean", "text" or "thing"."""
    return {VALUES.get(type_words(kind, schema), "thing") for kind in kinds}


@dataclass(frozen=True, slots=True)
class AskedKind:
    """The kind that a question asks for.

    Attributes:
        graph: The graph.
        value: "date", "year", "number" or "thing" if the question word tells; "" if it does not.
        noun: The noun that the question asks for, perhaps with a word after it; "" if it has none.
    """

    graph: KnowledgeGraph
    value: str
    noun: str

    def fits(self, kinds_of_paths: Sequence[Collection[str]]) -> list[float]:
        """Return for the kinds of each path's ends: 1 if they are what is asked for, -1 if not, 0 if unknown.

        A noun decides only if it is the name of a class, in a graph that shows what its nodes are.
        """
        wanted = self._wanted
        heads = self._heads(set().union(*kinds_of_paths)) if wanted else {}
        named = {kind for kind, names in heads.items() if names & wanted}
        if wanted and not named:
            wanted = wanted if self._is_class else set()
        return [self._fit(kinds, named, bool(wanted)) for kinds in kinds_of_paths]

    @property
    def _wanted(self) -> set[str]:
        # a type that a relation declares is not the only one of a node
        decides = self.value in ("", "number") and self.graph.paths.samples_kinds
        return set(stems(normalise(self.noun))) if decides else set()

    @property
    def may_be_further(self) -> bool:
        """Whether the question names a class, which may be a hop further than its wording suggests."""
        return self.value in ("", "number") and self._is_class

    @property
    def _is_class(self) -> bool:
        return not self._wanted.isdisjoint(self.graph.tables.values.get("heads of classes", self._class_heads))

    def _fit(self, kinds: Collection[str], named: set[str], is_class: bool) -> float:
        values = value_kinds(kinds, self.graph.schema)
        if not kinds or not (self.value or is_class):
            return 0
        if not named.isdisjoint(kinds) or (self.value == "date" and "date" in values):
            return 1
        if self.value == "year" and "date" in values:
            return 0.5
        if self.value == "number" and "number" in values:
            return 0 if is_class else 1  # things of a class are counted
        may_be = {self.value, *NEUTRAL[self.value]}.difference({"thing"} if is_class else ())
        return 0 if values & may_be else -1

    def _class_heads(self) -> frozenset[str]:
        tables = self.graph.tables
        if not tables.counted_types:  # there may be thousands, and their names on a server
            return frozenset(_head(type_words(each, tables.schema)) for each in tables.classes)
        return frozenset().union(*self._heads(tables.classes).values())

    def _heads(self, kinds: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return the stems of the last words of each kind's names, in any language, and of its id."""
        known: dict[str, frozenset[str]] = self.graph.tables.values.get("heads of kinds", dict)
        new = [Entity(kind) for kind in kinds if kind not in known]
        names: dict[Entity, list[str]] = {}
        with suppress(StoreError):  # a kind is only a hint
            names = self.graph.names.names_of(new) if new else {}
        for entity in new:
            every = (*names.get(entity, ()), type_words(entity.iri, self.graph.schema))
            known[entity.iri] = frozenset(map(_head, every))
        return {kind: known[kind] for kind in kinds}


def _head(name: str) -> str:
    """Return the stem of the last word of a name, without accents."""
    return "".join(stems(normalise(name))[-1:])


def types_in_words(graph: KnowledgeGraph, nodes: Iterable[Value]) -> dict[Value, list[str]]:
    """Return the types of each entity in words: their labels where relations have labels, else the end of their ids."""
    entities = [each for each in nodes if isinstance(each, Entity)]
    steps = [Step(relation, "out") for relation in graph.schema.types[:1]]
    types = graph.paths.hop(entities, steps, limit=_MAX_TYPES) if steps else {}
    every = list(dict.fromkeys(each for values in types.values() for each in values if isinstance(each, Entity)))
    labels = graph.labels(every) if graph.schema.wording == "label" else {}
    words: dict[Value, str] = {
        each: clean(labels.get(each, "")) or type_words(each.iri, graph.schema) for each in every
    }
    return {
        entity: list(dict.fromkeys(word for each in types.get(entity, ()) if (word := words.get(each))))
        for entity in entities
    }
