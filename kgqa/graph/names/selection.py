"""Selects the index of names to use for a graph."""

from __future__ import annotations

import json

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.names.interface import Names
from kgqa.graph.names.name_reader import IndexedGraph, Limit, background_limit, count_names
from kgqa.graph.names.server.names_graph import names_facts, names_graph_iri, outdated_graphs
from kgqa.graph.names.server.server_names import ServerNames
from kgqa.graph.names.sqlite_index import SqliteNames
from kgqa.graph.names.unindexed import UnindexedNames
from kgqa.graph.query.templates import render
from kgqa.model import Entity

MAX_LOCAL_NAMES = 3_000_000
"""The most names read from a server into a local index: some minutes, and about a gigabyte."""
COUNT_MAX_AGE = 86_400.0
CHECK_SECONDS = 20.0
CHECK_SHARE = 0.25
"""The limits, in seconds and as a share of a query's time, of checking whether a graph of names is current."""
TOO_SLOW_MAX_AGE = 3_600.0
"""Seconds until a check that took too long is repeated."""


def open_names(graph: IndexedGraph, *, limit: Limit = background_limit) -> tuple[Names, str]:
    """Open the index of names of a graph.

    A graph in a folder has an index in SQLite. A graph on a server uses the first of these: a graph of names with as
    many names as the data; an index in SQLite, if they are not too many; an outdated graph of names; `UnindexedNames`,
    which finds nothing and says what to do.

    Args:
        limit: of each query.

    Returns:
        The index, and a note for the user, empty for none.

    Raises:
        StoreError: the names cannot be counted or read. BudgetExhausted: the question has no time left.
    """
    store = graph.store
    if not isinstance(store, EndpointStore):
        index = SqliteNames.open(graph, limit=limit)
        return index, index.note
    outdated = False
    count: int | None
    if store.profile.full_text == "bif":
        iri = names_graph_iri(graph.schema, graph.view)
        facts = names_facts(store, iri, timeout=limit())
        count = _count(store, graph, limit if facts is None else _check_limit(limit), optional=facts is not None)
        current = facts is not None and count in (None, facts.triples)
        if facts and (current or count is None or count > MAX_LOCAL_NAMES):
            note = (
                ""
                if current
                else (
                    f"The index of names is outdated: it has {facts.triples:,} names, the graph {count:,}. Rebuild it: "
                    "kgqa virtuoso index"
                )
            )
            return ServerNames(store, graph.schema, graph.view, graph=iri, facts=facts, current=current), note
        outdated = facts is None and _is_outdated(graph, limit)
    else:
        count = _count(store, graph, limit)
    note = OUTDATED if outdated else ""
    if count is not None and count <= MAX_LOCAL_NAMES:
        try:
            index = SqliteNames.open(graph, limit=limit)
            return index, " ".join(filter(None, (note, index.note)))
        except (StoreTimeout, PartialResult):
            if count:
                raise
            # no names: the readable ends of all IRIs would be read instead, however many
    return UnindexedNames(store, graph.schema, graph.view, count=count, outdated=outdated), note


OUTDATED = (
    "The index of names on the server is of an older version of kgqa and is not used; its triples mix with the data. "
    "Rebuild it: kgqa virtuoso index. Or remove it: kgqa virtuoso drop-names"
)


def _check_limit(limit: Limit) -> Limit:
    def seconds() -> float:
        left = limit()
        return CHECK_SECONDS if left is None else min(CHECK_SECONDS, CHECK_SHARE * left)

    return seconds


def _is_outdated(graph: IndexedGraph, limit: Limit) -> bool:
    """Return whether the server has a graph of names of an older version."""
    return any(
        graph.store.ask(render("any_triple", view=(Entity(iri),)), timeout=limit(), fresh=True)
        for iri in outdated_graphs(graph.schema, graph.view)
    )


def _count(store: EndpointStore, graph: IndexedGraph, limit: Limit, *, optional: bool = False) -> int | None:
    """Count the names, None where that takes too long; the count is kept as long as the fingerprint stays the same.

    Args:
        optional: whether a graph of names can be used without the count.

    Raises:
        StoreError: the server sent no complete result.
    """
    fingerprint = store.fingerprint
    if fingerprint and (known := _load_number(store, "names", COUNT_MAX_AGE)) and known[0] == fingerprint:
        return known[1]
    too_slow = _load_number(store, "names too slow", TOO_SLOW_MAX_AGE) if optional else None
    if too_slow and too_slow[0] == fingerprint:
        return None
    try:
        count = count_names(store, graph.schema, graph.view, limit=limit)
    except StoreTimeout:
        if optional and fingerprint:
            store.save_fact("names too slow", json.dumps([fingerprint, 0]))
        return None
    except PartialResult as error:  # of a result with one row
        raise PartialResult(f"The names of {store.location} could not be counted. {error}") from error
    if fingerprint:
        store.save_fact("names", json.dumps([fingerprint, count]))
    return count


def _load_number(store: EndpointStore, name: str, max_age: float) -> tuple[str, int] | None:
    """Load a fingerprint and a number stored about this view of a server."""
    try:
        fingerprint, number = json.loads(store.load_fact(name, max_age=max_age) or "null")
        return str(fingerprint), int(number)
    except (TypeError, ValueError):
        return None  # none, or in the format of another version
