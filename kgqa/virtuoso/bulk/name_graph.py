"""Adds the names of a graph to the server's full-text index, and removes indexes of older versions of kgqa.

Older versions wrote each index of names into a graph of its own, `urn:kgqa:names:...`. kgqa does not use these graphs.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from kgqa.graph.detection import NAMES_GRAPHS
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.names.name_reader import count_names, name_predicates
from kgqa.graph.query.templates import render
from kgqa.model import Entity
from kgqa.schema import Schema
from kgqa.virtuoso.server.server import Server

MAX_GRAPHS = 1_000_000
OLD_VERSIONS = (1, 2)


@dataclass(frozen=True, slots=True)
class NamesGraph:
    """An index of names that an older version of kgqa built as a graph.

    Attributes:
        iri: the graph of names.
        graphs: IRIs of the indexed graphs; None if the index does not say so, because it is incomplete or very old.
        names: number of indexed names; None like `graphs`.
    """

    iri: str
    graphs: tuple[str, ...] | None
    names: int | None


def names_graphs(server: Server) -> list[NamesGraph]:
    """List the graphs of names on a server, sorted by IRI. Raises ServerError."""
    iris = [row[0] for row in server.sql(f"sparql {render('named_graphs', limit=MAX_GRAPHS)}")]
    found = []
    for iri in sorted(iri for iri in iris if iri.startswith(NAMES_GRAPHS)):
        rows = server.sql(f"sparql {render('names_facts', graph=Entity(iri), fact=Entity('urn:kgqa:names#facts'))}")
        found.append(_read_graph(iri, [row[0] for row in rows]))
    return found


def _read_graph(iri: str, facts: list[str]) -> NamesGraph:
    try:
        (text,) = facts
        found = json.loads(text)
        return NamesGraph(iri, tuple(map(str, found["graphs"])), int(found["names"]))
    except (KeyError, ValueError, TypeError):
        return NamesGraph(iri, None, None)


def drop_names_graph(server: Server, iri: str) -> None:
    """Remove a graph of names; do nothing if there is no such graph. Raises ServerError."""
    # turn the transaction log off, because one transaction for the whole graph could exceed the server's memory
    server.sql(f"sparql define sql:log-enable 3 {render('clear_graph', graph=Entity(iri))}")
    server.remove_index_rules(iri)
    server.checkpoint()


def index_graph(server: Server, store: EndpointStore, schema: Schema, graph_iri: str) -> int:
    """Add the names of a graph to the full-text index, and remove the graphs of names of older versions of kgqa.

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
    view = (Entity(graph_iri),)
    count = count_names(store, schema, view)
    if count:
        server.index_names(graph_iri, list(dict.fromkeys(predicate for _, predicate in name_predicates(schema))))
        for version in OLD_VERSIONS:
            facts = [version, [graph_iri], schema.label, schema.alias]
            old = f"{NAMES_GRAPHS}{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]}"
            if server.holds(old):
                drop_names_graph(server, old)
    return count
