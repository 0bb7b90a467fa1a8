"""Which index of names is used for a graph. The one place that decides it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.endpoint import EndpointStore
from kgqa.graph.names import NameIndex, Names
from kgqa.graph.names_graph import names_facts, names_graph_iri
from kgqa.graph.names_reading import count_names
from kgqa.graph.names_unindexed import UnindexedNames
from kgqa.graph.remote_names import RemoteNames

if TYPE_CHECKING:
    from kgqa.graph.derived import Derived

MAX_LOCAL_NAMES = 3_000_000
"""Names that are fetched from a server for an index of our own: some minutes, and about a gigabyte."""
FACT_SECONDS = 86_400.0


def open_names(graph: Derived) -> tuple[Names, str]:
    """The index of names of a graph, and what whoever uses it should know, empty for nothing.

    Of a graph in a folder an index in SQLite. Of one on a server the graph of names beside it, if that is there and was made
    of as many names as there are now; else one in SQLite, if the names are not too many; else the graph of names as it is;
    else one that finds nothing and says what to do.

    Raises:
        StoreError: the names cannot be counted or read.
    """
    store = graph.store
    if not isinstance(store, EndpointStore):
        return NameIndex.open(graph), ""
    count = _counted(store, graph)
    if store.profile.full_text == "bif":
        iri = names_graph_iri(graph.schema, graph.view)
        facts = names_facts(store, iri)
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
    if count is not None and count <= MAX_LOCAL_NAMES:
        try:
            return NameIndex.open(graph), ""
        except (StoreTimeout, PartialResult):
            if count:
                raise
            # without names the readable ends of all IRIs would be read instead, which may be any number
    return UnindexedNames(store, graph.schema, graph.view, count=count), ""


def _counted(store: EndpointStore, graph: Derived) -> int | None:
    """How many names there are, None where that cannot be told in time; kept for as long as the graph looks the same."""
    fingerprint = store.fingerprint
    try:
        known = json.loads(store.kept_fact("names", younger=FACT_SECONDS) or "null")
        if isinstance(known, list) and len(known) == 2 and fingerprint and known[0] == fingerprint:
            return int(known[1])
    except ValueError:
        pass  # kept by another version
    try:
        count = count_names(store, graph.schema, graph.view)
    except (StoreTimeout, PartialResult):
        return None
    if fingerprint:
        store.keep_fact("names", json.dumps([fingerprint, count]))
    return count
