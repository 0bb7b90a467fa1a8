"""A naive evaluator of conditions and operations over a list of triples, which the engines are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgqa.graph.query.operations import nodes_beyond
from kgqa.graph.query.text import Variable
from kgqa.model import Entity, Literal, RelationPath, Step, Value
from kgqa.model.conditions import Comparison, Condition, Operation
from tests.graph.graph_factories import Fact


def number_of(value: Value) -> float | None:
    text = text_of(value)
    return float(text) if re.fullmatch(r"[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]{1,2})?", text) else None


def date_of(value: Value) -> tuple[int, ...] | None:
    """Return the year, the year and month, or the year, month and day."""
    zone = "Z|[-+][0-9]{2}:[0-9]{2}"
    found = re.fullmatch(
        rf"(-?[0-9]{{1,6}})(?:{zone}|-([0-9]{{2}})(?:{zone}|-([0-9]{{2}})(?:T.*|{zone})?)?)?", text_of(value)
    )
    return tuple(int(part) for part in found.groups()[:3] if part) if found else None


def text_of(value: Value) -> str:
    return value.iri if isinstance(value, Entity) else value.value


def compare(left, operator: str, right) -> bool:
    return {
        "=": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
    }[operator]  # fmt: skip


def fulfils(value: Value, test: Entity | Comparison | None) -> bool:
    if not isinstance(test, Comparison):
        return test is None or value == test
    if test.scale == "text":
        return compare(text_of(value), test.operator, test.value.value)
    if test.scale == "number":
        number = number_of(value)
        return number is not None and compare(number, test.operator, float(test.value.value))
    date, wanted = date_of(value), date_of(test.value)
    if date is None or (len(date) < len(wanted) and test.operator in ("=", "!=")):
        return False
    return compare((*date, 0, 0)[: len(wanted)], test.operator, wanted)


@dataclass(frozen=True)
class NaiveGraph:
    """A list of triples, walked through one by one."""

    facts: Sequence[Fact]

    def next(self, node: Value, step: Step) -> set[Value]:
        if step.direction == "out":
            return {o for s, relation, o in self.facts if s == node and relation == step.relation}
        return {s for s, relation, o in self.facts if o == node and relation == step.relation}

    def reached(self, nodes: Iterable[Value], steps: Sequence[Step]) -> set[Value]:
        found = set(nodes)
        for step in steps:
            found = {there for here in found for there in self.next(here, step)}
        return found

    def hold(self, conditions: Sequence[tuple[Condition, Sequence[Variable]]], node: Value) -> bool:
        """Return whether a node fulfils all conditions; variables with the same name are the same node."""
        found: list[dict[Variable, Value]] = [{}]
        for condition, names in conditions:
            if condition.negated:
                if any(fulfils(value, condition.test) for value in self.reached([node], condition.steps)):
                    return False
                continue
            walks = [(node, bound) for bound in found]
            for step, name in zip(condition.steps, names):
                walks = [
                    (there, {**bound, name: there})
                    for here, bound in walks
                    for there in self.next(here, step)
                    if bound.get(name, there) == there
                ]
            found = [bound for value, bound in walks if fulfils(value, condition.test)]
            if isinstance(condition.test, Entity):  # a query has the entity in place of the variable
                found = [{name: value for name, value in bound.items() if name not in names[-1:]} for bound in found]
        return bool(found)

    def walks(self, path: RelationPath, conditions: Sequence[Condition]) -> set[tuple[Value, ...]]:
        named = list(zip(conditions, nodes_beyond(conditions)))
        found: set[tuple[Value, ...]] = {(path.topic,)}
        for at, step in enumerate(path.steps, start=1):
            found = {
                (*walk, node)
                for walk in found
                for node in self.next(walk[-1], step)
                if self.hold([pair for pair in named if pair[0].at == at], node)
            }
        return found

    def answer(self, path: RelationPath, conditions: Sequence[Condition], operation: Operation | None) -> set:
        """Return the ends or numbers that a query for the path returns."""
        walks = self.walks(path, conditions)
        if operation and operation.topics:
            walks = {(topic,) for topic in operation.topics}
        ends = {walk[-1] for walk in walks}
        if operation is None:
            return ends
        if operation.kind == "count":
            return {float(len(ends))}
        if operation.kind == "exists":
            return {"true" if ends else "false"}
        at = -1 if operation.at is None else operation.at
        starts = {end: {walk[at] for walk in walks if walk[-1] == end} for end in ends}
        values = {end: self.reached(starts[end], operation.steps) for end in ends}
        if operation.counted:
            keys = {(end, len(found)) for end, found in values.items() if found}
        elif operation.scale == "number":
            keys = {(end, number_of(value)) for end, found in values.items() for value in found}
        else:
            keys = {(end, day_key(value)) for end, found in values.items() for value in found}
        keys = {(end, key) for end, key in keys if key is not None}
        if operation.kind == "difference":
            first, second = ([key for end, key in keys if end == topic] for topic in operation.topics)
            return {abs(left - right) for left in first for right in second}
        if operation.kind in ("sum", "average"):
            total = sum(key for _, key in keys)
            return {total / (1 if operation.kind == "sum" else len(keys))} if keys else set()
        top = max if operation.kind == "most" else min
        keys = {(end, top(key for other, key in keys if other == end)) for end, _ in keys}
        order = sorted({key for _, key in keys}, reverse=operation.kind == "most")
        best = order[operation.rank - 1 : operation.rank]
        return {end for end, key in keys if [key] == best}


def day_key(value: Value) -> tuple[int, ...] | None:
    date = date_of(value)
    return (*date, 0, 0)[:3] if date else None


def written(answers: Iterable[Value | float | str]) -> set[Entity | str]:
    """Return answers in one form: engines write numbers with other datatypes and digits."""
    found: set[Entity | str] = set()
    for answer in answers:
        if isinstance(answer, Literal):
            number = number_of(answer)
            answer = answer.value if number is None else number
        found.add(f"{answer:.4g}" if isinstance(answer, (int, float)) else answer)
    return found
