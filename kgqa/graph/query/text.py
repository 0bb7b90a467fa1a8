"""SPARQL text: terms, whole queries from the templates in queries/*.rq, and graph patterns of relation paths.

Templates and patterns take only typed RDF terms, variables, numbers and comments. A plain string raises InvalidTerm, so
that text from questions or labels never becomes part of a query unescaped. Exploration, the ends of a path and the
exported query use the same pattern, and therefore agree.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kgqa.errors import InvalidTerm
from kgqa.graph.store import Rows
from kgqa.model import RDF_LANG_STRING, XSD_STRING, Entity, Literal, Step, Value
from kgqa.schema import INSTANCE_OF, SUBCLASS_OF, TYPE
from kgqa.settings.table import WalkRule

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>\"{}|^`\\\x7f]*\Z")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*(--(ltr|rtl))?\Z")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


@dataclass(frozen=True, slots=True)
class Variable:
    """A SPARQL variable, without the question mark."""

    name: str


@dataclass(frozen=True, slots=True)
class Comment:
    """Text of a SPARQL comment. Line breaks and control characters are removed when the comment is rendered."""

    text: str


def render_term(term: Any) -> str:
    """Render a term as SPARQL text.

    Raises:
        InvalidTerm: the value is not a typed term, or its IRI, language tag or name has invalid characters.
    """
    match term:
        case Entity(iri=iri) if iri == INSTANCE_OF:
            return f"<{TYPE}>/<{SUBCLASS_OF}>*"
        case Entity():
            return f"<{_valid(term.iri, _IRI, 'an absolute IRI, such as http://example.org/ada')}>"
        case Variable():
            return f"?{_valid(term.name, _NAME, 'a variable name')}"
        case Literal():
            text = '"' + "".join(_ESCAPES.get(char, char) for char in term.value) + '"'
            if term.language:
                return f"{text}@{_valid(term.language, _LANGUAGE, 'a language tag, such as en')}"
            plain = term.datatype in (XSD_STRING, RDF_LANG_STRING)
            return text if plain else f"{text}^^{render_term(Entity(term.datatype))}"
        case Comment():
            # backslashes are removed: some engines resolve an escaped line end before they look for comments
            return "# " + " ".join("".join(c if c.isprintable() and c != "\\" else " " for c in term.text).split())
        case int() if not isinstance(term, bool):
            return str(term)
    raise InvalidTerm(
        f"A query takes only typed terms, not {type(term).__name__}: use Entity, Literal, Variable or Comment."
    )


def _valid(text: str, pattern: re.Pattern[str], kind: str) -> str:
    if not pattern.match(text):
        raise InvalidTerm(f"{text[:80]!r} is not {kind}.")
    return text


def _source(name: str) -> str:
    return (files("kgqa.queries") / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_source),
        undefined=StrictUndefined,
        finalize=render_term,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(name: str, **values: Any) -> str:
    """Render queries/NAME.rq with typed values.

    Raises:
        InvalidTerm: a value is not a typed term, or has invalid characters.
    """
    return _environment().get_template(f"{name}.rq").render(values)


_TERM = re.compile(
    r'"(?P<text>(?:[^"\\]++|\\[tnrbf"\\]|\\u[0-9A-F]{4})*+)"(?:@(?P<language>[A-Za-z0-9-]+)|\^\^<(?P<datatype>[^>]*)>)?'
    r"|(?P<blank>_:.+)|(?P<boolean>true|false)|(?P<integer>[+-]?[0-9]+)"
    r"|(?P<decimal>[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+))|(?P<double>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+)",
    re.DOTALL,
)
_ESCAPE = re.compile(r'\\([tnrbf"\\]|u[0-9A-F]{4})')
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\"}


def decode_tsv(data: bytes | bytearray | memoryview) -> Rows:
    """Decode a complete TSV result.

    Raises:
        ValueError: a term is not supported.
    """
    header, _, body = str(data, "utf-8").partition("\n")
    # not splitlines(): literals may contain other Unicode line breaks
    lines = body.split("\n")[:-1]
    if not header:
        return Rows((), [()] * len(lines))
    term = functools.cache(decode_term)
    variables = tuple(name.lstrip("?") for name in header.split("\t"))
    return Rows(variables, [tuple(map(term, line.split("\t"))) for line in lines])


def decode_term(field: str) -> Value | None:
    """Decode one field of a row, or a term in N-Triples; None if it is empty. Raises ValueError."""
    if not field:
        return None
    if field[0] == "<" and field[-1] == ">" and field[1] != "<":
        return Entity(field[1:-1])
    match = _TERM.fullmatch(field)
    if not match:
        raise ValueError(f"not an RDF term: {field[:80]}")
    text, language, datatype = match.group("text", "language", "datatype")
    if match.lastgroup == "blank":
        return Entity(field)
    if text is None:
        return Literal(field, f"http://www.w3.org/2001/XMLSchema#{match.lastgroup}")
    if "\\" in text:
        text = _ESCAPE.sub(lambda escape: _PLAIN.get(escape[1]) or chr(int(escape[1][1:], 16)), text)
    return Literal(text, datatype or XSD_STRING, language or "")


Node = Entity | Variable
Edge = tuple[Node, Entity, Node]
"""A triple pattern."""
Restrictions = tuple[tuple[int, tuple[Entity, ...]], ...]
"""Pairs of a node's index in a path (1: the node after the topic) and the only entities that this node may be."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    """The pattern of a relation path.

    Attributes:
        nodes: the nodes from the topic to the end.
        edges: one triple pattern per step.
        different: pairs of nodes that must differ.
        restricted: the only entities that some inner nodes may be.
        joins: patterns of other paths, each with the index of the node where that path must end.
        conditions: the text of conditions, each with the index of its node.
        kept: inner nodes that the query needs beside the end.
        not_mediator: the filters that keep mediators out of the ends.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    different: tuple[tuple[Node, Node], ...] = ()
    restricted: Restrictions = ()
    joins: tuple[tuple[int, PathPattern], ...] = ()
    conditions: tuple[tuple[int, str], ...] = ()
    kept: tuple[Node, ...] = ()
    not_mediator: tuple[str, ...] = ()

    @property
    def end(self) -> Node:
        """The last node."""
        return self.nodes[-1]


