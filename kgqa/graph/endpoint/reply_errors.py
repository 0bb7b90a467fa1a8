"""Classifies the replies of a SPARQL server: a complete result, or the error to raise.

Servers may send an incomplete result with status 200. Some report this in a header (Virtuoso, at its row cap and at its
"anytime" timeout; this timeout also makes counts wrong). Some report it after the rows that they have already sent
(QLever, Blazegraph). Some do not report it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

from kgqa.errors import (
    LoginRefused,
    PartialResult,
    QueryRejected,
    RowCapMet,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from kgqa.graph.endpoint.profiles import Profile, reply_signs
from kgqa.graph.query.tokens import tokens
from kgqa.graph.store import Rows
from kgqa.text.words import clean

RAISE_CAP = (
    "Narrow the query, or raise the cap (Virtuoso: kgqa virtuoso start --row-cap 1000000, or ResultSetMaxRows in "
    "virtuoso.ini)."
)
NARROW_QUERY = "Narrow the query, add a LIMIT, or raise the server's own limits."
LOGIN = "Check the setting endpoint.user and the password: kgqa keys set URL, or KGQA_ENDPOINT_PASSWORD."
QUOTED_CHARS = 300
_JSON_TYPES = ("application/sparql-results+json", "application/json", "text/json")
_AGGREGATE_CALL = re.compile(r"\b(?:COUNT|SUM|MIN|MAX|AVG|SAMPLE|GROUP_CONCAT)\s*\(", re.IGNORECASE)
_AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])
_STATUS_ERRORS: dict[int, tuple[type[StoreError], str, str]] = {
    **dict.fromkeys(
        range(200, 300),
        (StoreUnavailable, "{url} sent no result ({}).", "Check the address of the SPARQL endpoint."),
    ),
    **dict.fromkeys(range(300, 400), (StoreUnavailable, "{url} has moved ({}){location}.", "Use the new address.")),
    **dict.fromkeys(
        (404, 405, 410),
        (StoreUnavailable, "No SPARQL endpoint at {url} ({}).", "Check the path; on Virtuoso it is /sparql."),
    ),
    **dict.fromkeys(
        (406, 415),
        (StoreUnavailable, "{url} sends no results as JSON, or accepts no forms ({}).{quoted}", "Use another server."),
    ),
    **dict.fromkeys(
        (413, 414), (QueryRejected, "The query is too long for the server ({}).", "Split it into shorter queries.")
    ),
    **dict.fromkeys((429, 502, 503), (StoreUnavailable, "{url} cannot answer now ({}).{quoted}", "Try again later.")),
}
"""The class, message and hint of the error for each status; {} stands for the status."""


def reply_error(
    status: int, headers: Mapping[str, str], body: str, profile: Profile, url: str, *, query: str = ""
) -> StoreError | None:
    """Return the error for the status and headers of a reply; None if the reply is a result.

    Args:
        headers: the values of the headers by lower-case name.
        body: the beginning of the body, if the status is not 200.
        query: the query that was sent. Its words are ignored in error messages, because servers repeat the query there.
    """
    if reply_signs(profile, "timeout_headers") & headers.keys():
        return StoreTimeout(
            "The server ended the query at its time limit and sent an incomplete result, which is not used.",
            "Narrow the query.",
        )
    if status == 206:
        return PartialResult("The server sent only a part of the result (HTTP 206).", NARROW_QUERY)
    if status != 200:
        if status == 500 and body.lstrip()[:1] == "{" and '"bindings"' in body:
            # Virtuoso sends this status with part of the rows when it runs out of time while sending
            return StoreTimeout("The server ran out of time while sending the result (HTTP 500).", "Narrow the query.")
        return _status_error(status, headers, error_text(body, query), profile, url)
    content_type = _content_type(headers)
    if content_type and content_type not in _JSON_TYPES:
        what = "a web page" if "html" in content_type else clean(content_type)[:60]
        return StoreUnavailable(f"{url} sent {what}, not a SPARQL result.", "Check the address of the SPARQL endpoint.")
    return None


def is_transient(body: str, profile: Profile, *, query: str) -> bool:
    """Return whether an error is a conflict with another transaction; then the same query may succeed later."""
    text = error_text(body, query).lower()
    return any(sign in text for sign in reply_signs(profile, "retry_texts"))


def update_error(
    status: int, headers: Mapping[str, str], body: str, profile: Profile, url: str, *, query: str = ""
) -> StoreError | None:
    """Return the error for the reply to an update; None if the update succeeded. Arguments: see `reply_error`."""
    timed_out = reply_signs(profile, "timeout_headers") & headers.keys()
    if status in (200, 201, 202, 204) and "html" not in _content_type(headers) and not timed_out:
        return None
    return reply_error(status, headers, body, profile, url, query=query)


def body_error(error: StoreError, tail: bytes, profile: Profile) -> StoreError:
    """Return the error for an incomplete body: a timeout if the last bytes report a timeout, else `error`."""
    text = tail.decode("utf-8", "replace").lower()
    if any(sign in text for sign in reply_signs(profile, "timeout_texts")):
        return StoreTimeout(
            "The server ran out of time while sending the result, which is not used.", "Narrow the query."
        )
    return error


def _status_error(status: int, headers: Mapping[str, str], text: str, profile: Profile, url: str) -> StoreError:
    quoted = f" The server says: {text[:QUOTED_CHARS]}" if text else ""
    lower = text.lower()
    if status in (408, 504) or any(sign in lower for sign in reply_signs(profile, "timeout_texts")):
        return StoreTimeout(f"The server ran out of time on this query (HTTP {status}).{quoted}")
    if status in (401, 403):
        return LoginRefused(f"{url} refuses access (HTTP {status}).{quoted}", LOGIN, status=status)
    if any(sign in lower for sign in reply_signs(profile, "denied_texts")):
        return LoginRefused(
            f"{url} does not allow this user to run this request (HTTP {status}).{quoted}",
            f"{LOGIN} To write, a Virtuoso user needs the right SPARQL_UPDATE.",
            status=status,
        )
    if "html" in _content_type(headers) and status not in (400, *_STATUS_ERRORS):
        return StoreUnavailable(
            f"{url} sent an error page (HTTP {status}).{quoted}", "Check the address of the SPARQL endpoint."
        )
    location = clean(headers.get("location", ""))[:200]
    kind, message, hint = _STATUS_ERRORS.get(status, (QueryRejected, "The server rejects the query ({}).{quoted}", ""))
    places = {"url": url, "quoted": quoted, "location": f" to {location}" if location else ""}
    return kind(message.format(f"HTTP {status}", **places), hint)


def error_text(body: str, query: str) -> str:
    """Extract a server's error message, in one line, without the query that the message repeats."""
    if body.lstrip()[:1] == "{":
        try:
            fields = json.loads(body)
            body = str(fields.get("exception") or fields.get("message") or fields.get("error") or "")
        except (ValueError, RecursionError, AttributeError):
            pass
    if query:
        body = body.replace(query, "")
    # Virtuoso repeats the query at the end of its message, with different white space
    return clean(re.sub(r"<[^>]*>", " ", body.partition("SPARQL query:")[0]))


