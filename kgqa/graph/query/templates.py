"""Renders the SPARQL templates in queries/*.rq.

Templates take only typed RDF terms, variables, numbers and comments. A plain string raises InvalidTerm, so that text
from questions or labels never becomes part of a query unescaped.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kgqa.errors import InvalidTerm
from kgqa.graph.store import Rows
from kgqa.model import RDF_LANG_STRING, XSD_STRING, Entity, Literal, Value

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
