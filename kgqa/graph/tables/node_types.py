"""The types of the nodes to which relations lead, as the graph declares them or names of relations give them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kgqa.graph.store import Row
from kgqa.graph.tables.changes import VALUE, Changes, Select, matches
from kgqa.graph.tables.mediators import SIDES
from kgqa.model import Direction, Entity
from kgqa.schema import Schema

SUBJECTS = 50
"""How many subjects of a relation are sampled to find the relations that describe its subjects."""
Types = dict[Direction, dict[str, str]]
"""For each direction, a map from relations to the type of the nodes they lead to: their range or domain."""
Pairs = Callable[[str], Iterable[Row]]
"""Returns the statements of a predicate, as pairs of subject and object."""


def find_types(schema: Schema, relations: Collection[str], pairs: Pairs) -> Types:
    """Return the types for all relations of a graph."""
    return _with_domains(_declared_types(schema, relations, pairs), schema, relations)


def follow_types(
    types: Types, changes: Changes, *, schema: Schema, relations: Collection[str], select: Select
) -> Types | None:
    """Return the types after some changes of the graph; None if they must be computed again.

    Args:
        relations: all relations of the graph after the changes.
        select: renders a template of queries/ and runs the query.
    """
    if not changes.relations.isdisjoint(schema.range + schema.domain):
        return None
    gone = changes.relations.difference(relations)
    new = [name for name in changes.relations - gone if not all(name in types[side] for side in SIDES)]
    nodes = [Entity(name) for name in new]

    def pairs(predicate: str) -> Iterable[Row]:
        values = matches(select, [(node, Entity(predicate), VALUE, 0) for node in nodes])
        return sorted(((node, value) for node, found in zip(nodes, values) for value in found), key=str)

    followed = _declared_types(schema, new, pairs)
    for side in SIDES:
        followed[side] |= {name: type_ for name, type_ in types[side].items() if name not in gone}
    # whether names of relations give domains depends on whether there are any ranges
    return _with_domains(followed, schema, new) if bool(followed["out"]) == bool(types["out"]) else None


def _declared_types(schema: Schema, relations: Collection[str], pairs: Pairs) -> Types:
    found: Types = {"out": {}, "in": {}}
    for side, predicates in zip(SIDES, (schema.range, schema.domain)):
        for predicate in predicates:
            for relation, type_ in pairs(predicate):
                if isinstance(relation, Entity) and isinstance(type_, Entity) and relation.iri in relations:
                    found[side].setdefault(relation.iri, type_.iri)
    return found


def _with_domains(types: Types, schema: Schema, relations: Iterable[str]) -> Types:
    # types for one direction only would give steps in that direction an advantage
    for name in relations if types["out"] else ():
        if domain := schema.domain_in_name(name):
            types["in"].setdefault(name, domain)
    return types
