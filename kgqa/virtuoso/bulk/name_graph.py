"""The names of a graph in the server's full-text index: the graph of names that linking and search use is made beside it,
and removed again.
"""

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
from kgqa.virtuoso.bulk.text_index import forget_names
from kgqa.virtuoso.server.server import Server

MOST_GRAPHS = 1_000_000


@dataclass(frozen=True, slots=True)
class NamesGraph:
    """A graph of names on a server. `facts` is None where it was not finished, or made by an older version."""

    iri: str
    facts: NamesFacts | None


def names_graphs(server: Server) -> list[NamesGraph]:
    """All graphs of names on a server, by IRI. Raises ServerError."""
    iris = [row[0] for row in server.sql(f"sparql {render('named_graphs', limit=MOST_GRAPHS)}")]
    found = []
    for iri in sorted(filter(is_names_graph, iris)):
        texts = [row[0] for row in server.sql(f"sparql {facts_query(iri)}")]
        found.append(NamesGraph(iri, read_facts(texts[0]) if len(texts) == 1 else None))
    return found


def drop_names_graph(server: Server, iri: str) -> None:
    """Remove a graph of names, which need not be there. Raises ServerError."""
    _clear(server, iri)
    forget_names(server.sql, iri)
    server.checkpoint()


def _clear(server: Server, iri: str) -> None:
    # without a log of changes: one transaction could be larger than the server's memory
    server.sql(f"sparql define sql:log-enable 3 {render('clear_graph', graph=Entity(iri))}")


def index_graph(
    server: Server,
    store: EndpointStore,
    schema: Schema,
    graph_iri: str,
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Make the graph of names of a graph anew, and remove those that older versions made of it.

    Args:
        store: speaks to the server.
        schema: says which predicates give names and aliases.
        progress: is told now and then how many names have been read.

    Returns:
        How many names it has; 0 where the graph has none, and then nothing is made.

    Raises:
        ServerError: the server failed. StoreError: the names could not be read.
    """
    view = (Entity(graph_iri),)
    if not count_names(store, schema, view):
        return 0

    def load(file: Path, names_graph: str) -> None:
        error = server.load([file], names_graph)[0].error
        if error:
            raise ServerError(f"The server refuses the graph of names: {error}. Look at its log: kgqa virtuoso status")

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
