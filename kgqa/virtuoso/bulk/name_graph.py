"""Creates and removes graphs of names: each has the names of one graph in the full-text index for entity linking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.names.name_reader import count_names
from kgqa.graph.names.server.builder import build_names_graph
from kgqa.graph.names.server.names_graph import NamesFacts, facts_query, is_names_graph, outdated_graphs, read_facts
from kgqa.graph.query.templates import render
from kgqa.model import Entity
from kgqa.schema import Schema
from kgqa.virtuoso.server.server import Server
from kgqa.virtuoso.server.text_index import remove_index_rules

MAX_GRAPHS = 1_000_000


@dataclass(frozen=True, slots=True)
class NamesGraph:
    """A graph of names on a server; `facts` is None if the graph is unfinished or from an older version of kgqa."""

    iri: str
    facts: NamesFacts | None


def names_graphs(server: Server) -> list[NamesGraph]:
    """List all graphs of names on a server, sorted by IRI. Raises ServerError."""
    iris = [row[0] for row in server.sql(f"sparql {render('named_graphs', limit=MAX_GRAPHS)}")]
    found = []
    for iri in sorted(filter(is_names_graph, iris)):
        texts = [row[0] for row in server.sql(f"sparql {facts_query(iri)}")]
        found.append(NamesGraph(iri, read_facts(texts[0]) if len(texts) == 1 else None))
    return found


def drop_names_graph(server: Server, iri: str) -> None:
    """Remove a graph of names; do nothing if there is no such graph. Raises ServerError."""
    _clear(server, iri)
    remove_index_rules(server.sql, iri)
    server.checkpoint()


def _clear(server: Server, iri: str) -> None:
    # turn the transaction log off, because one transaction for the whole graph could exceed the server's memory
    server.sql(f"sparql define sql:log-enable 3 {render('clear_graph', graph=Entity(iri))}")


def index_graph(
    server: Server,
    store: EndpointStore,
    schema: Schema,
    graph_iri: str,
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Create or replace the graph of names of a graph, and remove those that older versions of kgqa created for it.

    Args:
        store: the store of the server's endpoint.
        schema: defines which predicates are names and aliases.
        graph_iri: the graph whose names are indexed.
        progress: called with the number of names read so far.

    Returns:
        The number of names. If it is 0, no graph of names is created.

    Raises:
        ServerError: the server failed.
        StoreError: the names could not be read.
    """
    view = (Entity(graph_iri),)
    if not count_names(store, schema, view):
        return 0

    def load(file: Path, names_graph: str) -> None:
        error = server.load([file], names_graph)[0].error
        if error:
            raise ServerError(
                f"The server rejects the graph of names: {error}.", "Check the server: kgqa virtuoso status"
            )

    built = build_names_graph(
        store,
        schema,
        view,
        folder=server.import_folder,
        clear=lambda names_graph: _clear(server, names_graph),
        load=load,
        index=server.index_names,
        progress=progress,
    )
    for outdated in outdated_graphs(schema, view):
        if server.holds(outdated):
            drop_names_graph(server, outdated)
    return built.names
