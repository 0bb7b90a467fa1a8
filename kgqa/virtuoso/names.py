"""Adds names to the server's full-text index, which `bif:contains` searches."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.names.name_reader import count_names, name_predicates
from kgqa.model import Entity
from kgqa.schema import Schema
from kgqa.virtuoso.server import Server

# the reason of the full-text rules in the database
INDEX_OWNER = "kgqa"


def index_graph(server: Server, store: EndpointStore, schema: Schema, graph_iri: str) -> int:
    """Add the names of a graph to the full-text index.

    Args:
        store: the store of the server's endpoint.
        schema: defines which predicates are names and aliases.
        graph_iri: the graph whose names are indexed.

    Returns:
        The number of names. If it is 0, nothing is indexed.

    Raises:
        ServerError: the server failed.
        StoreError: the names could not be counted.
    """
    count = count_names(store, schema, (Entity(graph_iri),))
    if count:
        index_predicates(server, graph_iri, list(dict.fromkeys(predicate for _, predicate in name_predicates(schema))))
    return count


def index_predicates(server: Server, graph_iri: str, predicates: Sequence[str]) -> None:
    """Add the literals of these predicates to the full-text index.

    Literals that are added later are indexed within minutes, or when this function is called again.
    """
    for predicate in predicates:
        server.sql("DB.DBA.RDF_OBJ_FT_RULE_ADD(?, ?, ?)", (graph_iri, predicate, INDEX_OWNER))
    server.sql("DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ()")
    # the interval in minutes; see SchedulerInterval in virtuoso.ini
    server.sql("DB.DBA.VT_BATCH_UPDATE('DB.DBA.RDF_OBJ', 'ON', ?)", (1,))
    server.sql("checkpoint")
