"""What a graph declares about its relations and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

import msgspec

from kgqa.graph.store import Rows
from kgqa.model import Direction, Entity, Value
from kgqa.schema import Schema

SIDES: tuple[Direction, Direction] = ("out", "in")
Select = Callable[..., Rows]
"""Renders a template of queries/ and returns all rows of the whole graph; see `GraphTables.read`."""


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


def declaring_predicates(schema: Schema) -> tuple[str, ...]:
    """Return the predicates of the triples that `read_declarations` reads."""
    marked = (*schema.noise_marked_by[:1], *(schema.mediator_marked_by or ())[:1])
    return tuple(dict.fromkeys((*schema.inverse, *schema.range, *schema.domain, *marked)))


def read_declarations(schema: Schema, read: Select) -> Declarations:
    """Read the declarations of a graph. Raises the same errors as `GraphTables.read`."""
    marked = (schema.mediator_marked_by or ())[:1]
    predicates = [Entity(each) for each in dict.fromkeys((*schema.inverse, *schema.range, *schema.domain, *marked))]
    statements: dict[str, list[tuple[str, Value]]] = {predicate.iri: [] for predicate in predicates}
    for subject, predicate, value in (
        read("declarations", what="Declarations", predicates=predicates) if predicates else ()
    ):
        if isinstance(subject, Entity) and isinstance(predicate, Entity) and value is not None:
            statements[predicate.iri].append((subject.iri, value))

    def pairs(*predicates: str) -> Iterator[tuple[str, str]]:
        # sorted, because the first of several types or inverses is used, and engines differ in their order
        for predicate in predicates:
            yield from sorted((name, node.iri) for name, node in statements[predicate] if isinstance(node, Entity))

    inverses: dict[str, str] = {}
    for left, right in pairs(*schema.inverse):
        if left != right:
            inverses.setdefault(left, right)
            inverses.setdefault(right, left)
    types: dict[Direction, dict[str, tuple[str, ...]]] = {side: {} for side in SIDES}
    for side, declaring in zip(SIDES, (schema.range, schema.domain)):
        for relation, type_ in pairs(*declaring):
            types[side][relation] = (*types[side].get(relation, ()), type_)
    # every thing of the graph may have some value of the predicate that marks noise, such as rdf:type
    noise = {name for node in declared_nodes(schema.noise_marked_by, read) for name in schema.named_by(node)}
    marks, others, mediators = dict[Value, None](), set[str](), set(schema.mediator_types)
    if schema.mediator_marked_by:
        marker, true = schema.mediator_marked_by
        for name, mark in sorted(statements[marker], key=str):
            if true in (getattr(mark, "value", None), getattr(mark, "iri", None)):
                mediators.add(name)
                marks[mark] = None
            else:
                others.add(name)
    return Declarations(
        frozenset(noise), inverses, types, tuple(marks), frozenset(mediators), frozenset(others - mediators)
    )


def declared_nodes(declaration: Sequence[str], read: Select) -> list[str]:
    """Return the nodes with any of these values of a predicate; `declaration` is (predicate, value, ...) or empty."""
    if not declaration:
        return []
    predicate, *kinds = map(Entity, declaration)
    rows = read("declared", what="The declared nodes", declared_by=predicate, kinds=kinds)
    return sorted(node.iri for (node,) in rows if isinstance(node, Entity))


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
