"""Lists of mediator types and relations, for slices of a well-known graph that lack the triples of its schema."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kgqa.model import Direction
from kgqa.schema import Schema


@dataclass(frozen=True)
class ListedMediators:
    """The mediator types of a kind of graph, and the relations whose range is one of these types; all are full IRIs."""

    types: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()

    def leads(self, relation: str, side: Direction, schema: Schema, not_types: Container[str]) -> bool:
        """Return whether a relation leads to mediators.

        Args:
            not_types: types that are no mediator types in the graph, whatever the list says.
        """
        if side == "out":
            return relation in self.relations
        domain = schema.domain_in_name(relation)
        return domain in self.types and domain not in not_types


def listed_mediators(schema: Schema) -> ListedMediators:
    """Return the list that a schema names; an empty list if it names none."""
    return _read(schema.mediator_list, schema.id_base) if schema.mediator_list else ListedMediators()


@cache
def _read(name: str, base: str) -> ListedMediators:
    text = (files("kgqa") / "schemas" / f"{name}_mediators.txt").read_text(encoding="utf-8")
    ids = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    types, relations = (frozenset(base + each for each in part.split()) for part in ids.split("\n\n"))
    return ListedMediators(types, relations)
