"""Conditions on the nodes of a path, and operations on its ends: parts of the one query that gives the answers.

All values are compared by their text, because graphs write the same number or date with different datatypes, or with
none. A number is compared as a double. A date is compared in the precision of the date it is compared with: the year
1967 equals `"1967"^^xsd:gYear`, `"1967-05-02"^^xsd:date` and the string `1967-05-02`. A less precise value is neither
equal nor unequal to the date it is compared with, and comes before all days of its year or month: 1967 is before
1967-05-02. A value that is no number or no date fulfils no comparison.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, get_args
from typing import Literal as OneOf

import msgspec

from kgqa.model.terms import Entity, Literal, Step

XSD = "http://www.w3.org/2001/XMLSchema#"
YEAR, MONTH, DAY, BOOLEAN = XSD + "gYear", XSD + "gYearMonth", XSD + "date", XSD + "boolean"
NUMBERS = frozenset(
    XSD + name for name in ("integer", "decimal", "double", "float", "int", "long", "nonNegativeInteger")
)
MAX_RANK = 10

Operator = OneOf["=", "!=", "<", "<=", ">", ">="]
Scale = OneOf["number", "year", "month", "day", "text"]
OperationKind = OneOf["count", "exists", "most", "least", "sum", "average", "difference"]
NUMBER_TEXT = r"[-+]?([0-9]{1,30}([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]{1,2})?"
_YEAR = r"-?[0-9]{1,6}"
DATE_TEXT = {YEAR: _YEAR, MONTH: _YEAR + "-[0-9]{2}", DAY: _YEAR + "-[0-9]{2}-[0-9]{2}"}


class Comparison(msgspec.Struct, frozen=True, tag_field="kind", tag="comparison"):
    """A comparison with a literal: a number, a year (`xsd:gYear`), a month, a day, true or false, or a text.

    Raises:
        ValueError: the operator is unknown, the literal is none of these, a text is compared by size, or it has a
            language: texts are compared without their languages.
    """

    operator: Operator
    value: Literal

    def __post_init__(self) -> None:
        scale = self.scale
        if self.operator not in get_args(Operator):
            raise ValueError(f"unknown operator; use one of {' '.join(get_args(Operator))}")
        if scale == "text" and self.operator not in ("=", "!="):
            raise ValueError("a text can only be equal or unequal")
        if self.value.language:
            raise ValueError("texts are compared without a language; use a literal without one")

    @property
    def scale(self) -> Scale:
        """How values are compared."""
        datatype, text = self.value.datatype, self.value.value
        if datatype in NUMBERS and re.fullmatch(NUMBER_TEXT, text):
            return "number"
        scales: dict[str, Scale] = {YEAR: "year", MONTH: "month", DAY: "day"}
        if datatype in scales and re.fullmatch(DATE_TEXT[datatype], text):
            return scales[datatype]
        is_truth = datatype == BOOLEAN and text in ("true", "false")
        if datatype.startswith(XSD) and datatype != XSD + "string" and not is_truth:
            raise ValueError(f"no value can be compared with {text[:40]!r} of the datatype {datatype[:80]}")
        return "text"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a node of a path.

    Attributes:
        at: the node's index in a walk: 1 is the node after the topic, the length of the path is the answer.
        steps: the way from the node to the tested value; empty to test the node itself.
        test: what the value must be: an entity, or a comparison; None if any value will do.
        negated: whether there must be no such value: absence, or negation.
    """

    at: int
    steps: tuple[Step, ...] = ()
    test: Entity | Comparison | None = None
    negated: bool = False

    def __post_init__(self) -> None:
        if self.at < 1:
            raise ValueError("a condition is on a node after the topic")
        if not self.steps and self.test is None:
            raise ValueError("a condition without steps needs a test")
        if not self.steps and self.negated and isinstance(self.test, Comparison):
            raise ValueError("a negated comparison needs steps; without steps, use the opposite operator")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on the ends of a path.

    - `count`: the number of distinct ends. `exists`: whether there is an end.
    - `most`, `least`: the ends with the largest or smallest value at the end of `steps`; with `counted`, the ends with
      the most or fewest distinct values there, or distinct nodes at `at` if there are no steps. `rank` 2 means the
      second largest value, and so on. Ends with equal values are all returned; an end without a value is never
      returned. Without steps the ends themselves are compared.
    - `sum`, `average`: of the values at the end of `steps` from the ends (of the ends themselves without steps).
    - `difference`: of the values at the end of `steps` from two topics.

    Attributes:
        steps: the way from an end to the value.
        scale: how values are compared or added: `number`, or `day` for dates of any precision.
        counted: whether values are counted and not compared.
        rank: 1 for the largest or smallest value.
        topics: the compared entities. If they are given, the path has no steps: the ends are these topics.
        at: the index in a walk of the node from which the steps lead to the value, such as a mediator with a date; None
            for the end. Not for `sum` and `average`.
    """

    kind: OperationKind
    steps: tuple[Step, ...] = ()
    scale: OneOf["number", "day"] = "number"
    counted: bool = False
    rank: int = 1
    topics: tuple[Entity, ...] = ()
    at: int | None = None

    returns_ends: ClassVar = frozenset({"most", "least"})

    def __post_init__(self) -> None:
        if not 1 <= self.rank <= MAX_RANK:
            raise ValueError(f"the rank is between 1 and {MAX_RANK}")
        if not self.steps and (self.kind == "difference" or (self.counted and self.at is None) or self.topics):
            raise ValueError(f"the operation {self.kind} needs steps to a value")
        if self.scale != "number" and self.kind not in self.returns_ends:
            raise ValueError(f"the operation {self.kind} is on numbers")
        if self.kind == "difference" and len(self.topics) != 2:
            raise ValueError("a difference needs two topics")
        if self.at is not None and self.kind in ("sum", "average"):
            # the query adds the distinct values of an end: equal values of two mediators would be added once
            raise ValueError(f"the operation {self.kind} is on values of the ends; leave `at` out")

    @property
    def is_computed(self) -> bool:
        """Whether the answer is a computed literal, not ends of the path."""
        return self.kind not in self.returns_ends


def year(number: int) -> Literal:
    """Return a year as a literal."""
    return Literal(f"{number:04d}" if number >= 0 else f"-{-number:04d}", YEAR)
