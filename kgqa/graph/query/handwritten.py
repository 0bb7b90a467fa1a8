"""Queries that people write: prefixes that need no declaration, and where a query is not valid."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kgqa.errors import InvalidQuery, QueryRejected
from kgqa.graph.query.tokens import tokens
from kgqa.words import clean

_POSITION = re.compile(r"error at ([0-9]+):([0-9]+)")
_REASON = re.compile(r"(?:expected|one of|,) (?!Prefix not found)([A-Z][a-z]+(?: \w+)+)")
"""A sentence among the tokens that the engine expected."""


def declare_prefixes(sparql: str, prefixes: Mapping[str, str]) -> str:
    """Return a query that also declares those of the given prefixes that it uses without a declaration."""
    missing = [name for name in _undeclared(sparql) if name in prefixes]
    return "".join(f"PREFIX {name}: <{prefixes[name]}>\n" for name in missing) + sparql


def unknown_prefix(sparql: str) -> QueryRejected | None:
    """Return the error of a query that uses a prefix without a declaration; None if it declares all."""
    for name in _undeclared(sparql):
        shown = clean(name)[:80]
        return QueryRejected(f"Unknown prefix {shown or ':'}.", f"Declare it: PREFIX {shown}: <...>")
    return None


def _undeclared(sparql: str) -> list[str]:
    declared: set[str] = set()
    used: dict[str, None] = {}
    before = ""
    for token in tokens(sparql):
        if token.kind in ("space", "comment"):
            continue
        if token.kind == "name":
            name = token.text.partition(":")[0]
            if before == "PREFIX":
                declared.add(name)
            else:
                used.setdefault(name)
        before = token.text.upper() if token.kind == "word" else ""
    return [name for name in used if name not in declared]


def engine_error(error: QueryRejected, query: str, prepared: str) -> QueryRejected:
    """Return an error of the embedded engine's parser with the position in the query, and without the expected tokens.

    Args:
        error: the error that the engine reports.
        query: the query as it was given.
        prepared: the query as it was sent to the engine, with the same tokens but longer IRIs.
    """
    position = _POSITION.search(str(error))
    if position is None:
        return error
    lines = prepared.split("\n")[: int(position[1])]
    sent = sum(len(line) + 1 for line in lines[:-1]) + int(position[2]) - 1
    start = done = 0
    for old, new in zip(tokens(query), tokens(prepared)):
        if done + len(new.text) > sent:
            break
        start, done = start + len(old.text), done + len(new.text)
    reason = _REASON.search(str(error))
    return InvalidQuery(query, start, reason[1] if reason else "")


def error_before(error: QueryRejected, query: str, changed: str) -> QueryRejected:
    """Return the error of a query into which text was inserted as the error of the query without it."""
    if not isinstance(error, InvalidQuery):
        return error
    place = next((at for at, (old, new) in enumerate(zip(query, changed)) if old != new), len(query))
    at = error.at if error.at <= place else max(error.at - (len(changed) - len(query)), place)
    return InvalidQuery(query, at, error.reason)
