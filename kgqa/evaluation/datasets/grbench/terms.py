"""IRIs and literals of a converted graph, as text of N-Triples."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any
from urllib.parse import quote

BASE = "urn:grbench:"
TYPE, LINK, FEATURE, ORDER = f"{BASE}type:", f"{BASE}link:", f"{BASE}feature:", f"{BASE}order:"
DEGREE = f"{BASE}degree:"
"""The predicates from a node to the length of a list of neighbours that has ids of no node, or ids twice."""
DOMAIN = f"{BASE}nodes"
"""The predicate from a graph to its number of nodes; it identifies converted graphs."""
RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
OWL, XSD = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2001/XMLSchema#"
LABEL_CHARS = 300
_SAFE = "-._~:@!$&'()*+,;="
_PLAIN = re.compile(r"[A-Za-z0-9\-._~:@!$&'()*+,;=]*")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,15})\.[0-9]{1,15}")


def local(text: str) -> str:
    """Return an id or a name as a part of an IRI."""
    return text if _PLAIN.fullmatch(text) else quote(text.encode("utf-8", "replace"), safe=_SAFE)


@lru_cache
def predicate(base: str, text: str) -> str:
    """Return the IRI of a link, feature, type or order, with `_` for spaces."""
    return f"<{base}{local(text.replace(' ', '_'))}>"


def literal(text: str) -> str:
    """Return a text as a literal."""
    return encode_basestring(text if "\0" not in text else text.replace("\0", ""))


def texts_of(value: Any) -> Iterator[str]:
    """Yield the values of a feature as text; empty texts, null and NaN are left out."""
    if isinstance(value, str):
        if value and not value.isspace():
            yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)
    elif isinstance(value, dict):
        if value:
            yield json.dumps(value, ensure_ascii=False)
    elif isinstance(value, bool) or (isinstance(value, (int, float)) and math.isfinite(value)):
        yield json.dumps(value)


def number_literal(text: str) -> str:
    """Return a text as a number if it is one that is written as usual, else as a text."""
    if _INTEGER.fullmatch(text):
        return f'"{text}"^^<{XSD}integer>'
    if _DECIMAL.fullmatch(text):
        return f'"{text}"^^<{XSD}decimal>'
    return literal(text)


def label_text(text: str) -> str:
    """Return the beginning of a main feature as a label of one line."""
    return " ".join(text[: 4 * LABEL_CHARS].split())[:LABEL_CHARS].rstrip()
