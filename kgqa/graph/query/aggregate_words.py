"""Names the aggregates of a query in words, for its explanation: COUNT(DISTINCT ?x) is “the number of different ?x”."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_WORDS = {
    "Aggregate_Count": "the number of",
    "Aggregate_Sum": "the sum of",
    "Aggregate_Avg": "the average of",
    "Aggregate_Min": "the smallest",
    "Aggregate_Max": "the largest",
    "Aggregate_Sample": "any",
    "Aggregate_GroupConcat": "a list of",
}


class Aggregates:
    """The aggregates found so far in the algebra of a query, by the variables that the parser made for them."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def add(self, join: Any) -> str:
        """Add the aggregates of an AggregateJoin, and return the sentence on its groups; "" for a single group."""
        for aggregate in join.A:
            self._words[str(aggregate.res)] = self._aggregate(aggregate)
        groups = [self.words(each) for each in join.p.expr or ()]
        return f"Group by {' and '.join(dict.fromkeys(groups))}." if groups else ""

    def of(self, variable: Any) -> str:
        """Return the words of the aggregate whose result is a variable; "" if the variable is not a result."""
        return self._words.get(str(variable), "")

    def is_group_variable(self, extend: Any) -> bool:
        """Return whether an Extend only passes on a variable of the groups, which the parser takes as a sample."""
        return self.of(extend.expr) == f"any ?{extend['var']}"

    def words(self, expression: Any) -> str:
        """Return an expression as words: an aggregate, a variable, or the values from which it is computed."""
        if type(expression).__name__ == "Variable":
            return self.of(expression) or f"?{expression}"
        parts = list(dict.fromkeys(self.of(each) or f"?{each}" for each in _variables(expression)))
        return f"a value computed from {' and '.join(parts)}" if parts else "a computed value"

    def _aggregate(self, aggregate: Any) -> str:
        what = "rows" if str(aggregate.vars) == "*" else self.words(aggregate.vars)
        different = "different " if aggregate.distinct else ""
        return f"{_WORDS.get(aggregate.name, 'an aggregate of')} {different}{what}"


def _variables(node: Any) -> Iterator[Any]:
    """Yield the variables of an expression, in order."""
    if type(node).__name__ == "Variable":
        yield node
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, (list, tuple)) else ()
    for part in inner:
        yield from _variables(part)
