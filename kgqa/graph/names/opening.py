"""Which index of names is used for a graph. The one place that decides it."""

from __future__ import annotations

import json

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.names.index import NameIndex, Names
from kgqa.graph.names.reading import IndexedGraph, Limit, count_names, no_question
from kgqa.graph.names.server.index import RemoteNames
from kgqa.graph.names.server.names_graph import names_facts, names_graph_iri, outdated_graphs
from kgqa.graph.names.unindexed import UnindexedNames
from kgqa.graph.query.templates import render
from kgqa.model import Entity

MAX_LOCAL_NAMES = 3_000_000
"""Names that are fetched from a server for an index of our own: some minutes, and about a gigabyte."""
FACT_SECONDS = 86_400.0
CHECK_SECONDS = 20.0
CHECK_SHARE = 0.25
"""Seconds, and the part of the time a query may take, for looking whether a graph of names is of the names as they are."""
TOO_SLOW_SECONDS = 3_600.0
"""How long it is remembered that this look took too long."""


def open_names(graph: IndexedGraph, *, limit: Limit = no_question) -> tuple[Names, str]:
    """The index of names of a graph, and what whoever uses it should know, empty for nothing.

    Of a graph in a folder an index in SQLite. Of one on a server the graph of names beside it, if that is there and was made
    of as many names as there are now; else one in SQLite, if the names are not too many; else the graph of names as it is;
    else one that finds nothing and says what to do.

    Args:
        limit: of each query; what a question waits for is within its limits.

    Raises:
        StoreError: the names cannot be counted or read. BudgetExhausted: the question has no more time.
    """
    store = graph.store
    if not isinstance(store, EndpointStore):
        index = NameIndex.open(graph, limit=limit)
        return index, index.note
    outdated = False
    count: int | None
    if store.profile.full_text == "bif":
        iri = names_graph_iri(graph.schema, graph.view)
        facts = names_facts(store, iri, timeout=limit())
        count = _counted(store, graph, limit if facts is None else _for_a_look(limit), checks=facts is not None)
        current = facts is not None and count in (None, facts.triples)
        if facts and (current or count is None or count > MAX_LOCAL_NAMES):
            note = (
                ""
                if current
                else (
                    f"The index of names was made of {facts.triples:,} names, there are {count:,} now. Make it anew: "
                    "kgqa virtuoso index"
                )
            )
            return RemoteNames(store, graph.schema, graph.view, graph=iri, facts=facts, current=current), note
        outdated = facts is None and _is_outdated(graph, limit)
    else:
        count = _counted(store, graph, limit)
    note = OUTDATED if outdated else ""
    if count is not None and count <= MAX_LOCAL_NAMES:
        try:
            index = NameIndex.open(graph, limit=limit)
            return index, " ".join(filter(None, (note, index.note)))
        except (StoreTimeout, PartialResult):
            if count:
                raise
            # without names the readable ends of all IRIs would be read instead, which may be any number
    return UnindexedNames(store, graph.schema, graph.view, count=count, outdated=outdated), note


OUTDATED = (
    "The graph of names on the server was made by an older version of kgqa and is not used; other programs meet its triples "
    "among those of the data. Make it anew: kgqa virtuoso index. Or remove it: kgqa virtuoso drop-names"
)


def _for_a_look(limit: Limit) -> Limit:
    def seconds() -> float:
        most = limit()
        return CHECK_SECONDS if most is None else min(CHECK_SECONDS, CHECK_SHARE * most)

    return seconds


def _is_outdated(graph: IndexedGraph, limit: Limit) -> bool:
    """Whether there is a graph of names that an older version made, and no current one."""
    return any(
        graph.store.ask(render("any_triple", view=(Entity(iri),)), timeout=limit(), fresh=True)
        for iri in outdated_graphs(graph.schema, graph.view)
    )


def _counted(store: EndpointStore, graph: IndexedGraph, limit: Limit, *, checks: bool = False) -> int | None:
    """How many names there are, None where that cannot be told in time; kept for as long as the graph looks the same.

    Args:
        checks: there is a graph of names, so that little is lost where they are not counted.

    Raises:
        StoreError: the server gave no whole answer.
    """
    fingerprint = store.fingerprint
    if fingerprint and (known := _kept(store, "names", FACT_SECONDS)) and known[0] == fingerprint:
        return known[1]
    too_slow = _kept(store, "names too slow", TOO_SLOW_SECONDS) if checks else None
    if too_slow and too_slow[0] == fingerprint:
        return None
    try:
        count = count_names(store, graph.schema, graph.view, limit=limit)
    except StoreTimeout:
        if checks and fingerprint:
            store.keep_fact("names too slow", json.dumps([fingerprint, 0]))
        return None
    except PartialResult as error:  # one number is never too much
        raise PartialResult(f"The names of {store.location} could not be counted. {error}") from error
    if fingerprint:
        store.keep_fact("names", json.dumps([fingerprint, count]))
    return count


def _kept(store: EndpointStore, name: str, younger: float) -> tuple[str, int] | None:
    """A fingerprint and a number that were kept about this view of a server."""
    try:
        fingerprint, number = json.loads(store.kept_fact(name, younger=younger) or "null")
        return str(fingerprint), int(number)
    except (TypeError, ValueError):
        return None  # nothing, or by another version
