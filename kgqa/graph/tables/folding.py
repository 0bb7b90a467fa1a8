"""Folds steps: keeps only one of several steps with the same meaning, and removes noise.

A relation means the same as its reverse property walked backwards. In Wikidata, a fact may be stored twice: as a direct
edge (a claim), and as a node with details (a statement). The two steps through the statement mean the same as the one
step along the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kgqa.model import Step
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
    found = []
    for enter, exit_, direct in schema.mediator_pairs:
        first, second = (enter, exit_) if last.direction == "out" else (exit_, enter)
        local = last.relation.removeprefix(first)
        if last.relation.startswith(first) and "/" not in local:
            found.append(StatementExit(Step(second + local, last.direction), direct + local))
    return found


def fold_steps(
    steps: set[Step],
    last: Step | None,
    *,
    schema: Schema,
    noise: AbstractSet[str],
    inverses: Mapping[str, str],
    inverse_of: Mapping[str, Sequence[str]],
    says_more: Callable[[StatementExit], bool],
    may_return: bool,
) -> tuple[Step, ...]:
    """Fold the possible next steps of a path, and sort the remaining steps: outward steps first, then by name.

    Args:
        last: the last step of the path; None for a path without steps.
        noise: noise relations in addition to those of the schema.
        inverses: map from each relation to its reverse property.
        inverse_of: map from each relation to the relations that declare it as their reverse.
        says_more: tells whether some statement at the end of the path has no claim; called only if needed.
        may_return: whether a walk may go back over the edge by which it reached a node.
    """
    kept = {step for step in steps if step.relation not in noise and not schema.is_noise(step.relation)}
    for step in [step for step in kept if step.direction == "out"]:
        twins = {*inverse_of.get(step.relation, ()), inverses.get(step.relation)}
        kept -= {Step(twin, "in") for twin in twins if twin}
    if last is None:
        exits, way_back = [], None
    else:
        exits, way_back = statement_exits(schema, last), last.reversed()
    for leaving in exits:
        if not may_return and way_back:
            # a statement has one subject and one value
            kept.discard(way_back)
        if leaving.step in kept and not says_more(leaving):
            kept.discard(leaving.step)
    return tuple(sorted(kept, key=lambda step: (step.direction == "in", step.relation)))
