"""Reads the replies of a SPARQL server: the typed terms of a complete result, or the error to raise.

Servers may send an incomplete result with status 200. Some report this in a header (Virtuoso, at its row cap and at its
"anytime" timeout; this timeout also makes counts wrong). Some report it after the rows that they have already sent
(QLever, Blazegraph). Some do not report it.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import lru_cache
from itertools import dropwhile, pairwise, takewhile
from typing import Any, TypeVar
from typing import Literal as OneOf

import msgspec

from kgqa.errors import (
    DamagedResult,
    LoginRefused,
    PartialResult,
    QueryRejected,
    RowCapMet,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from kgqa.graph.endpoint.options import Profile, reply_signs
from kgqa.graph.query.tokens import solid_tokens
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
"""Reads a result from the body and the headers of a reply, which are found by lower-case name."""
LOGIN = "Check the setting endpoint.user and the password: kgqa keys set URL, or KGQA_ENDPOINT_PASSWORD."
_AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])
_JSON_TYPES = ("", "application/sparql-results+json", "application/json", "text/json")
_ANY = range(600)
_FAULTS: tuple[tuple[Collection[int], str, type[StoreError], str, str], ...] = (
    ((206,), "", PartialResult, "The server sent only a part of the result ({status}).", "Narrow the query."),
    ((408, 504), "", StoreTimeout, "The server ran out of time ({status}).{quoted}", ""),
    (_ANY, "timeout_texts", StoreTimeout, "The server ran out of time ({status}).{quoted}", ""),
    ((401, 403), "", LoginRefused, "{url} refuses access ({status}).{quoted}", LOGIN),
    (
        _ANY,
        "denied_texts",
        LoginRefused,
        "{url} does not allow this user to run this request ({status}).{quoted}",
        f"{LOGIN} To write, a Virtuoso user needs the right SPARQL_UPDATE.",
    ),
    (range(200, 300), "", StoreUnavailable, "{url} sent no result ({status}).", CHECK_ADDRESS),
    (range(300, 400), "", StoreUnavailable, "{url} has moved ({status}){location}.", "Use the new address."),
    (
        (404, 405, 410),
        "",
        StoreUnavailable,
        "No SPARQL endpoint at {url} ({status}).",
        "Check the path; on Virtuoso it is /sparql.",
    ),
    (
        (406, 415),
        "",
        StoreUnavailable,
        "{url} sends no results as JSON, or accepts no forms ({status}).{quoted}",
        "Use another server.",
    ),
    (
        (413, 414),
        "",
        QueryRejected,
        "The query is too long for the server ({status}).",
        "Split it into shorter queries.",
    ),
    (
        (429,),
        "",
        StoreUnavailable,
        "{url} received too many requests ({status}).{quoted}",
        "Try again later, or lower endpoint.concurrency or endpoint.rate.",
    ),
    ((502, 503), "", StoreUnavailable, "{url} cannot answer now ({status}).{quoted}", "Try again later."),
)
"""The errors for replies without a result: statuses, the attribute of profiles that lists texts one of which the reply
contains (empty for any text), class, message and hint. The first that fits holds."""


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
    body = body.removeprefix(BOM_UTF8)
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
    **dict.fromkeys(
        [_XSD + name for name in ("gYear", "gYearMonth", "date", "dateTime")],
        lambda text: _SHORT_YEAR.sub(lambda year: f"-{year[1]:0>4}", text),
    ),
}


def _not_a_result(detail: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"The server sent JSON that is not a SPARQL result ({clean(detail)[:100]}).",
        CHECK_ADDRESS,
    )


def reply_error(
    status: int,
    headers: Mapping[str, str],
    body: str,
    profile: Profile,
    url: str,
    *,
    query: str = "",
    is_update: bool = False,
) -> StoreError | None:
    """Return the error for the status and headers of a reply; None if the reply is a result.

    Args:
        headers: the headers, which are found by lower-case name.
        body: the beginning of the body; not needed if the reply to a query has status 200.
        query: the query or update that was sent. Its words are ignored in error messages, because servers repeat them.
    """
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_page = "html" in content_type
    if any(sign in headers for sign in reply_signs(profile, "timeout_headers")):
        return StoreTimeout(
            "The server ended the query at its time limit and sent an incomplete result, which is not used.",
            "Narrow the query.",
        )
    if is_update and status in (200, 201, 202, 204) and not is_page:
        return None
    if status == 200:
        if content_type in _JSON_TYPES:
            return None
        what = "a web page" if is_page else clean(content_type)[:60]
        return StoreUnavailable(f"{url} sent {what}, not a SPARQL result.", CHECK_ADDRESS)
    if status == 500 and body.lstrip()[:1] == "{" and '"bindings"' in body:
        # Virtuoso sends this status with part of the rows when it runs out of time while sending
        return StoreTimeout("The server ran out of time while sending the result (HTTP 500).", "Narrow the query.")
    text = error_text(body, query)
    quoted = f" The server says: {text[:300]}" if text else ""
    location = f" to {clean(headers['location'])[:200]}" if headers.get("location") else ""
    for statuses, signs, kind, message, hint in _FAULTS:
        if status in statuses and (not signs or has_sign(text, profile, signs)):
            error = kind(message.format(status=f"HTTP {status}", url=url, quoted=quoted, location=location), hint)
            if isinstance(error, LoginRefused):
                error.status = status
            return error
    if is_page and status != 400:
        return StoreUnavailable(f"{url} sent an error page (HTTP {status}).{quoted}", CHECK_ADDRESS)
    return QueryRejected(f"The server rejects the {'update' if is_update else 'query'} (HTTP {status}).{quoted}")


def has_sign(text: str, profile: Profile, kind: str) -> bool:
    """Return whether a text contains one of those that `reply_signs` returns."""
    lower = text.lower()
    return any(sign in lower for sign in reply_signs(profile, kind))


def error_text(body: str, query: str) -> str:
    """Extract a server's error message, in one line, without the query that the message repeats."""
    if body.lstrip()[:1] == "{":
        try:
            fields = json.loads(body)
            body = str(fields.get("exception") or fields.get("message") or fields.get("error") or "")
        except (ValueError, RecursionError, AttributeError):
            pass
    body = body.replace(query, "")
    # Virtuoso repeats the query at the end of its message, with different white space
    return clean(re.sub(r"<[^>]*>", " ", body.partition("SPARQL query:")[0]))


