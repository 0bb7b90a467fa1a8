"""The names of a graph in the server's full-text index: the graph of names that linking and search use is made beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.graph.endpoint import EndpointStore
from kgqa.graph.names_building import build_names_graph
from kgqa.graph.names_reading import count_names
from kgqa.graph.queries import render
from kgqa.model import Entity
from kgqa.schema import Schema
from kgqa.virtuoso.server import Server


def index_graph(
    server: Server,
    store: EndpointStore,
    schema: Schema,
    graph_iri: str,
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Make the graph of names of a graph anew.

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

    def clear(names_graph: str) -> None:
        # without a log of changes: one transaction could be larger than the server's memory
        server.sql(f"sparql define sql:log-enable 3 {render('clear_graph', graph=Entity(names_graph))}")

    def load(file: Path, names_graph: str) -> None:
        error = server.load([file], names_graph)[0].error
        if error:
            raise ServerError(f"The server refuses the graph of names: {error}. Look at its log: kgqa virtuoso status")

    built = build_names_graph(
        store,
        schema,
        view,
        folder=server.import_folder,
        clear=clear,
        load=load,
        index=server.index_names,
        progress=progress,
    )
    return built.names
