"""The exported query of a path and of each operation on its ends, as text.

The ends with the largest or smallest value are those at the top of a sorted list. The values are looked at first, which
decides how they are sorted and how many ends are at the top.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product

from kgqa.errors import PartialResult
from kgqa.graph.query.pattern_text import comparison_key, edges_text, is_comparable, nested_text, values_clause
from kgqa.graph.query.patterns import DOUBLE, INTEGER, Node, PathPattern, edges_along
from kgqa.graph.query.templates import Variable, render_term
from kgqa.model import Entity, Literal, Value
from kgqa.model.conditions import NUMBER_TEXT, NUMBERS, XSD, Operation

MAX_ROWS = 10_000
"""Most values that are looked at; Virtuoso sorts no more."""
_CASTS = {"number": DOUBLE, "decimal": Entity(XSD + "decimal"), "date": INTEGER}
_ZONE = r"(?:Z|[-+][0-9]{2}:[0-9]{2})?"
_DATE = re.compile(rf"(-?[0-9]{{1,6}})(?:-([0-9]{{2}})(?:-([0-9]{{2}})(?:[-+TZ ].*)?|{_ZONE})|{_ZONE})")
_SORTABLE_DATE = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T00:00:00Z?)?)?)?")
Rows = Sequence[Sequence[Value | None]]


@dataclass(frozen=True, slots=True)
class Valued:
    """The ends of a path, or some topics, each with the values that an operation compares or adds.

    Attributes:
        pattern: the pattern of the ends and their values.
        end: the end.
        value: the value, before it is converted.
        scale: how values are converted; see `comparison_key`. Empty if they are counted.
    """

    pattern: str
    end: Node
    value: Node
    scale: str

    @property
    def key(self) -> str:
        """The expression of the value as a number."""
        return comparison_key(self.value, self.scale, _CASTS[self.scale])

    @property
    def valid(self) -> str:
        """The filter for values that can be converted."""
        return f"  FILTER({is_comparable(self.value, self.scale)})"


@dataclass(frozen=True, slots=True)
class Top:
    """The top of the sorted ends.

    Attributes:
        ends: the ends with the best value, or the second best and so on; all of them.
        rivals: the next ends.
        cast: how values are converted so that they sort: `none`, `text`, `number`, or `guarded` if some of them may be
            no numbers or dates.
        before: the number of ends with better values.
    """

    ends: tuple[Value, ...]
    rivals: tuple[Value, ...]
    cast: str
    before: int


def valued(operation: Operation, walk: PathPattern | None) -> Valued:
    """Return the ends and values that an operation compares or adds.

    Args:
        walk: the pattern of the path; None if the operation compares topics.

    Raises:
        ValueError: the operation is at a node that the path does not have.
    """
    end: Node = Variable("answer") if walk is None else walk.end
    start = end
    if operation.at is not None and walk is not None:
        if not 0 < operation.at < len(walk.nodes):
            raise ValueError(f"the operation is at node {operation.at}, but the path has {len(walk.nodes) - 1} steps")
        start = walk.nodes[operation.at]
        walk = replace(walk, kept=(start,))
    values = [Variable(f"value{index}") for index in range(1, len(operation.steps) + 1)]
    ends = nested_text(walk) if walk else f"  {values_clause(end, operation.topics)}"
    scale = "decimal"  # exact; doubles if too large
    if operation.kind in operation.returns_ends:
        scale = "" if operation.counted else "number" if operation.scale == "number" else "date"
    edges = edges_text(edges_along(start, operation.steps, values))
    return Valued(f"{ends}\n{edges}".rstrip("\n"), end, values[-1] if values else start, scale)


def look_query(operation: Operation, block: Valued, view: Sequence[Entity], limit: int) -> str:
    """Return the query for pairs of an end and a value, best first; of an end and a count."""
    end, value = render_term(block.end), render_term(block.value)
    down = "DESC" if operation.kind == "most" else "ASC"
    if not block.scale:
        head = f"SELECT {end} (COUNT(DISTINCT {value}) AS ?number)"
        return query_text(head, view, block.pattern, f"\nGROUP BY {end}\nORDER BY {down}(?number)\nLIMIT {limit}")
    order = f"\nORDER BY {down}({block.key})" if operation.kind in operation.returns_ends else ""
    selected = " ".join(dict.fromkeys([end, value]))
    return query_text(f"SELECT DISTINCT {selected}", view, block.pattern, f"{order}\nLIMIT {limit}")


def top_of(operation: Operation, rows: Rows, *, complete: bool, filtered: bool) -> Top:
    """Return the top of the ends, from the rows of `look_query`.

    Args:
        complete: whether these are all rows.
        filtered: whether there may be values that cannot be converted, which the rows leave out.

    Raises:
        PartialResult: other rows may belong to the top.
    """
    scale = "number" if operation.counted else operation.scale
    best: dict[Value, float] = {}
    values = [row[-1] for row in rows]
    keys = [sort_key(value, scale) for value in values]
    sign = 1 if operation.kind == "most" else -1
    for row, key in zip(rows, keys):
        if key is not None and row[0] is not None:
            best[row[0]] = max(sign * key, best.get(row[0], sign * key))
    ranked = sorted(best, key=lambda end: -best[end])
    levels = sorted({*best.values()}, reverse=True)[operation.rank - 1 :]
    worst = min((sign * key for key in keys if key is not None), default=math.inf)
    if not complete and not (levels and worst < levels[0]):
        raise PartialResult(
            f"More than {len(rows):,} values are at the top, so not all ends that have them can be found.",
            "Add a condition that leaves fewer ends.",
        )
    before = sum(not levels or best[end] > levels[0] for end in ranked)
    ends = [end for end in ranked if levels and best[end] == levels[0]]
    readable = complete and not filtered and None not in keys
    cast = "none" if operation.counted else _cast(values, scale) if readable else "guarded"
    return Top(tuple(ends), tuple(ranked[before + len(ends) :]), cast, before)


def _cast(values: Sequence[Value | None], scale: str) -> str:
    """Return how values, all of them numbers or dates, are converted so that they sort as numbers or dates."""
    literals = [value for value in values if isinstance(value, Literal)]
    kinds = {value.datatype for value in literals}
    texts = [value.value for value in literals]
    if scale == "number":
        equal = len({*map(float, texts)}) < len({*map(Decimal, texts)})  # but not to an engine with exact integers
        return "none" if len(kinds) == 1 and kinds <= NUMBERS and not equal else "number"
    alike = len({len(text) for text in texts}) == 1 or not any("T" in text for text in texts)
    if not alike or not all(map(_SORTABLE_DATE.fullmatch, texts)):
        return "guarded"
    return "none" if len(kinds) == 1 else "text"


def sort_key(value: Value | None, scale: str) -> float | None:
    """Return the number by which a query compares a value; None if the value is no number, or no date."""
    text = value.value if isinstance(value, Literal) else ""
    if scale == "number":
        return float(text) if re.fullmatch(NUMBER_TEXT, text) else None
    date = _DATE.fullmatch(text)
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

    Args:
        top: the top of the ends, for `most` and `least`.
    """
    end, value = render_term(block.end), render_term(block.value)
    if operation.kind == "count":
        return query_text(f"SELECT (COUNT(DISTINCT {end}) AS ?count)", view, block.pattern)
    if operation.kind == "exists":
        return query_text("ASK", view, block.pattern)
    if top is None:
        return _computed_query(operation, block, view)
    if top.cast == "guarded":
        pattern, key = f"{block.pattern}\n{block.valid}", block.key
    else:
        pattern = block.pattern
        key = {"none": value, "text": f"STR({value})", "number": f"{render_term(DOUBLE)}(STR({value}))"}[top.cast]
    best = {"most": "MAX", "least": "MIN"}[operation.kind]
    key = f"COUNT(DISTINCT {value})" if operation.counted else f"{best}({key})"
    order = f"{'DESC' if operation.kind == 'most' else 'ASC'}({key})"
    limit = f"LIMIT {len(top.ends) or 1}" + (f" OFFSET {top.before}" if top.before else "")
    return query_text(f"SELECT {end}", view, pattern, f"\nGROUP BY {end}\nORDER BY {order}\n{limit}")


