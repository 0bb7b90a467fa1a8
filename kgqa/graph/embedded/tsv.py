"""Decodes SPARQL results in TSV (SPARQL 1.1 Query Results CSV and TSV Formats, section 4) to typed terms."""

from __future__ import annotations

import functools
import re

from kgqa.graph.store import Rows
from kgqa.model import XSD_STRING, Entity, Literal, Value

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
