"""Selects the index of names to use for a graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.names.entity_names import EntityNameReader
from kgqa.graph.names.full_text import MAX_WORD_LETTERS, FullText
from kgqa.graph.names.interface import Names
from kgqa.graph.names.name_reader import IndexedGraph, Limit, background_limit, count_names
from kgqa.graph.names.server_names import ServerNames
from kgqa.graph.names.sqlite_index import SqliteNames
from kgqa.graph.names.unindexed import UnindexedNames
from kgqa.model import Entity, Literal

MAX_LOCAL_NAMES = 3_000_000
"""The largest number of names read from a server into a local index. So many take some minutes and about a gigabyte."""
COUNT_MAX_AGE = 86_400.0
CHECK_SECONDS = 20.0
CHECK_SHARE = 0.25
"""Time limits for the search for an index and for a count that is not needed: in seconds, and as a share of a query's
limit."""
TOO_SLOW_MAX_AGE = 3_600.0
"""Seconds until a count that took too long is repeated."""
SAMPLED = 10
SAMPLE_OFFSETS = (0, 1_000, 100_000)
SEARCHED = 5
MAX_PHRASE_WORDS = 8
"""To find out whether a server has a full-text index of the names, the SEARCHED longest of some names are searched."""


def open_names(graph: IndexedGraph, *, limit: Limit = background_limit) -> tuple[Names, str]:
    """Open the index of names of a graph.

    A graph in a folder has an index in SQLite. A graph on a server uses the first of these that is possible:

    1. the server's full-text index, if it contains the names;
    2. an index in SQLite, if the data has at most MAX_LOCAL_NAMES names;
    3. `UnindexedNames`, whose error messages tell the user how to build an index.

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
    reader = EntityNameReader(store, graph.schema, graph.view)
    if store.capabilities.full_text == "virtuoso" and _is_indexed(reader.within(_check_limit(limit))):
        count = _count(endpoint, graph, _check_limit(limit), optional=True)
        many = MAX_LOCAL_NAMES + 1
        return ServerNames(reader, count=many if count is None else count, languages=graph.schema.languages), ""
    count = _count(endpoint, graph, limit)
    if count is not None and count <= MAX_LOCAL_NAMES:
        try:
            index = SqliteNames.open(graph, limit=limit)
            return index, index.note
        except (StoreTimeout, PartialResult):
            if count:
                raise
            # a graph without names: the index would contain all its IRIs, however many there are
    return UnindexedNames(store, graph.schema, graph.view, count=count), ""


def _is_indexed(reader: EntityNameReader) -> bool:
    """Return whether the server's full-text index finds some names of each predicate of names."""
    phrases: dict[Entity, list[str]] = {}
    sample = {"predicates": reader.predicates, "limit": SAMPLED, "offsets": SAMPLE_OFFSETS}
    try:
        for predicate, name in reader.select("sample", fresh=True, view=reader.view, **sample):
            if isinstance(predicate, Entity) and isinstance(name, Literal):
                words = name.value.split()[:MAX_PHRASE_WORDS]
                if words and all(word.isalpha() and len(word) <= MAX_WORD_LETTERS for word in words):
                    phrases.setdefault(predicate, []).append(" ".join(words))
        searched = [phrase for found in phrases.values() for phrase in sorted(found, key=len)[-SEARCHED:]]
        return bool(searched) and FullText(reader).finds_all(searched)
    except (QueryRejected, StoreTimeout):
        return False


def _check_limit(limit: Limit) -> Limit:
    def seconds() -> float:
        left = limit()
        return CHECK_SECONDS if left is None else min(CHECK_SECONDS, CHECK_SHARE * left)

    return seconds


def _count(store: EndpointStore, graph: IndexedGraph, limit: Limit, *, optional: bool = False) -> int | None:
    """Count the names; return None if counting takes too long.

    The count is saved, and counted again when the graph's fingerprint changes.

    Args:
        optional: whether the caller can do without the count.

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
