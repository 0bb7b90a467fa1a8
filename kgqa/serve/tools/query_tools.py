"""Runs and explains a client's own SPARQL queries, which can only read."""

from __future__ import annotations

import time
from typing import Any

from kgqa.answer_json import named_object
from kgqa.errors import PartialResult, QueryRejected
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.explain import explain
from kgqa.graph.query.tokens import forbid_fetching, query_kind
from kgqa.words import clean_line

MAX_CHARS = 100_000


def run_query(graph: KnowledgeGraph, sparql: str, *, seconds: float, rows: int) -> dict[str, Any]:
    """Run a SELECT or ASK query.

    Args:
        seconds: time limit.
        rows: maximum rows. A result with more of them is an error: a short result is never passed off as a whole one.

    Returns:
        {columns, rows, complete, seconds}; a value is {id, name, iri}, {id: null, name, value, ...}, or null.

    Raises:
        QueryRejected: the query is too long, not valid, of another kind, or uses SERVICE.
        StoreError: the query failed, took too long, or has more rows.
    """
    _check(sparql)
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
        values = list(dict.fromkeys(value for row in result for value in row if value is not None))
        objects = dict(zip(values, map(named_object, graph.named(values))))
        found = [[None if value is None else objects[value] for value in row] for row in result]
    return {"columns": columns, "rows": found, "complete": True, "seconds": round(time.monotonic() - started, 3)}


def explain_query(graph: KnowledgeGraph, sparql: str) -> str:
    """Return what a SELECT or ASK query asks for, in words, one line per condition.

    Raises:
        QueryRejected: the query is too long or not valid, or of another kind.
    """
    _check(sparql)
    return "\n".join(map(clean_line, explain(graph, sparql).split("\n")))


def _check(sparql: str) -> None:
    if len(sparql) > MAX_CHARS:
        raise QueryRejected(f"The query has more than {MAX_CHARS:,} characters.", "Shorten it.")
    if not sparql.strip():
        raise QueryRejected("The query is empty.", "Write a SELECT or ASK query.")
    forbid_fetching(sparql)
    kind = query_kind(sparql)
    if kind not in ("SELECT", "ASK"):
        raise QueryRejected(f"Only SELECT and ASK queries are run{f', not {kind[:40]}' if kind else ''}.")
