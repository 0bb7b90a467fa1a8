"""Lays out the drawings of a report: a path with its walks, and points with error bars on two axes.

The functions return only coordinates and strings; the templates draw and escape them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kgqa.report.lenient_json import count_of, list_of, number_of, object_of, objects_of, text_of, texts_of
from kgqa.text.words import clean, local_name, split_words

MAX_WALKS = 8
MAX_STEPS = 12
MAX_CONDITIONS = 8
MAX_LETTERS = 80
_COLUMN, _ROW, _LEFT, _TOP = 210, 52, 90, 62
_LINE, _BESIDE, _LETTER = 20, 14, 7
"""Height of a row of text, distance of a branch from the middle of its node, width of a letter (pixels)."""


@dataclass(frozen=True, slots=True)
class Node:
    """A circle at x, y (pixels) with a name below it. `full`: tooltip.

    `kind`: topic, mediator, inner, or at the end of the path: answer, answer right, answer wrong.
    """

    x: int
    y: int
    name: str
    full: str
    kind: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow between two nodes, in pixels."""

    x1: int
    y1: int
    x2: int
    y2: int


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a relation at x, y (pixels). `full`: tooltip."""

    x: int
    y: int
    text: str
    full: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition on the nodes of a column, or the operation on the ends: a line down from x, y1 to a label at y2.

    `full`: tooltip. `kind`: condition or operation.
    """

    x: int
    y1: int
    y2: int
    text: str
    full: str
    kind: str


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of a path after one more step, for narrow screens. `arrow`, `relation`: the step; empty for the topic.

    `full`: tooltip of the relation. `nodes`: name, tooltip and kind of each node.
    """

    arrow: str
    relation: str
    full: str
    nodes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of a path: the topic on the left, the ends on the right, relations above their edges.

    Conditions and the operation are below the path, each in a row of its own. `levels`: the same from top to bottom.
    `left_out`: number of walks that are not drawn.
    """

    width: int
    height: int
    nodes: tuple[Node, ...]
    edges: tuple[Arrow, ...]
    labels: tuple[Label, ...]
    branches: tuple[Branch, ...] = ()
    levels: tuple[Level, ...] = ()
    left_out: int = 0


def relation_name(iri: str) -> str:
    """Name a relation without a known schema: the last two parts of a dotted name, or else the end of the IRI."""
    parts = [part for part in local_name(iri).split(".") if part]
    return " · ".join(split_words(part) for part in parts[-2:]) or clean(iri)


