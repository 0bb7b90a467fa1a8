"""Renders the SPARQL templates in queries/*.rq.

Templates take only typed RDF terms, variables, numbers and comments. A plain string raises InvalidTerm, so that text
from questions or labels never becomes part of a query unescaped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kgqa.errors import InvalidTerm
from kgqa.model import RDF_LANG_STRING, XSD_STRING, Entity, Literal

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
