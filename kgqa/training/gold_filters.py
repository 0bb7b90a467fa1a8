"""The filters of a gold query as comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kgqa.model import Literal
from kgqa.model.conditions import DAY, MONTH, NUMBER_TEXT, NUMBERS, XSD, YEAR, Comparison
from kgqa.training.gold_groups import Untranslatable, disjuncts, is_variable, plain

OPPOSITE: dict[str, Any] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
DATES = frozenset({"dateTime", "date", "datetime", "gYear", "gYearMonth"})
_ON_LANGUAGE = frozenset({"Builtin_isLITERAL", "Builtin_LANG", "Builtin_LANGMATCHES"})
_DATE = re.compile(r"(-?[0-9]{4,6})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9:.]+))?(?:[TZ+-].*)?)?)?")
_MIDNIGHT = re.compile(r"00:00(:00)?(\.0+)?")


def is_about_language(expression: Any) -> bool:
    """Return whether a filter is only about the languages of literals."""
    names = {getattr(each, "name", "") for part in disjuncts(expression) for each in _inside(part)}
    return bool(names & _ON_LANGUAGE) and names <= _ON_LANGUAGE | {"UnaryNot", "RelationalExpression", ""}


def _inside(expression: Any) -> Iterable[Any]:
    expression = plain(expression)
    yield expression
    if isinstance(expression, dict):
        for key in ("expr", "arg", "arg1", "arg2", "other"):
            if key in expression and expression[key] is not None and not isinstance(expression[key], list):
                yield from _inside(expression[key])


def uncast(expression: Any) -> tuple[Any, list[str]]:
    """Return an expression without conversions, and the names of the conversions."""
    casts: list[str] = []
    expression = plain(expression)
    while name := getattr(expression, "name", ""):
        if name == "Function" and len(expression.expr) == 1 and str(expression.iri).startswith(XSD):
            casts.append(str(expression.iri))
            expression = plain(expression.expr[0])
        elif name in ("Builtin_STR", "Builtin_YEAR"):
            casts.append(name.removeprefix("Builtin_"))
            expression = plain(expression.arg)
        else:
            break
    return expression, casts


def sides(expression: Any) -> tuple[Any, list[str], str, Any, list[str]]:
    """Return the variable of a comparison, its conversions, the operator, the value and its conversions."""
    left, left_casts = uncast(expression.expr)
    right, right_casts = uncast(expression.other)
    if is_variable(right) and not is_variable(left):
        return right, right_casts, MIRRORED[expression.op], left, left_casts
    if not is_variable(left):
        raise Untranslatable("comparison of computed values")
    return left, left_casts, expression.op, right, right_casts


def comparison(
    variable: Any, casts: list[str], operator: Any, value: Any, value_casts: list[str], *, opposite: bool = False
) -> Comparison:
    """Return a comparison; the first or last day of a year is compared as its year where that is the same."""
    if type(value).__name__ != "Literal":
        raise Untranslatable("comparison of computed values")
    operator = OPPOSITE[operator] if opposite else operator
    text, datatype = str(value), str(value.datatype or "")
    dated = any(cast in ("STR", "YEAR") or cast.removeprefix(XSD) in DATES for cast in casts + value_casts)
    dated |= datatype.removeprefix(XSD) in DATES
    try:
        if "YEAR" in casts and re.fullmatch("[0-9]+", text):
            return Comparison(operator, Literal(f"{int(text):04d}", YEAR))
        dated |= operator not in ("=", "!=") and "-" in text[1:]
        if dated and (found := _DATE.fullmatch(text)):
            year, month, day, time = found.groups()
            if time and not _MIDNIGHT.fullmatch(time) and not (time == "23:59:59" and operator in (">", "<=")):
                raise Untranslatable("time of day")
            first = (month or "01", day or "01") == ("01", "01") and operator in ("<", ">=")
            last = (month, day) == ("12", "31") and operator in (">", "<=")
            if first or last or month is None:
                return Comparison(operator, Literal(year, YEAR))
            if day is None:
                return Comparison(operator, Literal(f"{year}-{month}", MONTH))
            return Comparison(operator, Literal(f"{year}-{month}-{day}", DAY))
        if datatype in NUMBERS or (operator not in ("=", "!=") and re.fullmatch(NUMBER_TEXT, text)):
            return Comparison(operator, Literal(text, XSD + "decimal"))
        return Comparison(operator, Literal(text))
    except ValueError as error:
        raise Untranslatable("comparison of other values") from error