def _content_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


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
    announced = [headers[name].strip() for name in reply_signs(profile, "truncation_headers") & headers.keys()]
    known = {*profile.row_caps, *caps, *(int(cap) for cap in announced if re.fullmatch(r"[0-9]{1,15}", cap))}
    if ((count and count in known) or announced) and not outer_limit(query) == count:
        raise RowCapMet(
            f"The server cut the result at its row cap of {count:,} rows.",
            RAISE_CAP,
            variables=rows.variables,
            cap=count,
        )
    if count == 0 and is_total_aggregate(query):
        raise StoreTimeout("The server ran out of time: it sent no row as the result of a count.", "Narrow the query.")


def outer_limit(query: str) -> int | None:
    """Return the LIMIT of the outermost query; None if the query has no LIMIT."""
    words = _outer_words(query)
    limits = [int(number) for word, number in pairwise(words) if word == "LIMIT" and number.isdecimal()]
    return limits[-1] if limits else None


def is_total_aggregate(query: str) -> bool:
    """Return whether a result has exactly one row: the query selects only aggregates, without GROUP BY and HAVING."""
    if not _AGGREGATE_CALL.search(query):  # faster than reading all tokens, which can take longer than the query
        return False
    return selection(query)[1] and not {"GROUP", "HAVING"} & set(_outer_words(query))


@lru_cache(maxsize=256)
def selection(query: str) -> tuple[tuple[str, ...], bool]:
    """Return the variables that a query selects, in order, and whether it selects only aggregates.

    No variables are returned for `SELECT *`, and if an expression has no name, because servers make up a name then.
    """
    names: list[str] = []
    brackets, items, last, selects, plain, aggregates = 0, 0, "", False, False, False
    for token in tokens(query):
        word = token.text.upper()
        if token.kind in ("space", "comment"):
            continue
        if selects and (token.text == "{" or word in ("WHERE", "FROM")):
            break
        if selects and token.text == "*" and not brackets:
            return (), False
        items += selects and not brackets and word not in ("DISTINCT", "REDUCED")
        brackets += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "mark" else 0
        if selects and token.kind == "variable" and (not brackets or (brackets == 1 and last == "AS")):
            names.append(token.text[1:])
            plain = plain or not brackets  # Virtuoso groups by such a variable
        aggregates = aggregates or (token.kind == "word" and word in _AGGREGATES)
        selects = selects or (token.kind == "word" and word == "SELECT")
        last = word
    return tuple(names) if len(names) == items else (), aggregates and not plain


def _outer_words(query: str) -> list[str]:
    """Return the words and numbers of a query outside its braces, in upper case."""
    depth, words = 0, []
    for token in tokens(query):
        if token.kind == "mark":
            depth += {"{": 1, "}": -1}.get(token.text, 0)
        elif depth == 0 and token.kind in ("word", "number"):
            words.append(token.text.upper())
    return words
