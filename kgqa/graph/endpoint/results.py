"""Decodes SPARQL 1.1 Query Results JSON to typed terms, by the names of the variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar
from typing import Literal as OneOf

import msgspec

from kgqa.errors import DamagedResult, PartialResult, StoreUnavailable
from kgqa.graph.store import Row, Rows
from kgqa.model import RDF_LANG_STRING, XSD_STRING, Entity, Literal, Value
from kgqa.text.words import clean

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_SHORT_YEAR = re.compile(r"\A-([0-9]{1,3})(?![0-9])")
CHECK_ADDRESS = "Check the address of the SPARQL endpoint."
Kind = OneOf["SELECT", "ASK", "UPDATE"]
T = TypeVar("T")
ResultReader = Callable[[bytes | bytearray, Mapping[str, str]], T]
"""Reads a result from the body and the headers, by lower-case name, of a reply."""
_DATES = (_XSD + "gYear", _XSD + "gYearMonth", _XSD + "date", _XSD + "dateTime")


class _Term(msgspec.Struct):
    type: str
    value: str
    datatype: str | None = None
    language: str | None = msgspec.field(default=None, name="xml:lang")


class _Head(msgspec.Struct, frozen=True):
    vars: list[str] | None = None


class _Table(msgspec.Struct):
    bindings: list[msgspec.Raw]


class _Reply(msgspec.Struct):
    head: _Head = _Head()
    results: _Table | None = None
    boolean: bool | None = None
    status: Any = None
    exception: Any = None


_reply_decoder = msgspec.json.Decoder(_Reply)
_row_decoder = msgspec.json.Decoder(dict[str, _Term])


def decode_rows(body: bytes | bytearray, *, max_rows: int, variables: Sequence[str] = ()) -> Rows:
    """Decode the result of a SELECT query.

    Args:
        variables: the variables that the query selects; the columns have their order, and columns of other variables
            are left out. Without any, the columns are those of the result.

    Raises:
        DamagedResult: the result is truncated.
        PartialResult: the result has more than `max_rows` rows, which are not decoded, or an error beside its rows.
        StoreUnavailable: the reply is not the result of a SELECT query, lacks a variable, or has values of a variable
            that its head does not list.
    """
    reply = _decoded(body)
    names = reply.head.vars
    if names is None or reply.results is None:
        raise _not_a_result("the variables or the rows are missing")
    bindings, columns, known = reply.results.bindings, tuple(variables or names), set(names)
    if bindings and (missing := [name for name in variables if name not in known]):
        raise StoreUnavailable(
            f"The server's result lacks the variable ?{missing[0]} of the query.",
            "Check that the server supports SPARQL 1.1.",
        )
    if len(bindings) > max_rows:
        raise PartialResult(f"The result has more than {max_rows:,} rows.", "Narrow the query, or add a LIMIT.")
    seen: dict[str, Entity] = {}  # equal entities share one object

    def row(text: msgspec.Raw) -> Row:
        terms = _row_decoder.decode(text)
        if not terms.keys() <= known:
            raise _not_a_result("a row has a variable that the head does not list")
        return tuple([value(terms[name]) if name in terms else None for name in columns])

    def value(term: _Term) -> Value:
        if term.type == "uri":
            return seen.get(term.value) or seen.setdefault(term.value, Entity(term.value))
        return _other_term(term)

    with _errors():
        return Rows(columns, list(map(row, bindings)))


def decode_boolean(body: bytes | bytearray) -> bool:
    """Decode the reply to an ASK query. Raises the same errors as `decode_rows`."""
    value = _decoded(body).boolean
    if value is None:
        raise _not_a_result("the boolean is missing")
    return value


def _decoded(body: bytes | bytearray) -> _Reply:
    if body[:1000].lstrip()[:1] != b"{":
        what = "something other than a SPARQL result" if body else "an empty reply"
        raise StoreUnavailable(f"The server sent {what}.", CHECK_ADDRESS)
    with _errors():
        reply = _reply_decoder.decode(body)
    if reply.exception or str(reply.status).upper() == "ERROR":
        raise PartialResult(
            f"The server reports an error beside its result, which is not used: {clean(str(reply.exception))[:200]}",
            "Narrow the query.",
        )
    return reply


@contextmanager
def _errors() -> Iterator[None]:
    """Raise the errors of `decode_rows` for those of the decoder."""
    try:
        yield
    except (msgspec.ValidationError, RecursionError) as error:
        raise _not_a_result(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedResult(
            f"The server's reply is truncated or damaged ({clean(str(error))[:100]}) and is not used.",
            "Try again, or narrow the query.",
        ) from error


def _other_term(term: _Term) -> Value:
    if term.type == "bnode":
        # queries can contain Virtuoso's blank nodes
        return Entity(term.value if term.value.startswith("nodeID://") else "_:" + term.value.removeprefix("_:"))
    if term.type not in ("literal", "typed-literal"):
        raise _not_a_result(f"unknown type of term {term.type[:40]!r}")
    if term.language or term.datatype in (None, "", XSD_STRING, RDF_LANG_STRING):
        return Literal(term.value, XSD_STRING, (term.language or "").lower())  # language tags are case-insensitive
    return Literal(canonical_text(term.value, term.datatype), term.datatype)


def canonical_text(text: str, datatype: str) -> str:
    """Rewrite the text of a literal to the form that the embedded engine uses, if its datatype requires this.

    Virtuoso writes booleans as 1 and 0, large doubles as 1e+10, and the year 44 BC as -044. Without rewriting, the same
    value would be a different answer in each store.
    """
    canonical = _CANONICAL.get(datatype)
    return canonical(text) if canonical else text


def _number(text: str) -> str:
    if not _NUMBER.fullmatch(text):
        return text  # NaN, INF, or malformed
    number = float(text)
    if number in (float("inf"), float("-inf")):
        return "INF" if number > 0 else "-INF"
    return format(Decimal(repr(number)).normalize(), "f")


_CANONICAL: dict[str, Callable[[str], str]] = {
    _XSD + "boolean": lambda text: {"1": "true", "0": "false"}.get(text, text),
    **dict.fromkeys((_XSD + "double", _XSD + "float"), _number),
    **dict.fromkeys(_DATES, lambda text: _SHORT_YEAR.sub(lambda year: f"-{year[1]:0>4}", text)),
}


def _not_a_result(detail: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"The server sent JSON that is not a SPARQL result ({clean(detail)[:100]}).",
        CHECK_ADDRESS,
    )
