"""Recognises the operations and comparisons of exported queries in the algebra of a query, to explain them in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kgqa.model.conditions import XSD, year

RANKS = ("", "second ", "third ", *(f"{number}th " for number in range(4, 11)))
_NUMBER, _DATE = "^[-+]?([0-9]{1,30}", "^-?[0-9]{1,6}"
"""How the patterns of numbers and dates begin in pattern_text."""
_IN_TIME = {"=": "", "!=": "not ", "<": "before ", "<=": "{} or before ", ">": "after ", ">=": "{} or after "}
_OF_NUMBERS = {"=": "", "!=": "not ", "<": "less than ", "<=": "at most ", ">": "greater than ", ">=": "at least "}
COMPARED = {
    "=": "is", "!=": "is not", "<": "is less than", ">": "is greater than", "<=": "is at most", ">=": "is at least",
}  # fmt: skip
COUNT, EXISTS, SUM, AVERAGE = "Count every different", "Is there anything", "Add up", "Find the average of"
DIFFERENCE = "Find the difference between"
TAKEN = "take the one with the {}{} {}, or those that are equal."


def number_words(operator: str, value: str) -> str:
    """Return a comparison with a number in words, such as "at most 5"."""
    return f"{_OF_NUMBERS[operator]}{value}"


def time_words(operator: str, value: str) -> str:
    """Return a comparison with a year, month or day in words, such as "in or before 1998"."""
    preposition = "on" if value[1:].count("-") == 2 else "in"
    words = _IN_TIME[operator].format(preposition)
    return f"{words}{'' if words not in ('', 'not ') else preposition + ' '}{value}"


def extreme_words(kind: str, scale: str, counted: bool) -> str:
    """Return the word for the largest or smallest value, such as "latest"."""
    if counted:
        return {"most": "most", "least": "fewest"}[kind]
    return kind if scale == "number" else {"most": "latest", "least": "earliest"}[kind]


@dataclass(frozen=True)
class OwnOperation:
    """An operation: the first line of its explanation, the patterns to explain, and the last line."""

    head: str
    patterns: tuple[Any, ...]
    tail: str = ""


def own_operation(algebra: Any, relation_of: Callable[[Any, Any], str]) -> OwnOperation | None:
    """Return the operation of a query in the form of `operations.operation_query`; None if it has another form.

    Args:
        relation_of: returns the words of the relation that leads to a variable in a pattern.
    """
    try:
        node = _inner(algebra.p)
        if node.name == "Filter":
            return _extreme(node, relation_of) if node.expr.op == "=" else _total(node, relation_of)
        if node.p.name == "AggregateJoin":
            (count,) = node.p.A
            if count.name == "Aggregate_Count" and count.distinct and node.p.p.expr is None:
                return OwnOperation(f"{COUNT} ?{count.vars} such that", (node.p.p.p,))
        elif node.expr.name == "Builtin_ABS":
            second, first = (_inner(part) for part in (node.p.p1, node.p.p2))
            head = f"{DIFFERENCE} ?{_value(first)} and ?{_value(second)} such that"
            return OwnOperation(head, (first.p, second.p))
    except (AttributeError, TypeError, ValueError, StopIteration):
        pass  # a query of another form
    return None


def _total(node: Any, relation_of: Callable[[Any, Any], str]) -> OwnOperation | None:
    totals = _inner(node.p).p.p
    total, _, count = totals.A  # the second is for totals that are too large for decimals
    if _compared(node.expr) != ("number", ">", "0") or count.name != "Aggregate_Count" or totals.p.expr is not None:
        return None
    head = {"Aggregate_Sum": SUM, "Aggregate_Avg": AVERAGE}[total.name]
    block = _inner(totals.p.p)
    value = _value(block)
    relation = relation_of(block, value)
    return OwnOperation(f"{head} {relation} (every ?{value}) such that", (block.p,))


def _extreme(node: Any, relation_of: Callable[[Any, Any], str]) -> OwnOperation | None:
    block, rest = node.p.p1.p, node.p.p2
    best, rank, filters = "", 0, [_compared(node.expr)]
    while rest is not None:
        found = _inner(rest).p
        (aggregate,) = found.A
        rank += 1
        inner = found.p.p
        copy, rest = (inner.p.p1.p, inner.p.p2) if inner.name == "Filter" else (inner.p, None)
        filters += [_compared(inner.expr)] if inner.name == "Filter" else []
        if best not in ("", aggregate.name) or _form(copy) != _form(block, f"_{rank}"):
            return None
        best = aggregate.name
    sign = {"Aggregate_Max": "<", "Aggregate_Min": ">"}[best]
    below = [(f"key_{number}", sign, f"best_{number + 1}") for number in range(1, rank)]
    if filters != [("key", "=", "best_1"), *below]:
        return None
    inner = _inner(block)
    counted = "A" in inner.p.p
    if counted:
        value, pattern, scale = inner.p.p.A[0].vars, inner.p.p.p.p, "number"
    else:
        value, pattern = _value(inner), inner.p
        scale = "number" if _text_of(inner.expr).startswith(_NUMBER) else "day"
    words = extreme_words({"Aggregate_Max": "most", "Aggregate_Min": "least"}[best], scale, counted)
    tail = "Of these, " + TAKEN.format(RANKS[rank - 1], words, f"{relation_of(pattern, value)} (?{value})")
    return OwnOperation(f"Find every ?{_end(block)} such that", (pattern,), tail)


def converted(comparison: Any) -> tuple[Any, str] | None:
    """Return the variable that a comparison with a converted text tests, and the comparison in words."""
    left, right, op = comparison.expr, comparison.other, comparison.op
    if getattr(right, "name", "") != "Function" or not _text_of(left).startswith((_NUMBER, _DATE)):
        return None
    value = str(right.expr[0])
    if left.name == "Function" and str(left.iri) == f"{XSD}double":
        return _tested(left), number_words(op, value)
    if left.name == "AdditiveExpression":
        number = int(value)
        if int(next(part for part in _parts(left) if type(part).__name__ == "Literal")) == 100:
            number *= 100
        days, day = divmod(number, 100)  # a month is compared by its beginning 00 or its end 99
        value = f"{year(days // 100).value}-{days % 100:02d}" + ("" if day in (0, 99) else f"-{day:02d}")
    return _tested(left), time_words(op, value)


def value_kind(expression: Any) -> str:
    """Return what a test with a pattern of pattern_text asks for; empty for another pattern."""
    pattern = str(expression.pattern)
    return "a number" if pattern.startswith(_NUMBER) else "a date" if pattern.startswith(_DATE) else ""


def _compared(expression: Any) -> tuple[str, str, str]:
    return str(expression.expr), expression.op, str(expression.other)


def _end(block: Any) -> Any:
    """Return the variable of the ends in a block of ends and keys."""
    return (block.p if block.name == "Distinct" else block).PV[0]


def _inner(node: Any) -> Any:
    while node.name in ("Distinct", "Project", "ToMultiSet"):
        node = node.p
    return node


def _value(block: Any) -> Any:
    """Return the variable from which the key of a block is converted."""
    return _tested(block.expr)


def _tested(expression: Any) -> Any:
    return next(part for part in _parts(expression) if getattr(part, "name", "") == "Builtin_REGEX").text.arg


def _text_of(expression: Any) -> str:
    """Return the first pattern in an expression; empty if it has none."""
    tests = (str(part.pattern) for part in _parts(expression) if getattr(part, "name", "") == "Builtin_REGEX")
    return next(tests, "")


def _parts(node: Any) -> Iterator[Any]:
    yield node
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for part in inner:
        yield from _parts(part)


def _form(node: Any, suffix: str = "") -> Any:
    """Return a part of an algebra as nested tuples, with a suffix on the names of variables."""
    if isinstance(node, dict):
        name = getattr(node, "name", "")
        items = [(_form(key, suffix), _form(each, suffix)) for key, each in node.items() if str(key)[:1] != "_"]
        return name, tuple(sorted(items, key=repr))
    if isinstance(node, (list, tuple)):
        return tuple(sorted((_form(each, suffix) for each in node), key=repr))
    if type(node).__name__ == "Variable" and not str(node).startswith("__"):
        return f"?{node}{suffix}"
    return repr(node)
