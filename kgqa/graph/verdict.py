"""What a reply of a SPARQL server is worth: a whole result, or the error that says why it is none.

A short answer is never passed off as a whole one. Servers cut answers with status 200 and say so, if at all, in a header
(FACTS of this project: Virtuoso's row cap and its "anytime" timeout, which gives wrong counts too).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgqa.errors import KgqaError, PartialResult, QueryRejected, StoreTimeout, StoreUnavailable
from kgqa.graph.profiles import Profile
from kgqa.graph.sparql_text import tokens
from kgqa.graph.store import Rows
from kgqa.words import clean

ASK_FOR_LESS = "Ask for less, use LIMIT, or raise the server's own limits."
_AGGREGATES = frozenset("COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT".split())
_JSON_TYPES = ("application/sparql-results+json", "application/json", "text/json")


def judge(status: int, headers: dict[str, str], body: str, profile: Profile, url: str) -> KgqaError | None:
    """What is wrong with a reply by its status and headers, None for nothing.

    Args:
        headers: by lower-case name. body: the beginning of it, where the status is not 200.
    """
    if any(header in headers for header in profile.late_headers):
        return StoreTimeout(
            "The server stopped the query at its time limit and gave what it had. Nothing of it is used."
        )
    if any(header in headers for header in profile.short_headers):
        return PartialResult(f"The server cut the result at its row cap. {ASK_FOR_LESS}")
    if status == 206:
        return PartialResult(f"The server sent a part of the result (HTTP 206). {ASK_FOR_LESS}")
    if status != 200:
        return _failure(status, headers, body, profile, url)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and kind not in _JSON_TYPES:
        what = "a web page" if "html" in kind else clean(kind)[:60]
        return StoreUnavailable(f"{url} answered with {what}, not with a SPARQL result: is this its SPARQL address?")
    return None


def _failure(status: int, headers: dict[str, str], body: str, profile: Profile, url: str) -> KgqaError:
    said = _said(body)
    late = any(text.lower() in body.lower() for text in profile.late_texts)
    # a server that ran out of time while sending calls it 500 and sends the rows it had
    begun = status == 500 and body.lstrip()[:1] == "{" and '"bindings"' in body
    if late or begun or status in (408, 504):
        return StoreTimeout(f"The server ran out of time on this query (HTTP {status})." + ("" if begun else said))
    if status in (401, 403):
        return StoreUnavailable(
            f"{url} does not let you in (HTTP {status}): set endpoint.user and the password in KGQA_ENDPOINT_PASSWORD."
        )
    if status in (301, 302, 303, 307, 308):
        place = clean(headers.get("location", ""))[:200]
        return StoreUnavailable(
            f"{url} has moved (HTTP {status}){' to ' + place if place else ''}. Give the new address."
        )
    if status == 404 or (status == 405 and not body):
        return StoreUnavailable(f"There is no SPARQL service at {url} (HTTP {status}). Virtuoso's ends in /sparql.")
    if status in (429, 502, 503):
        return StoreUnavailable(f"{url} cannot answer now (HTTP {status}).{said} Try again later.")
    if "html" in headers.get("content-type", "") and status != 400:
        return StoreUnavailable(f"{url} answered with an error page (HTTP {status}).{said}")
    return QueryRejected(f"The server refuses the query (HTTP {status}).{said}")


def _said(body: str) -> str:
    text = clean(re.sub(r"<[^>]*>", " ", body.partition("SPARQL query:")[0]))[:300]
    return f" It says: {text}" if text else ""


def check_whole(rows: Rows, query: str, profile: Profile, caps: Iterable[int]) -> None:
    """Raises PartialResult where a table with status 200 was cut all the same: a row count that is exactly a known cap
    and not asked for, or an aggregate over everything without a row, which always has one."""
    count = len(rows)
    if count and count in (*profile.row_caps, *caps) and not _limited_to(query, count):
        raise PartialResult(f"The result has exactly {count:,} rows, the server's row cap. {ASK_FOR_LESS}")
    if count == 0 and _aggregates_all(query):
        raise StoreTimeout("The server gave no row for a count, which it does when it ran out of time.")


def _limited_to(query: str, count: int) -> bool:
    words = [token.text.upper() for token in tokens(query) if token.kind not in ("space", "comment")]
    return any(word == "LIMIT" and words[place + 1 : place + 2] == [str(count)] for place, word in enumerate(words))


def _aggregates_all(query: str) -> bool:
    """Whether the outermost SELECT aggregates without GROUP BY or HAVING."""
    depth, projects, aggregates = 0, False, False
    for token in tokens(query):
        word = token.text.upper()
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if depth == 0:
            if word in ("GROUP", "HAVING", "LIMIT", "OFFSET") and not projects:
                return False
            if word == "SELECT":
                projects = True
            elif token.kind == "word" and word in ("WHERE", "FROM"):
                projects = False
            elif projects and word in _AGGREGATES:
                aggregates = True
        else:
            projects = False
    return aggregates
