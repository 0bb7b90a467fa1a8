"""Runs and explains a client's own SPARQL queries, which can only read."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from kgqa.errors import PartialResult, QueryRejected
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.explain import explain
from kgqa.graph.query.tokens import (
    dataset_of,
    error_in,
    expand_prefixes,
    forbid_fetching,
    query_kind,
    tokens,
    unknown_prefix,
)
from kgqa.storage.answer_json import named_object
from kgqa.text.words import safe_text

MAX_CHARS = 100_000
MAX_RESULT_CHARS = 10 << 20
MAX_EXPLAINED = 10_000
"""Maximum size of a query to explain: its parser needs about a second for 2,000 characters."""


def run_query(
    graph: KnowledgeGraph, sparql: str, *, seconds: float, rows: int, graphs: Collection[str] = ()
) -> dict[str, Any]:
    """Run a SELECT or ASK query over the graphs that questions read.

    Args:
        graphs: IRIs of the named graphs that a query may read with FROM beside those of the graph's view.
        seconds: time limit.
        rows: maximum rows. A result with more of them is an error: a short result is never passed off as a whole one.

    Returns:
        {columns, rows, complete, seconds}; a value is {id, name, iri}, {id: null, name, value, ...}, or null.

    Raises:
        QueryRejected: the query is too long, not valid, of another kind, or uses SERVICE, GRAPH or another graph.
        StoreError: the query failed, took too long, or has more rows.
    """
    expanded = _within_view(graph, _check(sparql, graph.schema.prefixes), graphs)
    try:
        return _result(graph, expanded, seconds, rows)
    except QueryRejected as error:
        raise unknown_prefix(expanded) or error_in(error, sparql, expanded) from None


def _result(graph: KnowledgeGraph, sparql: str, seconds: float, rows: int) -> dict[str, Any]:
    started = time.monotonic()
    if query_kind(sparql) == "ASK":
        value = graph.store.ask(sparql, timeout=seconds)
        columns = ["answer"]
        found: list[list[dict[str, Any] | None]] = [[{"id": None, "name": "true" if value else "false"}]]
    else:
        try:
            result = graph.store.select(sparql, timeout=seconds, max_rows=rows)
        except PartialResult as error:
            raise PartialResult(f"The result has more than {rows:,} rows.", "Add a LIMIT or a condition.") from error
        columns = list(result.variables)
        if sum(len(str(value)) for row in result for value in row if value is not None) > MAX_RESULT_CHARS:
            raise PartialResult(f"The result has more than {MAX_RESULT_CHARS:,} characters.", "Ask for fewer values.")
        values = list(dict.fromkeys(value for row in result for value in row if value is not None))
        objects = dict(zip(values, map(named_object, graph.named(values))))
        found = [[None if value is None else objects[value] for value in row] for row in result]
    return {"columns": columns, "rows": found, "complete": True, "seconds": round(time.monotonic() - started, 3)}


def explain_query(graph: KnowledgeGraph, sparql: str) -> str:
    """Return what a SELECT or ASK query asks for, in words, one line per condition.

    Raises:
        QueryRejected: the query is too long or not valid, or of another kind.
    """
    _check(sparql, graph.schema.prefixes, MAX_EXPLAINED)
    return safe_text(explain(graph, sparql))


def _check(sparql: str, prefixes: Mapping[str, str], chars: int = MAX_CHARS) -> str:
    """Return the text of a SELECT or ASK query with full IRIs."""
    if len(sparql) > chars:
        raise QueryRejected(f"The query has more than {chars:,} characters.", "Shorten it.")
    if not sparql.strip():
        raise QueryRejected("The query is empty.", "Write a SELECT or ASK query.")
    sparql = expand_prefixes(sparql, prefixes)
    try:
        forbid_fetching(sparql)
    except QueryRejected as error:
        raise QueryRejected(error.message, "Leave it out.") from None  # a client cannot load data
    kind = query_kind(sparql)
    if kind not in ("SELECT", "ASK"):
        raise QueryRejected(f"Only SELECT and ASK queries are run{f', not {kind[:40]}' if kind else ''}.")
    return sparql


def _within_view(graph: KnowledgeGraph, sparql: str, graphs: Collection[str]) -> str:
    """Return the query with FROM clauses for the view if it has none.

    Raises:
        QueryRejected: it reads another graph.
    """
    view = [entity.iri for entity in graph.view]
    if any(token.kind == "word" and token.text.upper() == "GRAPH" for token in tokens(sparql)):
        raise QueryRejected("GRAPH is not allowed: queries read the graph that is asked.", "Leave out GRAPH.")
    named = dataset_of(sparql)
    if named is None or not set(named) <= {*view, *graphs}:
        raise QueryRejected("FROM names a graph that is not open here.", "Leave out FROM.")
    if named or not view:
        return sparql
    depth = at = 0
    for token in tokens(sparql):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth and (token.text == "{" or (token.kind == "word" and token.text.upper() == "WHERE")):
            break
        at += len(token.text)
    return "".join([sparql[:at], *(f"\nFROM <{iri}>" for iri in view), "\n", sparql[at:]])
