"""Decodes SPARQL results in TSV (SPARQL 1.1 Query Results CSV and TSV Formats, section 4) to typed terms."""

from __future__ import annotations

import re

from kgqa.graph.store import Row, Rows
from kgqa.model import XSD_STRING, Entity, Literal, Value

_XSD = "http://www.w3.org/2001/XMLSchema#"
_LITERAL = re.compile(r'"((?:[^"\\]|\\[tnrbf"\\]|\\u[0-9A-F]{4})*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?\Z', re.DOTALL)
_ESCAPE = re.compile(r'\\([tnrbf"\\]|u[0-9A-F]{4})')
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\"}


def decode_tsv(data: bytes | bytearray | memoryview) -> Rows:
    """Decode a complete TSV result.

    Raises:
        ValueError: the data is not a valid table.
    """
    header, _, body = str(data, "utf-8").partition("\n")
    variables = tuple(name.lstrip("?") for name in header.split("\t")) if header else ()
    rows: list[Row] = []
    if body:
        if not body.endswith("\n"):
            raise ValueError("the result ends in the middle of a row")
        # not splitlines(): literals may contain other Unicode line breaks
        lines = body[:-1].split("\n")
        seen: dict[str, Entity] = {}
        append = rows.append
        width = max(len(variables), 1)  # without variables each row is an empty line
        for line in lines:
            row: list[Value | None] = []
            for field in line.split("\t"):
                if field[:1] == "<":
                    entity = seen.get(field)
                    if entity is None:
                        if field[-1] != ">" or field[1:2] == "<":
                            raise ValueError(f"not an IRI: {field[:80]}")
                        entity = seen[field] = Entity(field[1:-1])
                    row.append(entity)
                else:
                    row.append(decode_term(field))
            if len(row) != width:
                raise ValueError(f"a row has {len(row)} columns where the header has {len(variables)}")
            append(tuple(row) if variables else ())
    return Rows(variables, rows)


def decode_term(field: str) -> Value | None:
    """Decode one field of a row, or a term in N-Triples; None if it is empty. Raises ValueError."""
    if not field:
        return None
    if field[0] == '"':
        match = _LITERAL.match(field)
        if not match:
            raise ValueError(f"not a literal: {field[:80]}")
        text = match[1]
        if "\\" in text:
            text = _ESCAPE.sub(lambda m: _PLAIN.get(m[1]) or chr(int(m[1][1:], 16)), text)
        return Literal(text, match[3] or XSD_STRING, match[2] or "")
    if field in ("true", "false"):
        return Literal(field, _XSD + "boolean")
    if field.startswith("_:"):
        return Entity(field)
    if re.fullmatch(r"[+-]?[0-9]+", field):
        return Literal(field, _XSD + "integer")
    if re.fullmatch(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)", field):
        return Literal(field, _XSD + "decimal")
    if re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+", field):
        return Literal(field, _XSD + "double")
    if field[0] == "<" and field[-1] == ">":
        return Entity(field[1:-1])
    raise ValueError(f"not an RDF term: {field[:80]}")
