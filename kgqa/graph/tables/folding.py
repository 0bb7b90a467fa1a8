"""Of steps that say the same, one candidate: a relation and the inverse of its reverse property, a claim and the
statement that gives it. And no step for what says nothing: noise, and the way back out of a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kgqa.model import Step
from kgqa.schema import Schema


@dataclass(frozen=True, slots=True)
class StatementExit:
    """How a statement that a step entered may be left so that both steps say what a claim says: p:P36 and then ps:P36,
    what wdt:P36 says.
    """

    step: Step
    claim: str


def statement_exits(schema: Schema, last: Step) -> list[StatementExit]:
    """The exits of the statements that a step leads to, where it leads to any."""
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
    """The candidates among the steps that lead on from a path, outward ones first, by name.

    Args:
        last: the step that the path ends with; None at the topic.
        noise: relations that are noise besides those of the schema.
        inverses, inverse_of: relation to its reverse property, and to all whose reverse property it is.
        says_more: whether some statement at the end of the path says what no claim says; asked only where it matters.
        may_return: whether a walk may go back over the edge it came by.
    """
    kept = {step for step in steps if step.relation not in noise and not schema.is_noise(step.relation)}
    for step in [step for step in kept if step.direction == "out"]:
        twins = {*inverse_of.get(step.relation, ()), inverses.get(step.relation)}
        kept -= {Step(twin, "in") for twin in twins if twin}
    for leaving in statement_exits(schema, last) if last else ():
        if not may_return:
            # a statement has one subject and one value
            kept.discard(last.reversed())
        if leaving.step in kept and not says_more(leaving):
            kept.discard(leaving.step)
    return tuple(sorted(kept, key=lambda step: (step.direction == "in", step.relation)))
