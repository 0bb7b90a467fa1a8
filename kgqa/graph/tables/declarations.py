"""What a graph declares about its relations and types, read in one small query per predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

import msgspec

from kgqa.graph.store import Row, Rows
from kgqa.model import Direction, Entity, Value
from kgqa.schema import Schema

SIDES: tuple[Direction, Direction] = ("out", "in")
Read = Callable[..., Rows]
"""Renders a template of queries/ and returns all rows of the whole graph; see `WholeGraphQueries.read`."""


class Declarations(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What a graph declares about its relations and types; all keys and values but `marks` are IRIs.

    Attributes:
        noise: The relations that the graph marks as noise, such as identifiers in other catalogues.
        inverses: Map from each relation to its reverse property; each declared pair is entered in both orders.
        types: By direction, a map from relations to the types of the nodes to which they lead: their ranges (`out`) or
            domains. A relation that is missing is not declared, rather than declared otherwise.
        marks: The values that mark a type as a mediator type, as they are written in the graph ("true" as a string, as
            a boolean, or both).
        mediator_types: The mediator types, those of the schema included.
        other_types: The types that the graph marks as other than mediator types.
    """

    noise: frozenset[str]
    inverses: dict[str, str]
    types: dict[Direction, dict[str, tuple[str, ...]]]
    marks: tuple[Value, ...]
    mediator_types: frozenset[str]
    other_types: frozenset[str]

    @cached_property
    def inverse_of(self) -> dict[str, list[str]]:
        """Map from each relation to the relations that declare it as their reverse."""
        reverse: dict[str, list[str]] = {}
        for left, right in self.inverses.items():
            reverse.setdefault(right, []).append(left)
        return reverse


def declaring_predicates(schema: Schema) -> frozenset[str]:
    """Return the predicates of the triples that `read_declarations` reads."""
    marked = (*schema.noise_marked_by[:1], *(schema.mediator_marked_by or ())[:1])
    return frozenset((*marked, *schema.inverse, *schema.range, *schema.domain))


def read_declarations(schema: Schema, read: Read) -> Declarations:
    """Read the declarations of a graph. Raises the same errors as `WholeGraphQueries.read`."""
    inverses: dict[str, str] = {}
    for predicate in schema.inverse:
        for left, right in _pairs(schema, read, predicate):
            if left != right:
                inverses.setdefault(left, right)
                inverses.setdefault(right, left)
    types: dict[Direction, dict[str, tuple[str, ...]]] = {}
    for side, predicates in zip(SIDES, (schema.range, schema.domain)):
        known = types.setdefault(side, {})
        for predicate in predicates:
            for relation, type_ in _pairs(schema, read, predicate):
                known[relation] = (*known.get(relation, ()), type_)
    noise = {name for node in declared_nodes(schema, read, schema.noise_marked_by) for name in schema.named_by(node)}
    marks, others, mediators = dict[Value, None](), set[str](), set(schema.mediator_types)
    if schema.mediator_marked_by:
        marker, value = schema.mediator_marked_by
        what = f"The statements of {schema.short_id(marker)}"
        for node, mark in sorted(read("marked_types", what=what, marker=Entity(marker)), key=str):
            if not isinstance(node, Entity) or mark is None:
                continue
            if value in (getattr(mark, "value", None), getattr(mark, "iri", None)):
                mediators.add(node.iri)
                marks[mark] = None
            else:
                others.add(node.iri)
    return Declarations(
        frozenset(noise), inverses, types, tuple(marks), frozenset(mediators), frozenset(others - mediators)
    )


def declared_nodes(schema: Schema, read: Read, declaration: tuple[str, ...]) -> list[str]:
    """Return the nodes with any of these values of a predicate; `declaration` is (predicate, value, ...)."""
    if not declaration:
        return []
    predicate, *kinds = map(Entity, declaration)
    what = f"The nodes declared by {schema.short_id(predicate.iri)}"
    return sorted(node for (node,) in _iris(read("declared", what=what, declared_by=predicate, kinds=kinds)))


def _pairs(schema: Schema, read: Read, predicate: str) -> list[tuple[str, ...]]:
    """Return the statements of a predicate between entities, as pairs of the IRIs of subject and object."""
    what = f"The statements of {schema.short_id(predicate)}"
    # sorted, because the first of several types or inverses is used, and engines differ in their order
    return sorted(_iris(read("predicate_pairs", what=what, predicate=Entity(predicate))))


def _iris(rows: Iterable[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the IRIs of the rows that consist of entities."""
    for row in rows:
        iris = tuple(node.iri for node in row if isinstance(node, Entity))
        if len(iris) == len(row):
            yield iris


class ListedMediators(NamedTuple):
    """The mediator types of a kind of graph, and the relations whose range is one of these types; all are full IRIs."""

    types: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()


def listed_mediators(schema: Schema) -> ListedMediators:
    """Return the list that a schema names, for slices of a well-known graph that lack the triples of its schema."""
    return _read_list(schema.mediator_list, schema.id_base) if schema.mediator_list else ListedMediators()


@cache
def _read_list(name: str, base: str) -> ListedMediators:
    text = (files("kgqa") / "schemas" / f"{name}_mediators.txt").read_text(encoding="utf-8")
    ids = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    return ListedMediators(*(frozenset(base + each for each in part.split()) for part in ids.split("\n\n")))
