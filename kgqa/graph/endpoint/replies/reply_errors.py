"""What a reply of a SPARQL server is worth: a whole result, or the error that says why it is none.

A short answer is never passed off as a whole one. Servers cut answers with status 200 and say so, if at all, in a header
(FACTS of this project: Virtuoso's row cap and its "anytime" timeout, which gives wrong counts too) or behind what they
have already sent (QLever, Blazegraph).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from kgqa.errors import (
    LoginRefused,
    PartialResult,
    QueryRejected,
    RowCapMet,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from kgqa.graph.endpoint.profiles import Profile, Signs, signs
from kgqa.graph.query.tokens import tokens
from kgqa.graph.store import Rows
from kgqa.words import clean

RAISE_CAP = (
    "Raise its row cap (Virtuoso: kgqa virtuoso start --row-cap 1000000, or ResultSetMaxRows in virtuoso.ini), or ask for "
    "less."
)
ASK_FOR_LESS = "Ask for less, use LIMIT, or raise the server's own limits."
LOGIN = "Set or correct endpoint.user, and the password in KGQA_ENDPOINT_PASSWORD."
QUOTED_CHARS = 300
_JSON_TYPES = ("application/sparql-results+json", "application/json", "text/json")
_AGGREGATE = re.compile(r"\b(?:COUNT|SUM|MIN|MAX|AVG|SAMPLE|GROUP_CONCAT)\s*\(", re.IGNORECASE)
_AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])


def judge(
    status: int, headers: Mapping[str, str], body: str, profile: Profile, url: str, *, query: str = ""
) -> StoreError | None:
    """What is wrong with a reply by its status and headers, None for nothing.

    Args:
        headers: by lower-case name. body: the beginning of it, where the status is not 200.
        query: what was asked: servers repeat it in their errors, where it is not what they have to say.
    """
    if signs(profile).late_headers & headers.keys():
        return StoreTimeout(
            "The server stopped the query at its time limit and gave what it had. Nothing of it is used. Ask for less."
        )
    if status == 206:
        return PartialResult(f"The server sent a part of the result (HTTP 206). {ASK_FOR_LESS}")
    if status != 200:
        if status == 500 and _begins_as_result(body):
            # Virtuoso sends the rows it had, when it runs out of time while sending
            return StoreTimeout("The server ran out of time while it was sending (HTTP 500). Ask for less.")
        return _failure(status, headers, said_in(body, query), signs(profile), url)
    kind = _kind(headers)
    if kind and kind not in _JSON_TYPES:
        what = "a web page" if "html" in kind else clean(kind)[:60]
        return StoreUnavailable(f"{url} answered with {what}, not with a SPARQL result: is this its SPARQL address?")
    return None


def may_pass(body: str, profile: Profile, *, query: str) -> bool:
    """Whether an error is about this moment, not about the query: another transaction was in its way."""
    said = said_in(body, query).lower()
    return any(sign in said for sign in signs(profile).retry_texts)


def judge_update(
    status: int, headers: Mapping[str, str], body: str, profile: Profile, url: str, *, query: str = ""
) -> StoreError | None:
    """What is wrong with the reply to an update, None for nothing. Arguments as for `judge`."""
    late = signs(profile).late_headers & headers.keys()
    if status in (200, 201, 202, 204) and "html" not in _kind(headers) and not late:
        return None
    return judge(status, headers, body, profile, url, query=query)


def broken_result(error: StoreError, tail: bytes, profile: Profile) -> StoreError:
    """The error of a body that is no whole result, seen by its last bytes: servers that run out of time while they are
    sending say so there.
    """
    text = tail.decode("utf-8", "replace").lower()
    if any(sign in text for sign in signs(profile).late_texts):
        return StoreTimeout("The server ran out of time while it was sending. Nothing of it is used. Ask for less.")
    return error


def _failure(status: int, headers: Mapping[str, str], said: str, known: Signs, url: str) -> StoreError:
    quoted = f" It says: {said[:QUOTED_CHARS]}" if said else ""
    lower = said.lower()
    if status in (408, 504) or any(sign in lower for sign in known.late_texts):
        return StoreTimeout(f"The server ran out of time on this query (HTTP {status}).{quoted}")
    if status in (401, 403):
        return LoginRefused(f"{url} does not let you in (HTTP {status}).{quoted} {LOGIN}", status=status)
    if any(sign in lower for sign in known.denied_texts):
        return LoginRefused(
            f"{url} does not let this user do that (HTTP {status}).{quoted} {LOGIN} On Virtuoso the user needs the right "
            "SPARQL_UPDATE to write.",
            status=status,
        )
    if 300 <= status < 400:
        place = clean(headers.get("location", ""))[:200]
        return StoreUnavailable(
            f"{url} has moved (HTTP {status}){' to ' + place if place else ''}. Give the new address."
        )
    if status in (404, 405, 410):
        return StoreUnavailable(f"There is no SPARQL service at {url} (HTTP {status}). Virtuoso's ends in /sparql.")
    if status in (406, 415):
        return StoreUnavailable(
            f"{url} has no results in JSON (HTTP {status}), or takes no forms.{quoted} Ask another server."
        )
    if status in (429, 502, 503):
        return StoreUnavailable(f"{url} cannot answer now (HTTP {status}).{quoted} Try again later.")
    if status in (413, 414):
        return QueryRejected(f"The query is too long for the server (HTTP {status}). Ask about less at once.")
    if "html" in _kind(headers) and status != 400:
        return StoreUnavailable(
            f"{url} answered with an error page (HTTP {status}).{quoted} See whether this is its SPARQL address."
        )
    if 200 <= status < 300:
        return StoreUnavailable(f"{url} sent no result (HTTP {status}). See whether this is its SPARQL address.")
    return QueryRejected(f"The server refuses the query (HTTP {status}).{quoted}")


def said_in(body: str, query: str) -> str:
    """What a server says of an error, in one line, without the query that it repeats."""
    if body.lstrip()[:1] == "{":
        try:
            told = json.loads(body)
            body = str(told.get("exception") or told.get("message") or told.get("error") or "")
        except (ValueError, RecursionError, AttributeError):
            pass
    if query:
        body = body.replace(query, "")
    # Virtuoso repeats it at the end, with white space of its own
    return clean(re.sub(r"<[^>]*>", " ", body.partition("SPARQL query:")[0]))


def _begins_as_result(body: str) -> bool:
    return body.lstrip()[:1] == "{" and '"bindings"' in body


def _kind(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def check_whole(
    rows: Rows, query: str, profile: Profile, caps: Iterable[int], headers: Mapping[str, str] | None = None
) -> None:
    """Look whether a table with status 200 was cut all the same.

    Args:
        caps: row counts at which the server is known to cut, on top of its profile's. headers: those of the reply.

    Raises:
        RowCapMet: exactly as many rows as a cap, without having been asked for, or a header that says so.
        StoreTimeout: an aggregate over everything without a row, which always has one.
    """
    count = len(rows)
    said = [headers[name].strip() for name in signs(profile).short_headers & headers.keys()] if headers else []
    known = {*profile.row_caps, *caps, *(int(cap) for cap in said if re.fullmatch(r"[0-9]{1,15}", cap))}
    if ((count and count in known) or said) and not outer_limit(query) == count:
        raise RowCapMet(
            f"The server cut the result at its row cap, {count:,} rows. {RAISE_CAP}",
            variables=rows.variables,
            cap=count,
        )
    if count == 0 and aggregates_all(query):
        raise StoreTimeout("The server gave no row for a count, which it does when it ran out of time. Ask for less.")


def outer_limit(query: str) -> int | None:
    """The LIMIT of a query as a whole, None where it has none."""
    depth, found, after = 0, None, False
    for token in tokens(query):
        if token.kind in ("space", "comment"):
            continue
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "mark" else 0
        if after and token.text.isdecimal():
            found = int(token.text)
        after = depth == 0 and token.kind == "word" and token.text.upper() == "LIMIT"
    return found


def aggregates_all(query: str) -> bool:
    """Whether a query as a whole aggregates over everything: no GROUP BY, no HAVING, nothing but aggregates selected."""
    if not _AGGREGATE.search(query):  # most queries: reading all tokens takes longer than many a query
        return False
    braces, brackets, selected, aggregates = 0, 0, None, False
    for token in tokens(query):
        if token.kind == "mark":
            braces += {"{": 1, "}": -1}.get(token.text, 0)
            brackets += {"(": 1, ")": -1}.get(token.text, 0)
        if braces:
            selected = selected and "read"
            continue
        word = token.text.upper() if token.kind == "word" else ""
        if word in ("GROUP", "HAVING"):
            return False
        if word == "SELECT" and selected is None:
            selected = "reading"
        elif word in ("WHERE", "FROM"):
            selected = "read"
        elif selected == "reading":
            if token.kind == "variable" and not brackets:
                return False  # Virtuoso takes it as GROUP BY
            aggregates = aggregates or word in _AGGREGATES
    return aggregates