def _computed_query(operation: Operation, block: Valued, view: Sequence[Entity]) -> str:
    """Return the query for a sum, an average or a difference; its result has no row if there is no value."""
    if operation.kind == "difference":
        parts = []
        for number, topic in enumerate(operation.topics, start=1):
            values = [Variable(f"value{number}_{index}") for index in range(1, len(operation.steps) + 1)]
            one = replace(block, pattern=edges_text(edges_along(topic, operation.steps, values)), value=values[-1])
            parts.append(f"  {{ SELECT ({one.key} AS ?key{number}) WHERE {{\n{one.pattern}\n{one.valid}\n  }} }}")
        return query_text("SELECT DISTINCT (ABS(?key1 - ?key2) AS ?difference)", view, "\n".join(parts))
    function = {"sum": "SUM", "average": "AVG"}[operation.kind]
    # The second total is for numbers that are too large for the decimals of the engine. STRDT, and not a cast to
    # double: with a cast in COALESCE, Virtuoso converts every total to a double, and writes 6 digits of it.
    double = f"STRDT(STR(?key), {render_term(DOUBLE)})"
    total = f"(COALESCE({function}(?key), {function}({double})) AS ?total) (COUNT(?key) AS ?number)"
    keyed = f"  {{ SELECT DISTINCT {render_term(block.end)} ({block.key} AS ?key) WHERE {{"
    where = [
        f"  {{ SELECT {total} WHERE {{",
        keyed,
        block.pattern,
        block.valid,
        "  } }",
        "  } }",
        "  FILTER(?number > 0)",
    ]
    return query_text("SELECT ?total", view, "\n".join(where))


def query_text(head: str, view: Sequence[Entity], pattern: str, tail: str = "") -> str:
    """Return a query over the graphs of a view from its parts."""
    graphs = [f"FROM {render_term(graph)}" for graph in view]
    return "\n".join([head, *graphs, "WHERE {", pattern, "}"]) + tail
