"""Lays out the drawing of an evidence graph: names in columns, by their distance from the first name.

The functions return only coordinates and strings; the template draws and escapes them.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.report.drawing import Node, shorter
from kgqa.report.text.evidence_graph import GrownFact

MAX_DRAWN = 60
_COLUMN, _ROW, _LEFT, _TOP = 230, 58, 84, 24
_CLEAR, _BEND, _ASIDE = 15, 40, 110
_NEAR = 0.68
"""Where a relation stands on its edge: near the end that has fewer edges, in the column farther right."""
_COLOURS = 8


@dataclass(frozen=True, slots=True)
class Edge:
    """A curve from a subject to an object, in pixels, with the relation at x, y.

    `aside`: the relation begins at x, beside a curve within a column; otherwise x is its middle. `full`: tooltip.
    `edit`: position of the edit that added the fact. `removed`: whether a later edit removed it.
    """

    path: str
    x: int
    y: int
    aside: bool
    text: str
    full: str
    edit: int
    removed: bool

    @property
    def colour(self) -> int:
        """Number of the colour of the edit."""
        return self.edit % _COLOURS


@dataclass(frozen=True, slots=True)
class GraphDrawing:
    """The drawing of an evidence graph. `left_out`: number of facts that are not drawn."""

    width: int
    height: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0


def draw_graph(facts: Sequence[GrownFact], *, answers: Sequence[str] = ()) -> GraphDrawing | None:
    """Lay out facts; None without facts.

    Args:
        facts: The facts; the first `MAX_DRAWN` of them are drawn.
        answers: The names of the answers, which are marked.
    """
    drawn = facts[:MAX_DRAWN]
    if not drawn:
        return None
    at = _places(drawn)
    wanted = {name.casefold() for name in answers}
    names = {_key(name): name for fact in reversed(drawn) for name in (fact.object, fact.subject)}
    nodes = tuple(
        Node(*_pixels(place), shorter(names[key], 24), names[key], "answer" if key in wanted else "inner")
        for key, place in at.items()
    )
    lines: dict[tuple[str, str], list[GrownFact]] = defaultdict(list)
    for fact in drawn:
        lines[_key(fact.subject), _key(fact.object)].append(fact)
    edges = tuple(
        edge
        for (one, other), group in lines.items()
        if one != other
        for edge in _edges(at[one], at[other], group, both=(other, one) in lines)
    )
    width = _LEFT * 2 + max(column for column, _ in at.values()) * _COLUMN + _ASIDE
    height = _TOP + (max(row for _, row in at.values()) + 1) * _ROW
    return GraphDrawing(width, height, nodes, edges, len(facts) - len(drawn))


def _key(name: str) -> str:
    return name.casefold()


def _pixels(place: tuple[int, int]) -> tuple[int, int]:
    return _LEFT + place[0] * _COLUMN, _TOP + place[1] * _ROW


def _places(facts: Sequence[GrownFact]) -> dict[str, tuple[int, int]]:
    """Return column and row of each name: the distance from the first name of its part of the graph."""
    beside: dict[str, dict[str, None]] = {}
    for fact in facts:
        one, other = _key(fact.subject), _key(fact.object)
        beside.setdefault(one, {})[other] = None
        beside.setdefault(other, {})[one] = None
    at: dict[str, tuple[int, int]] = {}
    top = 0
    for first in beside:
        if first in at:
            continue
        rows: dict[int, int] = defaultdict(lambda start=top: start)  # type: ignore[misc]
        waiting = deque([(first, 0)])
        at[first] = (0, top)
        while waiting:
            key, column = waiting.popleft()
            for other in beside[key]:
                if other not in at:
                    at[other] = (column + 1, rows[column + 1])
                    rows[column + 1] += 1
                    waiting.append((other, column + 1))
        top = max([top + 1, *rows.values()])
    return at


def _edges(one: tuple[int, int], other: tuple[int, int], facts: Sequence[GrownFact], *, both: bool) -> list[Edge]:
    """Lay out one curve for facts with the same subject and object; their relations are below each other."""
    (x1, y1), (x2, y2) = _pixels(one), _pixels(other)
    length = math.dist((x1, y1), (x2, y2)) or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    aside = one[0] == other[0]
    bend = _BEND if both else 0
    if aside:  # to the right of the column
        bend = (_ASIDE if y1 < y2 else -_ASIDE) + (_BEND if both and y1 < y2 else 0)
    # the line is bent to the left of the direction from the subject to the object
    middle = (x1 + x2) / 2 + dy * bend, (y1 + y2) / 2 - dx * bend
    start, end = _towards((x1, y1), middle), _towards((x2, y2), middle)
    path = f"M{start[0]} {start[1]}Q{round(middle[0])} {round(middle[1])} {end[0]} {end[1]}"
    share = 0.5 if y1 == y2 or aside else _NEAR if x1 < x2 else 1 - _NEAR
    x, y = _on_curve((x1, y1), middle, (x2, y2), share)
    found = []
    for number, fact in enumerate(facts):
        words = f"{fact.fact.subject} — {fact.fact.relation} → {fact.fact.object}"
        full = f"{words}: “{fact.fact.quote}”" if fact.fact.quote else words
        curve = path if number == 0 else ""
        at = (x + 4, y + 4 + 13 * (number + (both and y1 > y2))) if aside else (x, y - 4 + 13 * number)
        text = shorter(fact.relation, 20 if aside else 30)
        found.append(Edge(curve, *at, aside, text, full, fact.edit, fact.removed is not None))
    return found


def _on_curve(
    start: tuple[float, float], middle: tuple[float, float], end: tuple[float, float], share: float
) -> tuple[int, int]:
    """Return the point of a quadratic Bézier curve at a share of its way."""
    weights = (1 - share) ** 2, 2 * share * (1 - share), share**2
    x, y = (sum(w * each[axis] for w, each in zip(weights, (start, middle, end))) for axis in (0, 1))
    return round(x), round(y)


def _towards(place: tuple[int, int], there: tuple[float, float]) -> tuple[int, int]:
    """Return the point at the edge of a node's circle in the direction of another point."""
    length = math.dist(place, there) or 1.0
    return (
        round(place[0] + (there[0] - place[0]) / length * _CLEAR),
        round(place[1] + (there[1] - place[1]) / length * _CLEAR),
    )
