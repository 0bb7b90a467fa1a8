"""IRIs and literals of a corpus as N-Triples text, in the form in which the embedded store keeps them."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from urllib.parse import quote

import pyoxigraph as ox

from kgqa.corpus.rdf.vocabulary import XSD
from kgqa.graph.query.text import decode_term
from kgqa.graph.rdf.lines import stored_line
from kgqa.model import Triple
from kgqa.model.terms import RDF_LANG_STRING, XSD_STRING, Entity, Literal, Value

_PLAIN_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[A-Za-z0-9\-._~:/?@!$&'()*+,;=]*")
_NOT_IN_IRIS = re.compile('[\\x00-\\x20<>"{}|^`\\\\\x7f-\x9f\ud800-\udfff]|%(?![0-9A-Fa-f]{2})')
_ESCAPED = re.compile('["\\\\\\x00-\\x1f\x7f\ud800-\udfff\ufffe\uffff]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_LANGUAGE = re.compile(r"[a-z]{1,8}(?:-[a-z0-9]{1,8})*")
_YEAR, _MONTH, _ZONE = r"(-?[0-9]{4,9})", r"(0[1-9]|1[0-2])", r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_DAY = r"(?P<year>-?[0-9]{4,9})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_FORMS = {
    name: re.compile(form, re.ASCII)
    for name, form in {
        "integer": r"[+-]?[0-9]+",
        "decimal": r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)",
        "double": r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
        "boolean": "true|false|0|1",
        "gYear": _YEAR + _ZONE,
        "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}",
        "date": _DAY + _ZONE,
        "dateTime": _DAY + r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?" + _ZONE,
    }.items()
}
"""The texts that are allowed as values of some datatypes of XML Schema."""
_INTEGER = f'"^^<{XSD}integer>'
_DECIMAL = f'"^^<{XSD}decimal>'


@lru_cache(1 << 16)
def iri_term(iri: str) -> str:
    """Return `<iri>`. Characters that no IRI contains are percent-encoded.

    Raises:
        ValueError: the text is not an absolute IRI.
    """
    if _PLAIN_IRI.fullmatch(iri):
        return f"<{iri}>"
    fixed = _NOT_IN_IRIS.sub(lambda match: quote(match[0].encode("utf-8", "replace"), safe=""), iri)
    ox.NamedNode(fixed)  # raises ValueError
    return f"<{fixed}>"


def is_iri(text: str) -> bool:
    """Return whether a text is an absolute IRI, or can be written as one."""
    try:
        iri_term(text)
    except ValueError:
        return False
    return True


def text_term(text: str) -> str:
    """Return a string literal; U+FFFD replaces the characters that RDF has no room for."""
    return f'"{_ESCAPED.sub(_escape, text)}"' if _ESCAPED.search(text) else f'"{text}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\0" or "\ud800" <= char <= "\udfff":
        return "\ufffd"
    return _ESCAPES.get(char) or f"\\u{ord(char):04X}"


def integer_term(value: int) -> str:
    """Return an integer literal."""
    return f'"{value}{_INTEGER}'


@lru_cache(1 << 12)
def decimal_term(value: float) -> str:
    """Return a decimal literal with up to four decimal places."""
    return f'"{f"{value:.4f}".rstrip("0").rstrip(".")}{_DECIMAL}'


def value_term(value: Value) -> str:
    """Return the term of an entity, or of a literal from `stored_value`."""
    if isinstance(value, Entity):
        return iri_term(value.iri)
    text = text_term(value.value)
    if value.language:
        return f"{text}@{value.language}"
    return text if value.datatype == XSD_STRING else f"{text}^^<{value.datatype}>"


@lru_cache(1 << 16)
def stored_value(value: Literal) -> Literal:
    """Return a literal in the form in which a query returns it: numbers and dates by value, languages in lower case.

    A language or datatype that is not valid is left out, and so is the datatype of a value that it does not allow:
    servers reject such values, or change them.
    """
    language, datatype = value.language.lower(), value.datatype
    if language or datatype == RDF_LANG_STRING:
        plain = Literal(value.value, language=language if _LANGUAGE.fullmatch(language) else "")
    elif is_iri(datatype) and _is_allowed(value.value, datatype):
        plain = Literal(value.value, iri_term(datatype)[1:-1])
    else:
        plain = Literal(value.value)
    node = "<urn:kgqa:x>"
    line = stored_line(f"{node} {node} {value_term(plain)} .\n".encode()).decode()
    found = decode_term(line[len(node) * 2 + 2 : -3])
    assert isinstance(found, Literal)
    return found


def _is_allowed(text: str, datatype: str) -> bool:
    form = _FORMS.get(datatype.removeprefix(XSD)) if datatype.startswith(XSD) else None
    match = form.fullmatch(text) if form else None
    if not match or not match.groupdict():
        return form is None or match is not None
    try:  # whether there is such a day; the calendar repeats after 400 years
        date(2000 + int(match["year"]) % 400, int(match["month"]), int(match["day"]))
    except ValueError:
        return False
    return True


def triple_of(text: str) -> Triple:
    """Read a triple from its three terms, separated by single spaces."""
    subject, relation, value = text.split(" ", 2)
    found = decode_term(value)
    assert found is not None
    return Triple(Entity(subject[1:-1]), relation[1:-1], found)
