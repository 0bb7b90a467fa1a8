"""Writes path patterns, conditions and comparisons as SPARQL text.

Values are compared by their text, because graphs write them with many datatypes. IF guards each conversion: Virtuoso
fails the whole query if a text cannot be converted, even behind another filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kgqa.graph.query.patterns import DOUBLE, Edge, Node, NodeTest, PathPattern
from kgqa.graph.query.templates import Part, render_term
from kgqa.model import Entity

_NUMBER = "^[-+]?([0-9]{1,30}([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]{1,2})?$"
_DECIMAL = "^[-+]?([0-9]{1,30}([.][0-9]*)?|[.][0-9]+)$"
_MONTH = "^-?[0-9]{1,6}-[0-9]{2}(Z|[-+][0-9]{2}:[0-9]{2}|-[0-9]{2}([-+TZ ].*)?)?$"
_DAY = "^-?[0-9]{1,6}-[0-9]{2}-[0-9]{2}([-+TZ ].*)?$"
_DATE = "^-?[0-9]{1,6}(Z|[-+][0-9]{2}:[0-9]{2}|-[0-9]{2}(Z|[-+][0-9]{2}:[0-9]{2}|-[0-9]{2}([-+TZ ].*)?)?)?$"
_VALID = {"number": _NUMBER, "decimal": _NUMBER, "month": _MONTH, "day": _DAY}
_OPERATORS = frozenset({"=", "!=", "<", "<=", ">", ">="})


def term_list(terms: Iterable[object]) -> str:
    """Return terms with a space before each."""
    return "".join([f" {render_term(term)}" for term in terms])


def values_clause(variable: Node, values: Iterable[object]) -> str:
    """Return a VALUES clause for one variable."""
    return f"VALUES {render_term(variable)} {{{term_list(values)} }}"


def nested_text(walk: PathPattern) -> Part:
    """Return the pattern of a path, with the nodes of each hop made distinct by a subquery.

    At hubs the number of walks multiplies with every hop, but the number of distinct nodes does not. The last hop needs
    no subquery. Neither does the first hop, because the nodes to which one relation leads from the topic are distinct
    already.
    """
    last = len(walk.edges)
    selected = dict(walk.restricted)
    kept = {index: term_list([*_needed(walk, index), walk.nodes[index]]) for index in range(2, last)}
    lines = [
        f"{'  ' * depth}{{ SELECT DISTINCT{kept[index]} WHERE {{"
        for depth, index in enumerate(range(last - 1, 1, -1), start=1)
    ]
    for index, edge in enumerate(walk.edges, start=1):
        indent = "  " * (max(last - 1, 1) - max(index - 2, 0))
        node = walk.nodes[index]
        lines += _edge_lines([edge], indent)
        lines += _unequal_lines([pair for pair in walk.different if pair[0] == node], indent)
        lines += [line for at, join in walk.joins if at == index for line in _join_lines(join, indent)]
        lines += [line for at, test in walk.tests if at == index for line in _test_lines(test)]
        if chosen := selected.get(index):
            lines.append(indent + _selection(node, chosen))
        if 1 < index < last:
            lines.append(f"{indent[2:]}}} }}")
    return Part("\n".join([*lines, *_end_lines(walk)]))


def _needed(walk: PathPattern, index: int) -> list[Node]:
    """Return the nodes before node `index` that the pattern needs after it."""
    later = walk.nodes[index + 1 :]
    needed = {right for left, right in walk.different if left in later} | {*walk.kept}
    return [node for node in walk.nodes[1:index] if node in needed]


def flat_text(walk: PathPattern) -> Part:
    """Return the pattern of a path without subqueries and restrictions, for complete walks."""
    lines = [*_edge_lines(walk.edges), *_unequal_lines(walk.different)]
    lines += [line for _, join in walk.joins for line in _join_lines(join)]
    lines += [line for _, test in walk.tests for line in _test_lines(test)]
    return Part("\n".join([*lines, *_end_lines(walk)]))


def edges_text(edges: Iterable[Edge]) -> Part:
    """Return triple patterns, one a line."""
    return Part("\n".join(_edge_lines(edges)))


def _edge_lines(edges: Iterable[Edge], indent: str = "  ") -> Iterator[str]:
    for edge in edges:
        yield f"{indent}{render_term(edge.subject)} {render_term(edge.relation)} {render_term(edge.object)} ."


def _unequal_lines(pairs: Iterable[tuple[Node, Node]], indent: str = "  ") -> Iterator[str]:
    for left, right in pairs:
        yield f"{indent}FILTER({render_term(left)} != {render_term(right)})"


def _join_lines(join: PathPattern, indent: str = "  ") -> Iterator[str]:
    yield from _edge_lines(join.edges, indent)
    yield from _unequal_lines(join.different, indent)


def _selection(node: Node, chosen: Sequence[Entity]) -> str:
    if len(chosen) == 1:
        return f"{values_clause(node, chosen)}  # inner entity selected by a model"
    # in a list of IRIs, Virtuoso converts them to numbers or dates with some plans, and fails, if the data has a number
    # or a date in their place
    texts = ", ".join([f"STR({render_term(entity)})" for entity in chosen])
    name = render_term(node)
    return f"FILTER(isIRI({name}) && STR({name}) IN ({texts}))  # inner entities selected by a model"


def _test_lines(test: NodeTest) -> list[str]:
    lines = [*_edge_lines(test.edges), *([f"  FILTER({_comparison(test)})"] if test.operator else ())]
    if test.negated:
        lines = [f"  FILTER NOT EXISTS {{ {lines[0]}", *lines[1:], "  }"]
    return lines


def _comparison(test: NodeTest) -> str:
    assert test.operator in _OPERATORS
    value = render_term(test.value)
    if test.cast is None:
        tested = render_term(test.tested)
        return f"{tested if test.scale == 'entity' else f'STR({tested})'} {test.operator} {value}"
    key = comparison_key(test.tested, test.scale, test.cast)
    return f"{is_comparable(test.tested, test.scale)} && {key} {test.operator} {render_term(test.cast)}({value})"


def _end_lines(walk: PathPattern) -> Iterator[str]:
    """Yield the filters that keep mediators out of the ends."""
    end = render_term(walk.end)
    for prefix in walk.not_prefixed:
        yield f"  FILTER(!STRSTARTS(STR({end}), {render_term(prefix)}))"
    for kind in walk.not_typed:
        yield f"  FILTER NOT EXISTS {{ {end} {render_term(kind.predicate)} {render_term(kind.type)} . }}"
    for mark in walk.not_marked:
        marker = f"{render_term(mark.marker)} {render_term(mark.value)}"
        yield f"  FILTER NOT EXISTS {{ {end} {render_term(mark.predicate)} ?mark . ?mark {marker} . }}"


def is_comparable(tested: Node, scale: str) -> Part:
    """Return the expression for whether the text of a value is a number or date of a scale."""
    return Part(f'REGEX(STR({render_term(tested)}), "{_VALID.get(scale, _DATE)}")')


def comparison_key(tested: Node, scale: str, cast: Entity) -> Part:
    """Return the expression for the number by which values are compared.

    Args:
        tested: the value.
        scale: `number`, `decimal` (exact, a double where decimals are too small), `year`, `month`, `day`, or `date` for
            dates of any precision. A month is a number such as 196705, a day or date one such as 19670502.
        cast: the datatype of the number.
    """
    number = render_term(cast)
    text = f"STR({render_term(tested)})"
    valid = f'IF({is_comparable(tested, scale)}, {text}, "0")'
    if scale == "number":
        return Part(f"{number}({valid})")
    if scale == "decimal":
        # STRDT, and not a cast to double: with a cast in COALESCE, Virtuoso converts every number to a double
        double = render_term(DOUBLE)
        exact = f'{number}(IF(REGEX({text}, "{_DECIMAL}"), {text}, "0"))'
        exponent = f'IF(REGEX({text}, "[0-9.][eE]") && {is_comparable(tested, scale)}, {text}, "0")'
        return Part(f"COALESCE({exact} + {number}({double}({exponent})), STRDT({valid}, {double}))")
    year = f'{number}(REPLACE({valid}, "^(-?[0-9]+).*$", "$1"))'
    if scale == "year":
        return Part(year)
    rest = f'REPLACE(REPLACE({valid}, "^-?[0-9]+", ""), "(Z|[-+][0-9]{{2}}:[0-9]{{2}})$", "")'
    factor, length = (100, 3) if scale == "month" else (10000, 6)
    return Part(f'{factor} * {year} + {number}(REPLACE(SUBSTR(CONCAT({rest}, "-00-00"), 1, {length}), "-", ""))')
