"""Conditions on the nodes of a path, and the exported query of each operation on its ends, as text.

Values are compared by their text, because graphs write them with many datatypes. IF guards each conversion: Virtuoso
fails the whole query if a text cannot be converted, even behind another filter.

The ends with the largest or smallest value are those at the top of a sorted list. The values are looked at first, which
decides how they are sorted and how many ends are at the top.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import product

from kgqa.errors import PartialResult
from kgqa.graph.query.text import (
    Node,
    PathPattern,
    Variable,
    edges_along,
    edges_text,
    path_pattern,
    pattern_text,
    render_term,
    values_clause,
)
from kgqa.model import Candidate, Entity, Literal, Step, Value
from kgqa.model.conditions import NUMBER_TEXT, NUMBERS, XSD, Comparison, Condition, Operation
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
    """Build the pattern of a path whose nodes are restricted, meet other paths, and fulfil conditions."""
    walk = path_pattern(candidate.path.topic, candidate.path.steps, rule, inverse=inverse)
    meeting = partial(path_pattern, rule=rule, inverse=inverse)
    joins = [
        (each.at, meeting(each.path.topic, each.path.steps, end=walk.nodes[each.at], prefix=f"j{number}_"))
        for number, each in enumerate(candidate.joins, start=1)
    ]
    conditions = [
        (each.at, _condition_text(each, [walk.nodes[each.at], *beyond]))
        for each, beyond in zip(candidate.conditions, nodes_beyond(candidate.conditions))
    ]
    return replace(walk, joins=tuple(joins), restricted=candidate.restricted, conditions=tuple(conditions))


def nodes_beyond(conditions: Sequence[Condition]) -> Iterator[list[Variable]]:
    """Yield the variables along the steps of each condition.

    The year and the colour of a medal are those of one medal, and the bounds of a range are on one value; two colours
    are those of two medals.
    """
    records: list[tuple[int, dict[tuple[Step, ...], Variable]]] = []
    bounded: set[Variable] = set()
    for number, each in enumerate(conditions, start=1):
        ways = [each.steps[:length] for length in range(1, len(each.steps) + 1)]
        nodes = {way: Variable(f"c{number}_{length}") for length, way in enumerate(ways, start=1)}
        is_bound = isinstance(each.test, Comparison) and each.test.operator not in ("=", "!=")
        same = [
            known
            for at, known in records
            if at == each.at
            and known.keys() & nodes.keys()
            and (each.steps not in known or (is_bound and known[each.steps] in bounded))
        ]
        if not each.negated:
            nodes |= same[0] if same else {}
            records.append((each.at, nodes))
        bounded |= {nodes[each.steps]} if is_bound and ways else set()
        yield [nodes[way] for way in ways]


def _condition_text(condition: Condition, nodes: list[Node]) -> str:
    """Return a condition on a node: the edges to the tested value, and a filter on it.

    Args:
        condition: The condition.
        nodes: The node, and those along the steps of the condition.
    """
    test, negated, node = condition.test, condition.negated, nodes[0]
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
        return f"STR({tested}) {operator} {render_term(Literal(number))}"
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


MAX_ROWS = 10_000
"""Most values that are looked at; Virtuoso sorts no more."""
_ZONE = r"(?:Z|[-+][0-9]{2}:[0-9]{2})?"
_DATE_PARTS = re.compile(rf"(-?[0-9]{{1,6}})(?:-([0-9]{{2}})(?:-([0-9]{{2}})(?:[-+TZ ].*)?|{_ZONE})|{_ZONE})")
_SORTABLE_DATE = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T00:00:00Z?)?)?)?")
Rows = Sequence[Sequence[Value | None]]


@dataclass(frozen=True, slots=True)
class Valued:
    """The ends of a path, or some topics, each with the values that an operation compares or adds.

    Attributes:
        pattern: the pattern of the ends and their values.
        end: the variable of the end.
        value: the variable of the value, before it is converted.
        scale: how values are converted; see `comparison_key`. Empty if they are counted.
    """

    pattern: str
    end: str
    value: str
    scale: str

    @property
    def key(self) -> str:
        """The expression of the value as a number."""
        return comparison_key(self.value, self.scale)

    @property
    def readable(self) -> str:
        """The pattern of the values that can be converted."""
        return f"{self.pattern}\n  FILTER({is_comparable(self.value, self.scale)})"


@dataclass(frozen=True, slots=True)
class Top:
    """The top of the sorted ends.

    Attributes:
        ends: the ends with the best value, or the second best and so on; all of them.
        rivals: the next ends.
        before: the number of ends with better values.
        key: the expression by which the values sort; empty if some of them may be no numbers or dates.
    """

    ends: tuple[Value, ...]
    rivals: tuple[Value, ...]
    before: int
    key: str


def valued(operation: Operation, walk: PathPattern | None) -> Valued:
    """Return the ends and values that an operation compares or adds.

    Args:
        walk: the pattern of the path; None if the operation compares topics.

    Raises:
        ValueError: the operation is at a node that the path does not have.
    """
    end: Node = walk.end if walk else Variable("answer")
    start = end
    if walk and operation.at is not None:
        if not 0 < operation.at < len(walk.nodes):
            raise ValueError(f"the operation is at node {operation.at}, but the path has {len(walk.nodes) - 1} steps")
        start = walk.nodes[operation.at]
        walk = replace(walk, kept=(start,))
    ends = pattern_text(walk) if walk else f"  {values_clause(end, operation.topics)}"
    scale = "decimal"  # exact; doubles if too large
    if operation.kind in operation.returns_ends:
        scale = "" if operation.counted else "number" if operation.scale == "number" else "date"
    return _with_values(operation, start, Valued(ends, render_term(end), "", scale))


def _with_values(operation: Operation, start: Node, block: Valued, prefix: str = "value") -> Valued:
    """Add the way from a node to its values to a pattern."""
    nodes = [start, *(Variable(f"{prefix}{index}") for index in range(1, len(operation.steps) + 1))]
    edges = edges_text(edges_along(operation.steps, nodes))
    return replace(block, pattern=f"{block.pattern}\n{edges}".strip("\n"), value=render_term(nodes[-1]))


def look_query(operation: Operation, block: Valued, view: Sequence[Entity], limit: int) -> str:
    """Return the query for pairs of an end and a value, best first; of an end and a count."""
    down = "DESC" if operation.kind == "most" else "ASC"
    if not block.scale:
        head = f"SELECT {block.end} (COUNT(DISTINCT {block.value}) AS ?number)"
        return query_text(head, view, block.pattern, f"\nGROUP BY {block.end}\nORDER BY {down}(?number)\nLIMIT {limit}")
    order = f"\nORDER BY {down}({block.key})" if operation.kind in operation.returns_ends else ""
    selected = " ".join(dict.fromkeys([block.end, block.value]))
    return query_text(f"SELECT DISTINCT {selected}", view, block.pattern, f"{order}\nLIMIT {limit}")


def top_of(operation: Operation, block: Valued, rows: Rows, *, complete: bool, filtered: bool) -> Top:
    """Return the top of the ends, from the rows of `look_query`.

    Args:
        complete: whether these are all rows.
        filtered: whether there may be values that cannot be converted, which the rows leave out.

    Raises:
        PartialResult: other rows may belong to the top.
    """
    scale = "number" if operation.counted else operation.scale
    keys = [sort_key(row[-1], scale) for row in rows]
    best: dict[Value, float] = {}
    worst = math.inf
    for row, key in zip(rows, keys):
        if key is not None and row[0] is not None:
            signed = key if operation.kind == "most" else -key
            best[row[0]] = max(signed, best.get(row[0], signed))
            worst = min(worst, signed)
    level = next(iter(sorted({*best.values()}, reverse=True)[operation.rank - 1 :]), -math.inf)
    if not complete and worst >= level:
        raise PartialResult(
            f"More than {len(rows):,} values are at the top, so not all ends that have them can be found.",
            "Add a condition that leaves fewer ends.",
        )
    ends = tuple(end for end, number in best.items() if number == level)
    rivals = sorted((end for end, number in best.items() if number < level), key=lambda end: -best[end])
    readable = complete and not filtered and None not in keys
    plain = _plain_key(block.value, [row[-1] for row in rows], scale) if readable else ""
    return Top(ends, tuple(rivals), len(best) - len(ends) - len(rivals), block.value if operation.counted else plain)


def _plain_key(variable: str, values: Sequence[Value | None], scale: str) -> str:
    """Return an expression that sorts values, all of them numbers or dates; "" if only `comparison_key` does."""
    kinds = {value.datatype for value in values if isinstance(value, Literal)}
    texts = [value.value for value in values if isinstance(value, Literal)]
    if scale == "number":
        equal = len({*map(float, texts)}) < len({*map(Decimal, texts)})  # but not to an engine with exact integers
        return variable if len(kinds) == 1 and kinds <= NUMBERS and not equal else f"{DOUBLE}(STR({variable}))"
    alike = len({*map(len, texts)}) == 1 or not any("T" in text for text in texts)
    if not alike or not all(map(_SORTABLE_DATE.fullmatch, texts)):
        return ""
    return variable if len(kinds) == 1 else f"STR({variable})"


def sort_key(value: Value | None, scale: str) -> float | None:
    """Return the number by which a query compares a value; None if the value is no number, or no date."""
    text = value.value if isinstance(value, Literal) else ""
    if scale == "number":
        return float(text) if re.fullmatch(NUMBER_TEXT, text) else None
    date = _DATE_PARTS.fullmatch(text)
    return int(date[1]) * 10000.0 + int(date[2] or 0) * 100 + int(date[3] or 0) if date else None


def totals(operation: Operation, rows: Rows) -> list[float]:
    """Return the sum, average or differences of the values in the rows of `look_query`; none without values."""
    pairs = {(row[0], key) for row in rows if (key := sort_key(row[-1], "number")) is not None}
    if operation.kind == "difference":
        first, second = ([key for end, key in pairs if end == topic] for topic in operation.topics)
        return [abs(one - other) for one, other in product(first, second)]
    total = math.fsum(key for _, key in pairs)
    return [total / (len(pairs) if operation.kind == "average" else 1)] if pairs else []


def operation_query(operation: Operation, block: Valued, top: Top | None, view: Sequence[Entity]) -> str:
    """Return the query whose result is the answer of an operation: an ASK query for `exists`, otherwise a SELECT query.

    The query of a sum, an average or a difference has no row if there is no value.

    Args:
        top: the top of the ends, for `most` and `least`.
    """
    end, pattern, tail = block.end, block.pattern, ""
    match operation.kind:
        case "count":
            head = f"SELECT (COUNT(DISTINCT {end}) AS ?count)"
        case "exists":
            head = "ASK"
        case "difference":
            head, parts = "SELECT DISTINCT (ABS(?key1 - ?key2) AS ?difference)", []
            for number, topic in enumerate(operation.topics, start=1):
                one = _with_values(operation, topic, replace(block, pattern=""), f"value{number}_")
                parts.append(f"  {{ SELECT ({one.key} AS ?key{number}) WHERE {{\n{one.readable}\n  }} }}")
            pattern = "\n".join(parts)
        case "sum" | "average":
            head, function = "SELECT ?total", "SUM" if operation.kind == "sum" else "AVG"
            # The second total is for numbers that are too large for the decimals of the engine. STRDT, and not a cast
            # to double: with a cast in COALESCE, Virtuoso converts every total to a double, and writes 6 digits of it.
            double = f"STRDT(STR(?key), {DOUBLE})"
            total = f"(COALESCE({function}(?key), {function}({double})) AS ?total) (COUNT(?key) AS ?number)"
            keys = f"  {{ SELECT DISTINCT {end} ({block.key} AS ?key) WHERE {{\n{block.readable}\n  }} }}"
            pattern = f"  {{ SELECT {total} WHERE {{\n{keys}\n  }} }}\n  FILTER(?number > 0)"
        case "most" | "least":
            assert top is not None
            head, most = f"SELECT {end}", operation.kind == "most"
            pattern, key = (pattern, top.key) if top.key else (block.readable, block.key)
            best = "COUNT(DISTINCT " if operation.counted else "MAX(" if most else "MIN("
            tail = f"\nGROUP BY {end}\nORDER BY {'DESC' if most else 'ASC'}({best}{key}))\nLIMIT {len(top.ends) or 1}"
            tail += f" OFFSET {top.before}" if top.before else ""
    return query_text(head, view, pattern, tail)


def query_text(head: str, view: Sequence[Entity], pattern: str, tail: str = "") -> str:
    """Return a query over the graphs of a view from its parts."""
    graphs = [f"FROM {render_term(graph)}" for graph in view]
    return "\n".join([head, *graphs, "WHERE {", pattern, "}"]) + tail
