"""Lays out the drawing of a walk: places in columns by their distance from where the walk starts.

The functions return only coordinates and strings; the template draws and escapes them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from kgqa.report.agents.walk import Link, Place, Walk
from kgqa.report.drawing import Label, Node, shorter
from kgqa.text.words import counted

_COLUMN, _ROW, _LEFT, _TOP = 260, 64, 92, 34
_CAPTION, _RELATION = 26, 27
"""Longest caption of a place and longest relation, in letters."""
_CLEAR, _BEND = 14, 64
"""Distance of a curve's ends from the middle of a circle, and how long the curve needs from one row to another."""


@dataclass(frozen=True, slots=True)
class DrawnPlace:
    """A circle with the names of a place below it. `number`: trial and step of the call that found it."""

    node: Node
    number: str


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A curve with its relation. `kind`: chosen if the answer's path takes it, combined, or hop.

    `back`: the relation is followed backwards, so the arrow is at the start of the curve.
    """

    curve: str
    label: Label
    kind: str
    back: bool


@dataclass(frozen=True, slots=True)
class WalkDrawing:
    """The drawing of a walk. `words`: the drawing in one sentence. `left_out`: number of calls that are not drawn."""

    width: int
    height: int
    places: tuple[DrawnPlace, ...]
    links: tuple[DrawnLink, ...]
    words: str
    left_out: int = 0


def draw_walk(walk: Walk, *, trials: int = 1, answers: tuple[str, ...] = ()) -> WalkDrawing | None:
    """Lay out a walk; None if it has no links.

    Args:
        walk: The places and the links between them.
        trials: Number of trials; steps are numbered with their trial if there are several.
        answers: The names of the answers, whose places are marked.
    """
    if not walk.links:
        return None
    columns = _columns(walk)
    rows = _rows(walk, columns)
    at = {id(each): (_LEFT + columns[id(each)] * _COLUMN, _TOP + round(rows[id(each)] * _ROW)) for each in walk.places}
    wanted = {name.casefold() for name in answers}
    places = tuple(
        DrawnPlace(
            Node(*at[id(each)], _caption(each), "\n".join([_tooltip(each), *each.calls]), _kind(each, wanted)),
            _number(each, trials),
        )
        for each in walk.places
    )
    arriving = Counter(id(each.target) for each in walk.links)
    links = tuple(
        _link(each, at[id(each.source)], at[id(each.target)], meets=arriving[id(each.target)] > 1)
        for each in walk.links
    )
    width = _LEFT * 2 + max(columns.values()) * _COLUMN
    height = round(_TOP * 2 + max(rows.values()) * _ROW)
    asked = sum(each.total is not None for each in walk.places)
    words = f"The walk as a graph: {counted(asked, 'place')} found along {counted(len(links), 'link')}"
    return WalkDrawing(width, height, places, links, words, walk.left_out)


def _columns(walk: Walk) -> dict[int, int]:
    """Return the column of each place: one more than that of the farthest place from which a link leads to it."""
    columns = {id(each): 0 for each in walk.places}
    for link in walk.links:  # the links of a place are added before those that start from it
        columns[id(link.target)] = max(columns[id(link.target)], columns[id(link.source)] + 1)
    return columns


def _rows(walk: Walk, columns: dict[int, int]) -> dict[int, float]:
    """Return the row of each place: beside the first place that follows it, and below all that was placed before."""
    below: dict[int, list[Place]] = defaultdict(list)
    placed: set[int] = set()
    for link in walk.links:
        if id(link.target) not in placed:
            placed.add(id(link.target))
            below[id(link.source)].append(link.target)
    rows: dict[int, float] = {}
    free: dict[int, float] = defaultdict(float)

    def place(one: Place, least: float) -> float:
        """Place a node and all below it; return the row of the node."""
        least = max(least, free[columns[id(one)]])
        inner = [place(each, least) for each in below[id(one)]]
        rows[id(one)] = row = max([least, *inner[:1]])
        free[columns[id(one)]] = row + 1
        return row

    for each in walk.places:
        if id(each) not in placed:
            place(each, max(free.values(), default=0.0))
    return rows


def _link(link: Link, one: tuple[int, int], other: tuple[int, int], *, meets: bool) -> DrawnLink:
    """Lay out a link. Its relation stands in the row of its end, or, if several links meet there, of its start."""
    (x1, y1), (x2, y2) = (one[0] + _CLEAR, one[1]), (other[0] - _CLEAR, other[1])
    bend = (x2 - _BEND, x2) if meets else (x1, x1 + _BEND)
    curve = (
        f"M{x1} {y1}L{bend[0]} {y1}C{bend[0] + _BEND // 2} {y1} {bend[1] - _BEND // 2} {y2} {bend[1]} {y2}L{x2} {y2}"
    )
    x, y = (bend[0] + x1 if meets else bend[1] + x2) // 2, (y1 if meets else y2) - 6
    back = link.text.startswith("← ")
    text = link.text[2:] if link.text.startswith(("→ ", "← ")) else link.text
    kind = "chosen" if link.chosen else "combined" if link.combined else "hop"
    return DrawnLink(curve, Label(x, y, shorter(text, _RELATION), text), kind, back)


def _caption(place: Place) -> str:
    """Name a place by its first name and the number of the others."""
    if place.total is None and not place.names:
        return "…"
    total = place.total if place.total is not None else len(place.names)
    if not place.names:
        return counted(total, "value")
    # without a call, only examples are known
    more = "" if total <= 1 else " and others" if place.total is None else f" and {total - 1:,} more"
    return shorter(place.names[0], _CAPTION - len(more)) + more


def _tooltip(place: Place) -> str:
    names = ", ".join(place.names)
    more = (place.total or 0) - len(place.names)
    return f"{names} and {more:,} more" if names and more > 0 else names or _caption(place)


def _kind(place: Place, wanted: set[str]) -> str:
    if place.topic:
        return "topic"
    if any(name.casefold() in wanted for name in place.names) and (place.chosen or place.total == 1):
        return "answer"
    return "inner" if place.total is not None else "mediator"


def _number(place: Place, trials: int) -> str:
    if not place.steps:
        return ""
    trial, step = place.steps[0]
    return f"{trial + 1}.{step}" if trials > 1 else str(step)