def returns(step: Step, previous: Step, inverse: Callable[[str], str | None]) -> bool:
    """Return whether `step` can go back over the edge of `previous`.

    A step goes back by the same relation in the opposite direction, or by the inverse relation in the same direction.
    """
    if step.direction != previous.direction:
        return step.relation == previous.relation
    return inverse(previous.relation) == step.relation or inverse(step.relation) == previous.relation


def path_pattern(
    topic: Node,
    steps: Sequence[Step],
    rule: WalkRule,
    *,
    inverse: Callable[[str], str | None],
    final: bool = True,
    end: Node | None = None,
    prefix: str = "e",
) -> PathPattern:
    """Build the pattern of a path, or of a few steps from a variable, under a walk rule.

    - `free`: any walk.
    - `topic-not-end`: the last node is not the topic (only if `final`).
    - `topic-never`: no node after the first is the topic.
    - `no-return`: a step that can go back over the previous edge must not lead back to the node before that edge.

    Args:
        inverse: returns the reverse property of a relation, or None.
        final: whether the last node is an answer (True) or an inner node (False).
        end: the last node; None for a new variable.
        prefix: the prefix of the variables of inner nodes.
    """
    nodes: list[Node] = [topic, *(Variable(f"{prefix}{index}") for index in range(1, len(steps) + 1))]
    if steps and (end or final):
        nodes[-1] = end or Variable("answer")
    different: list[tuple[Node, Node]] = []
    if rule == "topic-never":
        different = [(node, topic) for node in nodes[1:]]
    elif rule == "topic-not-end" and final and steps:
        different = [(nodes[-1], topic)]
    elif rule == "no-return":
        pairs = zip(nodes, nodes[2:], steps, steps[1:])
        different = [(after, before) for before, after, one, two in pairs if returns(two, one, inverse)]
    return PathPattern(tuple(nodes), edges_along(steps, nodes), tuple(different))


def edges_along(steps: Sequence[Step], nodes: Sequence[Node]) -> tuple[Edge, ...]:
    """Return one triple pattern for each step, between a node and the next."""
    return tuple(
        (here, Entity(step.relation), there) if step.direction == "out" else (there, Entity(step.relation), here)
        for step, here, there in zip(steps, nodes, nodes[1:])
    )


# --- text


def term_list(terms: Iterable[object]) -> str:
    """Return terms with a space before each."""
    return "".join([f" {render_term(term)}" for term in terms])


def values_clause(variable: Node, values: Iterable[object]) -> str:
    """Return a VALUES clause for one variable."""
    return f"VALUES {render_term(variable)} {{{term_list(values)} }}"


def edges_text(edges: Iterable[Edge]) -> str:
    """Return triple patterns, one a line."""
    return "\n".join([f" {term_list(edge)} ." for edge in edges])


def pattern_text(walk: PathPattern, *, nested: bool = True) -> str:
    """Return the pattern of a path.

    At hubs the number of walks multiplies with every hop, but the number of distinct nodes does not. The last hop needs
    no subquery. Neither does the first hop, because the nodes to which one relation leads from the topic are distinct
    already.

    Args:
        nested: whether subqueries make the nodes of each hop distinct. Otherwise the pattern is that of complete walks,
            without restrictions.
    """
    lines: list[str] = []
    for at, node in enumerate(walk.nodes[1:], start=1):
        lines += _walk_lines(walk.edges[at - 1 : at], [pair for pair in walk.different if pair[0] == node])
        lines += [line for place, join in walk.joins if place == at for line in _walk_lines(join.edges, join.different)]
        lines += [text for place, text in walk.conditions if place == at]
        lines += [_selection(node, chosen) for place, chosen in walk.restricted if nested and place == at]
        if nested and 1 < at < len(walk.edges):
            later = {right for left, right in walk.different if left in walk.nodes[at + 1 :]}
            needed = [each for each in walk.nodes[1:at] if each in later or each in walk.kept]
            inner = "\n".join(lines).replace("\n", "\n  ")
            lines = [f"  {{ SELECT DISTINCT{term_list([*needed, node])} WHERE {{", f"  {inner}", "  } }"]
    return "\n".join([*lines, *walk.not_mediator])


def _walk_lines(edges: Sequence[Edge], different: Iterable[tuple[Node, Node]]) -> Iterator[str]:
    yield edges_text(edges)
    for left, right in different:
        yield f"  FILTER({render_term(left)} != {render_term(right)})"


def _selection(node: Node, chosen: Sequence[Entity]) -> str:
    if len(chosen) == 1:
        return f"  {values_clause(node, chosen)}  # inner entity selected by a model"
    # in a list of IRIs, Virtuoso converts them to numbers or dates with some plans, and fails, if the data has a number
    # or a date in their place
    texts = ", ".join([f"STR({render_term(entity)})" for entity in chosen])
    name = render_term(node)
    return f"  FILTER(isIRI({name}) && STR({name}) IN ({texts}))  # inner entities selected by a model"
