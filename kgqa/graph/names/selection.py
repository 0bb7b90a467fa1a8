"""Selects the index of names to use for a graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

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
"""The largest number of names read from a server into a local index. So many take some minutes and about a gigabyte."""
COUNT_MAX_AGE = 86_400.0
CHECK_SECONDS = 20.0
CHECK_SHARE = 0.25
"""Time limits for checking whether a graph of names is up to date: in seconds, and as a share of a query's limit."""
TOO_SLOW_MAX_AGE = 3_600.0
"""Seconds until a check that took too long is repeated."""


def open_names(graph: IndexedGraph, *, limit: Limit = background_limit) -> tuple[Names, str]:
    """Open the index of names of a graph.

    A graph in a folder has an index in SQLite. A graph on a server uses the first of these that is possible:

    1. a graph of names on the server with as many names as the data;
    2. an index in SQLite, if the data has at most MAX_LOCAL_NAMES names;
    3. an outdated graph of names on the server;
    4. `UnindexedNames`, whose error messages tell the user how to build an index.

    Args:
        limit: time limit of each query.

    Returns:
        The index, and a note to show to the user; the note is empty if there is nothing to say.

    Raises:
        StoreError: the names cannot be counted or read. BudgetExhausted: the question has no time left.
    """
    store = graph.store
    if not store.capabilities.remote:
        index = SqliteNames.open(graph, limit=limit)
        return index, index.note
    endpoint = cast(EndpointStore, store)
    outdated = False
    count: int | None
    if store.capabilities.full_text == "virtuoso":
        iri = names_graph_iri(graph.schema, graph.view)
        facts = names_facts(store, iri, timeout=limit())
        count = _count(endpoint, graph, limit if facts is None else _check_limit(limit), optional=facts is not None)
        current = facts is not None and count in (None, facts.triples)
        if facts and (current or count is None or count > MAX_LOCAL_NAMES):
            note = (
                ""
                if current
                else (
                    f"The index of names is outdated: the index has {facts.triples:,} names, the graph has {count:,}. "
                    "Rebuild the index: kgqa virtuoso index"
                )
            )
            return ServerNames(store, graph.schema, graph.view, graph=iri, facts=facts, current=current), note
        outdated = facts is None and _is_outdated(graph, limit)
    else:
        count = _count(endpoint, graph, limit)
    note = OUTDATED if outdated else ""
    if count is not None and count <= MAX_LOCAL_NAMES:
        try:
            index = SqliteNames.open(graph, limit=limit)
            return index, " ".join(filter(None, (note, index.note)))
        except (StoreTimeout, PartialResult):
            if count:
                raise
            # a graph without names: the index would contain all its IRIs, however many there are
    return UnindexedNames(store, graph.schema, graph.view, count=count, outdated=outdated), note


OUTDATED = (
    "The index of names on the server was built by an older version of kgqa and is not used, but queries find its "
    "triples among the data. Rebuild the index: kgqa virtuoso index. Or remove it: kgqa virtuoso drop-names"
)


def _check_limit(limit: Limit) -> Limit:
    def seconds() -> float:
        left = limit()
        return CHECK_SECONDS if left is None else min(CHECK_SECONDS, CHECK_SHARE * left)

    return seconds


def _is_outdated(graph: IndexedGraph, limit: Limit) -> bool:
    """Return whether the server has a graph of names built by an older version of kgqa."""
    return any(
        graph.store.ask(render("any_triple", view=(Entity(iri),)), timeout=limit(), fresh=True)
        for iri in outdated_graphs(graph.schema, graph.view)
    )


def _count(store: EndpointStore, graph: IndexedGraph, limit: Limit, *, optional: bool = False) -> int | None:
    """Count the names; return None if counting takes too long.

    The count is saved, and counted again when the graph's fingerprint changes.

    Args:
        optional: whether the caller can use a graph of names without knowing the count.

    Raises:
        StoreError: the server sent no complete result for the count.
    """
    graphs = [entity.iri for entity in graph.view]
    fingerprint = store.fingerprint_of(graphs)
    if fingerprint and (known := _load_number(store, graphs, "names", COUNT_MAX_AGE)) and known[0] == fingerprint:
        return known[1]
    too_slow = _load_number(store, graphs, "names too slow", TOO_SLOW_MAX_AGE) if optional else None
    if too_slow and too_slow[0] == fingerprint:
        return None
    try:
        count = count_names(store, graph.schema, graph.view, limit=limit)
    except StoreTimeout:
        if optional and fingerprint:
            store.save_fact("names too slow", graphs, json.dumps([fingerprint, 0]))
        return None
    except PartialResult as error:  # the message does not say that names were counted
        raise PartialResult(f"The names of {store.location} could not be counted. {error}") from error
    if fingerprint:
        store.save_fact("names", graphs, json.dumps([fingerprint, count]))
    return count


def _load_number(store: EndpointStore, graphs: Sequence[str], name: str, max_age: float) -> tuple[str, int] | None:
    """Load the fingerprint and the number that were saved under `name` for this view of a server."""
    try:
        fingerprint, number = json.loads(store.load_fact(name, graphs, max_age=max_age) or "null")
        return str(fingerprint), int(number)
    except (TypeError, ValueError):
        return None  # nothing is saved, or a different version of kgqa saved it in a different format