def shorter(text: str, most: int) -> str:
    """Shorten a text to at most `most` characters."""
    text = clean(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def draw_path(path: Mapping[str, Any], right: Mapping[str, bool] | None = None) -> Drawing | None:
    """Lay out a path of an answer object (docs/answer-json.md). Return None if the path has no steps.

    Args:
        right: whether an answer is right, by its IRI, id or value; empty or None if this is not known.
    """
    steps = objects_of(path.get("steps"))[:MAX_STEPS]
    if not steps:
        return None
    walks = [objects_of(walk) for walk in list_of(path.get("walks"))]
    walks = [walk[: len(steps) + 1] for walk in walks if walk]
    if not walks:
        # without walks, draw the shape of the path with variables
        topic = {"iri": text_of(path.get("topic")), "name": local_name(text_of(path.get("topic")))}
        walks = [[topic, *({"id": f"?{number}", "name": f"?{number}"} for number in range(1, len(steps) + 1))]]
    mediators = {count_of(each) for each in list_of(path.get("mediators"))}
    columns: list[dict[str, str]] = [{} for _ in range(len(steps) + 1)]
    joined: dict[tuple[int, str, str], None] = {}
    for walk in walks[:MAX_WALKS]:
        for place, node in enumerate(walk):
            columns[place].setdefault(_key(node), text_of(node.get("name")) or _key(node))
        for place in range(len(walk) - 1):
            joined[place, _key(walk[place]), _key(walk[place + 1])] = None
    rows = max(map(len, columns))
    at: dict[tuple[int, str], tuple[int, int]] = {}
    nodes = []
    for place, column in enumerate(columns):
        start = _TOP + (rows - len(column)) * _ROW // 2
        for row, (key, name) in enumerate(column.items()):
            at[place, key] = x, y = _LEFT + place * _COLUMN, start + row * _ROW
            kind = "topic" if place == 0 else "mediator" if place in mediators else "inner"
            if place == len(steps) and kind == "inner":
                kind = (
                    "answer" if key not in (right or {}) else "answer right" if (right or {})[key] else "answer wrong"
                )
            nodes.append(Node(x, y, "" if kind == "mediator" else shorter(name, 26), f"{name} {key}".strip(), kind))
    edges = []
    for place, first, second in joined:
        one, other = at[place, first], at[place + 1, second]
        edges.append(_edge(other, one) if steps[place].get("direction") == "in" else _edge(one, other))
    labels, words = [], texts_of(path.get("step_words"))[:MAX_STEPS]
    for place, step in enumerate(steps):
        iri = text_of(step.get("relation"))
        name = words[place] if len(words) == len(steps) else relation_name(iri)
        # alternate the height, so that long names do not overlap
        y = 16 if place % 2 else 34
        labels.append(Label(_LEFT + place * _COLUMN + _COLUMN // 2, y, shorter(name, 44), iri))
    bottom = _TOP + rows * _ROW
    lowest = [max((at[place, key][1] for key in column), default=_TOP) for place, column in enumerate(columns)]
    branches = _branches(path, lowest, bottom)
    width = max(_LEFT * 2 + len(steps) * _COLUMN, *(each.x + (len(each.text) + 2) * _LETTER for each in branches), 0)
    height = bottom + len(branches) * _LINE
    left_out = max(0, len(walks) - MAX_WALKS)
    levels = _levels(steps, labels, columns, nodes)
    return Drawing(width, height, tuple(nodes), tuple(edges), tuple(labels), branches, levels, left_out)


def _levels(
    steps: Sequence[Mapping[str, Any]],
    labels: Sequence[Label],
    columns: Sequence[Mapping[str, str]],
    nodes: Sequence[Node],
) -> tuple[Level, ...]:
    """Put the nodes of each column into one level, with the step that leads there."""
    left = iter(nodes)
    levels = []
    for place, column in enumerate(columns):
        of = tuple((node.name or "(event)", node.full, node.kind) for node in islice(left, len(column)))
        if place:
            backward = steps[place - 1].get("direction") == "in"
            label = labels[place - 1]
            levels.append(Level("↑" if backward else "↓", label.text, label.full, of))
        else:
            levels.append(Level("", "", "", of))
    return tuple(levels)


def _branches(path: Mapping[str, Any], lowest: Sequence[int], bottom: int) -> tuple[Branch, ...]:
    """Lay out the conditions and the operation; `lowest`: the y of the lowest node of each column."""
    last = len(lowest) - 1
    shown = [(each.get("at"), each, "condition") for each in objects_of(path.get("conditions"))[:MAX_CONDITIONS]]
    operation = object_of(path.get("operation"))
    place = operation.get("at")
    branches: list[Branch] = []
    for at, each, kind in [*shown, (last if place is None else place, operation, "operation")]:
        words, column = text_of(each.get("words")), count_of(at)
        if words and column and 0 < column <= last:
            x, y = _LEFT + column * _COLUMN + _BESIDE, bottom + len(branches) * _LINE + 4
            branches.append(Branch(x, lowest[column] + 30, y, shorter(words, MAX_LETTERS), words, kind))
    return tuple(branches)


def _key(node: Mapping[str, Any]) -> str:
    return text_of(node.get("iri")) or text_of(node.get("id")) or text_of(node.get("value"))


def _edge(one: tuple[int, int], other: tuple[int, int]) -> Arrow:
    """Lay out an arrow between two circles; the arrow starts and ends at the edges of the circles."""
    length = math.dist(one, other) or 1.0
    dx, dy = (other[0] - one[0]) / length * 14, (other[1] - one[1]) / length * 14
    return Arrow(round(one[0] + dx), round(one[1] + dy), round(other[0] - dx), round(other[1] - dy))


# ---- points on two axes ----


@dataclass(frozen=True, slots=True)
class Point:
    """A run in a plot: mean cost per question, accuracy from 0 to 1, and the 95% interval of the accuracy."""

    label: str
    cost: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with its error bar, in pixels. `full`: tooltip."""

    label: str
    number: int
    x: float
    y: float
    low: float
    high: float
    full: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of accuracy (0 to 100%) against cost; the cost axis is logarithmic if costs differ by a factor over 20."""

    width: int
    height: int
    left: int
    bottom: int
    dots: tuple[Dot, ...]
    across: tuple[tuple[float, str], ...]
    upward: tuple[tuple[float, str], ...]
    unit: str


_NOTHING = 1e-12


def draw_plot(points: Sequence[Point], unit: str, *, width: int = 640, height: int = 330) -> Plot | None:
    """Lay out a plot of accuracy against cost. Return None if there are no points."""
    points = [p for p in points if number_of(p.cost) is not None and number_of(p.value) is not None and p.cost >= 0]
    if not points:
        return None
    left, right, top, bottom = 56, width - 24, 16, height - 44
    most = max(p.cost for p in points)
    most = most if most > _NOTHING else 1.0
    # limit the axis to six decades
    least = max(min((p.cost for p in points if p.cost > _NOTHING), default=most), most / 1e6)
    log = most / least > 20
    # a cost of 0 is drawn at the left end of a logarithmic axis
    first = 10 ** math.floor(math.log10(least)) if log else 0.0
    last = 10 ** math.ceil(math.log10(most) + 1e-9) if log else most * 1.12

    def across(cost: float) -> float:
        share = math.log(max(cost, first) / first) / math.log(last / first) if log else cost / last
        return round(left + share * (right - left), 1)

    def up(value: float) -> float:
        return round(bottom - min(max(value, 0.0), 1.0) * (bottom - top), 1)

    dots = [
        Dot(
            label=shorter(p.label, 28),
            number=number,
            x=across(p.cost),
            y=up(p.value),
            low=up(p.value if p.low is None else p.low),
            high=up(p.value if p.high is None else p.high),
            full=f"{p.label}: {100 * p.value:.1f}% at {p.cost:.4g} {unit}",
        )
        for number, p in enumerate(points)
    ]
    if log:
        ticks = [10.0**power for power in range(round(math.log10(first)), round(math.log10(last)) + 1)]
    else:
        ticks = _ticks(last)
    return Plot(
        width,
        height,
        left,
        bottom,
        tuple(dots),
        tuple((across(tick), f"{tick:g}") for tick in ticks),
        tuple((up(share / 100), f"{share}%") for share in range(0, 101, 20)),
        unit,
    )


def _ticks(last: float) -> list[float]:
    """Return about five round numbers from 0 to `last`."""
    rough = last / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * number for number in range(int(last / step) + 1)]
