"""Folds the possible next steps of a path: keeps one of several steps with the same meaning.

A relation means the same as its reverse property walked backwards. In Wikidata, a fact may be stored twice: as a direct
edge (a claim), and as a node with details (a statement). The two steps through the statement mean the same as the one
step along the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgqa.graph.tables.declarations import SIDES
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Entity, Step, Value
from kgqa.schema import Schema


@dataclass(frozen=True, slots=True)
class StatementExit:
    """A step out of a statement. Together with the step into the statement, it means the same as a claim.

    In Wikidata, p:P36 followed by ps:P36 means the same as the claim wdt:P36.
    """

    step: Step
    claim: str


def statement_exits(schema: Schema, last: Step) -> list[StatementExit]:
    """Return the exits of the statements to which a step leads; empty if it does not lead to statements."""
    exits = []
    for enter, exit_, direct in schema.mediator_pairs:
        first, second = (enter, exit_) if last.direction == "out" else (exit_, enter)
        local = last.relation.removeprefix(first)
        if last.relation.startswith(first) and "/" not in local:
            exits.append(StatementExit(Step(second + local, last.direction), direct + local))
    return exits


def fold_steps(relations: Mapping[str, Iterable[Value]], tables: GraphTables) -> set[Step]:
    """Return the steps without noise, and without those that walk a reverse property of another step backwards.

    Args:
        relations: the relations that lead on, by direction.
    """
    steps = (Step(node.iri, side) for side in SIDES for node in relations[side] if isinstance(node, Entity))
    kept = {step for step in steps if not tables.is_noise(step.relation)}
    for step in [step for step in kept if step.direction == "out"]:
        twins = {*tables.inverse_of.get(step.relation, ()), tables.inverses.get(step.relation)}
        kept -= {Step(twin, "in") for twin in twins if twin}
    return kept


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Sort steps: outward steps first, then by name."""
    return tuple(sorted(steps, key=lambda step: (step.direction == "in", step.relation)))
