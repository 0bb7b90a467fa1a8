"""Restrictions, joins and conditions on the nodes of a path, and comparisons of values, as SPARQL text.

Values are compared by their text, because graphs write them with many datatypes. IF guards each conversion: Virtuoso
fails the whole query if a text cannot be converted, even behind another filter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kgqa.graph.query.patterns import Node, PathPattern, edges_along, edges_text, path_pattern
from kgqa.graph.query.templates import Variable, render_term
from kgqa.model import Candidate, Entity, Literal
from kgqa.model.conditions import XSD, Comparison, Condition
from kgqa.settings.table import WalkRule

DOUBLE, _INTEGER = f"<{XSD}double>", f"<{XSD}integer>"
_TYPES = {"number": DOUBLE, "decimal": f"<{XSD}decimal>"}
"""The datatypes of the numbers by which values are compared; for dates an integer."""
_NUMBER = "^[-+]?([0-9]{1,30}([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]{1,2})?$"
_WITHOUT_EXPONENT = "^[-+]?([0-9]{1,30}([.][0-9]*)?|[.][0-9]+)$"
_MONTH = "^-?[0-9]{1,6}-[0-9]{2}(Z|[-+][0-9]{2}:[0-9]{2}|-[0-9]{2}([-+TZ ].*)?)?$"
_DAY = "^-?[0-9]{1,6}-[0-9]{2}-[0-9]{2}([-+TZ ].*)?$"
_DATE = "^-?[0-9]{1,6}(Z|[-+][0-9]{2}:[0-9]{2}|-[0-9]{2}(Z|[-+][0-9]{2}:[0-9]{2}|-[0-9]{2}([-+TZ ].*)?)?)?$"
_VALID = {"number": _NUMBER, "decimal": _NUMBER, "month": _MONTH, "day": _DAY}


def candidate_pattern(candidate: Candidate, rule: WalkRule, inverse: Callable[[str], str | None]) -> PathPattern:
    """Build the pattern of a path whose nodes are restricted, meet other paths, and fulfil conditions.

    Raises:
        ValueError: the path of a join has no steps, or a join or condition is not at a node after the topic.
    """
    walk = path_pattern(candidate.path.topic, candidate.path.steps, rule, inverse=inverse)
    if any(not each.path.steps for each in candidate.joins):
        raise ValueError("the path of a join needs at least one step")
    places = [*(each.at for each in candidate.joins), *(each.at for each in candidate.conditions)]
    if any(not 0 < at < len(walk.nodes) for at in places):
        raise ValueError("a join or condition is on a node that the path does not have")
    joins = []
    for number, (at, path) in enumerate(((each.at, each.path) for each in candidate.joins), start=1):
        end, prefix = walk.nodes[at], f"j{number}_"
        joins.append((at, path_pattern(path.topic, path.steps, rule, inverse=inverse, end=end, prefix=prefix)))
    conditions = [
        (each.at, condition_text(each, walk.nodes[each.at], f"c{number}_"))
        for number, each in enumerate(candidate.conditions, start=1)
    ]
    return replace(walk, joins=tuple(joins), restricted=candidate.restricted, conditions=tuple(conditions))


def condition_text(condition: Condition, node: Node, prefix: str) -> str:
    """Return a condition on a node: the edges to the tested value, and a filter on it.

    Args:
        prefix: the prefix of the variables of the nodes after this one.
    """
    test, negated = condition.test, condition.negated
    nodes: list[Node] = [node, *(Variable(f"{prefix}{index}") for index in range(1, len(condition.steps) + 1))]
    if isinstance(test, Entity) and condition.steps:
        nodes[-1] = test
    lines: list[str] = [edges_text(edges_along(condition.steps, nodes))] if condition.steps else []
    if isinstance(test, Comparison):
        lines.append(f"  FILTER({_comparison(test, render_term(nodes[-1]))})")
    elif isinstance(test, Entity) and not condition.steps:
        return f"  FILTER({render_term(node)} {'!=' if negated else '='} {render_term(test)})"
    text = "\n".join(lines)
    return f"  FILTER NOT EXISTS {{ {text}\n  }}" if negated else text


def _comparison(test: Comparison, tested: str) -> str:
    scale, number, operator = test.scale, test.value.value, test.operator
    if scale == "text":
        return f"STR({tested}) {operator} {render_term(test.value)}"
    key_scale: str = scale
    if scale in ("month", "day"):  # as a number in the order of time; the first character of the date may be a minus
        year, *rest = number[1:].split("-")
        digits = int(number[0] + year) * 100 ** len(rest) + int("".join(rest))
        if operator not in ("=", "!="):
            key_scale = "date"
            if scale == "month":  # the beginning or the end of the month
                digits = 100 * digits + (99 if operator in ("<=", ">") else 0)
        number = str(digits)
    compared = f"{_TYPES.get(scale, _INTEGER)}({render_term(Literal(number))})"
    return f"{is_comparable(tested, key_scale)} && {comparison_key(tested, key_scale)} {operator} {compared}"


def is_comparable(value: str, scale: str) -> str:
    """Return the expression for whether the text of a value is a number or date of a scale."""
    return f'REGEX(STR({value}), "{_VALID.get(scale, _DATE)}")'


def comparison_key(value: str, scale: str) -> str:
    """Return the expression for the number by which values are compared.

    Args:
        value: the variable of the value.
        scale: `number`, `decimal` (exact, a double where decimals are too small), `year`, `month`, `day`, or `date` for
            dates of any precision. A month is a number such as 196705, a day or date one such as 19670502.
    """
    number, text = _TYPES.get(scale, _INTEGER), f"STR({value})"
    valid = f'IF({is_comparable(value, scale)}, {text}, "0")'
    year = f'{number}(REPLACE({valid}, "^(-?[0-9]+).*$", "$1"))'
    match scale:
        case "number":
            return f"{number}({valid})"
        case "decimal":
            # STRDT, and not a cast to double: with a cast in COALESCE, Virtuoso converts every number to a double
            exact = f'{number}(IF(REGEX({text}, "{_WITHOUT_EXPONENT}"), {text}, "0"))'
            exponent = f'IF(REGEX({text}, "[0-9.][eE]") && {is_comparable(value, scale)}, {text}, "0")'
            return f"COALESCE({exact} + {number}({DOUBLE}({exponent})), STRDT({valid}, {DOUBLE}))"
        case "year":
            return year
    rest = f'REPLACE(REPLACE({valid}, "^-?[0-9]+", ""), "(Z|[-+][0-9]{{2}}:[0-9]{{2}})$", "")'
    factor, length = (100, 3) if scale == "month" else (10000, 6)
    return f'{factor} * {year} + {number}(REPLACE(SUBSTR(CONCAT({rest}, "-00-00"), 1, {length}), "-", ""))'
