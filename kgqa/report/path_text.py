"""Draws a path as text for terminals: the topic on the left, relations on the edges, several answers as branches.

    Kimigayo ──national anthem of──▶ • ──country──▶ Japan ──capital──▶ Tokyo

An arrow points from the subject of a triple to its object, so `Inception ◀──film──` is a relation that is followed
backwards. A dot is a mediator. A drawing that is too wide has a line for each node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kgqa.model import Named, PathEvidence, Value
from kgqa.report.drawing import relation_name
from kgqa.text.words import clean, display_name, text_width

MAX_BRANCHES = 6
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of a drawing. `turn`, `fork`, `last`, `bar`: where the first, an inner and the last branch leave."""

    line: str = "─"
    right: str = "▶"
    left: str = "◀"
    dot: str = "•"
    turn: str = "┬"
    fork: str = "├"
    last: str = "└"
    bar: str = "│"
    more: str = "…"


UNICODE = Signs()
ASCII = Signs("-", ">", "<", "*", "+", "+", "`", "|", "~")


def signs_for(encoding: str | None) -> Signs:
    """Return the signs that an encoding of an output can write."""
    try:
        "".join(UNICODE.line + UNICODE.right + UNICODE.left + UNICODE.dot + UNICODE.turn).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


@dataclass
class _Node:
    label: str
    children: dict[Value | None, _Node] = field(default_factory=dict)


def path_lines(evidence: PathEvidence, *, width: int = 120, signs: Signs = UNICODE, answers: int = 0) -> list[str]:
    """Draw the walks of a path, in lines of at most `width` columns; an empty list if there is nothing to draw.

    `answers`: the number of answers; evidence has walks to some of them only if there are many.
    """
    steps = evidence.path.steps
    walks = [walk for walk in evidence.walks if len(walk) == len(steps) + 1]
    if not steps or not walks:
        return []
    names = evidence.step_words if len(evidence.step_words) == len(steps) else ()
    words = [clean(name) for name in names] or [relation_name(step.relation) for step in steps]
    edges = list(zip(words, (step.direction == "in" for step in steps)))
    inner = {place for place in evidence.mediators if 0 < place < len(steps)}
    root, left_out = _tree(walks, inner, signs)
    lines = _across(root, edges, signs)
    if any(text_width(line) > width for line in lines):
        lines = [_cut(root.label, width, signs), *_down(root, edges, signs, width, "")]
    if not left_out:
        return lines
    known = len({walk[-1].value for walk in walks})
    return [*lines, "... and more" if known < answers else f"... and {left_out:,} more"]


def _tree(walks: list[tuple[Named, ...]], inner: set[int], signs: Signs) -> tuple[_Node, int]:
    """Merge walks into a tree, by name, with one dot for all mediators of a place; return the walks left out, too."""
    walks = sorted(walks, key=lambda walk: [node.name for node in walk])
    keyed = [tuple(None if place in inner else node.value for place, node in enumerate(walk)) for walk in walks]
    different = list(dict.fromkeys(keyed))
    shown = different[:MAX_BRANCHES]
    values = {value for key in shown for value in key}
    named = {node.value: node for walk in walks for node in walk if node.value in values}
    same = Counter(clean(node.name) for node in named.values())
    root = _Node("")
    for key in shown:
        node = root
        for value in key:
            if value not in node.children:
                label = signs.dot if value is None else _label(named[value], alone=same[clean(named[value].name)] < 2)
                node.children[value] = _Node(label if len(label) <= _LONGEST_NAME else label[:59] + signs.more)
            node = node.children[value]
    return next(iter(root.children.values())), len(different) - len(shown)


def _label(named: Named, *, alone: bool) -> str:
    """Return the name of a node, with its id if another node of the drawing has the same name."""
    return clean(named.name) or clean(named.id) if alone and not named.unit else display_name(named)


def _across(node: _Node, edges: list[tuple[str, bool]], signs: Signs) -> list[str]:
    """Draw a tree from left to right."""
    if not node.children:
        return [node.label]
    (words, back), *rest = edges
    rule = signs.line * 2
    start = f"{node.label} {signs.left if back else ''}{rule}{words}{rule}"
    tip = f"{rule} " if back else f"{signs.line}{signs.right} "
    blocks = [_across(child, rest, signs) for child in node.children.values()]
    if len(blocks) == 1:
        start += " " if back else f"{signs.right} "
        return [start + blocks[0][0], *(" " * text_width(start) + each for each in blocks[0][1:])]
    margin, lines = " " * text_width(start), []
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        corner = signs.turn if number == 0 else signs.last if last else signs.fork
        lines.append((start if number == 0 else margin) + corner + tip + block[0])
        below = margin + (" " if last else signs.bar) + " " * len(tip)
        lines += [below + each for each in block[1:]]
    return lines


def _down(node: _Node, edges: list[tuple[str, bool]], signs: Signs, width: int, margin: str) -> list[str]:
    """Draw what is below a node of a tree, one line for each node."""
    lines: list[str] = []
    rule, children = signs.line * 2, list(node.children.values())
    for child in children:
        (words, back), *rest = edges
        corner = signs.last if child is children[-1] else signs.fork
        edge = f"{signs.left if back else ''}{rule}{words}{rule}{'' if back else signs.right} "
        lines.append(_cut(margin + corner + edge + child.label, width, signs))
        below = margin + (" " if child is children[-1] else signs.bar) + "  "
        lines += _down(child, rest, signs, width, below)
    return lines


def _cut(line: str, width: int, signs: Signs) -> str:
    """Cut a line that is wider than the terminal."""
    if text_width(line) <= width:
        return line
    while text_width(line) >= width:
        line = line[:-1]
    return line + signs.more