def check_complete(rows: Rows, query: str, profile: Profile, caps: Iterable[int], headers: Mapping[str, str]) -> None:
    """Check that the result in a reply with status 200 is complete.

    Args:
        caps: known row caps of the server, in addition to the caps in its profile.
        headers: the headers of the reply.

    Raises:
        RowCapMet: the number of rows equals a known row cap, or a header reports a cap. Not raised if the query's LIMIT
            equals the number of rows.
        StoreTimeout: there is no row, although an aggregate without GROUP BY always gives one row.
    """
    count = len(rows)
    announced = [headers[name].strip() for name in reply_signs(profile, "truncation_headers") if name in headers]
    known = {*profile.row_caps, *caps, *(int(cap) for cap in announced if re.fullmatch(r"[0-9]{1,15}", cap))}
    if ((count and count in known) or announced) and ("LIMIT", str(count)) not in pairwise(_outer_words(query)):
        raise RowCapMet(
            f"The server cut the result at its row cap of {count:,} rows.",
            "Narrow the query, or raise the cap (Virtuoso: kgqa virtuoso start --row-cap 1000000, or ResultSetMaxRows "
            "in virtuoso.ini).",
            variables=rows.variables,
            cap=count,
        )
    if count == 0 and selection(query)[1] and not {"GROUP", "HAVING"} & set(_outer_words(query)):
        raise StoreTimeout("The server ran out of time: it sent no row as the result of a count.", "Narrow the query.")


@lru_cache(maxsize=256)
def selection(query: str) -> tuple[tuple[str, ...], bool]:
    """Return the variables that a query selects, in order, and whether it selects only aggregates.

    No variables are returned for `SELECT *`, and if an expression has no name, because servers make up a name then.
    """
    words = (token.text for token in solid_tokens(query))
    head = takewhile(
        lambda text: text != "{" and text.upper() not in ("WHERE", "FROM"),
        dropwhile(lambda text: text.upper() != "SELECT", words),
    )
    items: list[list[str]] = []  # a variable or a word, or all of an expression in brackets
    depth = 0
    for text in list(head)[1:]:
        if depth == 0 and text.upper() in ("DISTINCT", "REDUCED"):
            continue
        if depth == 0:
            items.append([])
        items[-1].append(text)
        depth += {"(": 1, ")": -1}.get(text, 0)
    plain = [len(item) == 1 and item[0][0] in "?$" for item in items]
    named = [len(item) > 3 and item[-3].upper() == "AS" for item in items]
    names = (item[0] if alone else item[-2] for item, alone in zip(items, plain))
    aggregates = any(text.upper() in _AGGREGATES for item in items for text in item)
    # Virtuoso groups by a variable that stands alone
    complete = all(alone or has_name for alone, has_name in zip(plain, named))
    return tuple(name[1:] for name in names) if complete else (), aggregates and not any(plain)


def _outer_words(query: str) -> list[str]:
    """Return the words and numbers of a query outside its braces, in upper case."""
    depth, words = 0, []
    for token in solid_tokens(query):
        if token.kind == "mark":
            depth += {"{": 1, "}": -1}.get(token.text, 0)
        elif depth == 0 and token.kind in ("word", "number"):
            words.append(token.text.upper())
    return words
