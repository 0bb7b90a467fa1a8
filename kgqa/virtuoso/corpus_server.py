"""A Virtuoso server of kgqa that holds the graphs of corpora: bulk loads, a login for edits, the index of names."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.rdf.lines import split_graph
from kgqa.graph.store import Store
from kgqa.schema import bundled_schema
from kgqa.virtuoso.graph_loading import bulk_load, index_graph
from kgqa.virtuoso.server import Server


class CorpusServer:
    """A server that kgqa runs; see `kgqa.corpus.building.tools.ManagedServer`.

    All methods raise ServerError if the server fails.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def login(self) -> tuple[str, str]:
        """Return the name and the password of a user who may edit graphs; the user is created if necessary."""
        return "kgqa", self._server.allow_updates("kgqa").read_text(encoding="utf-8").strip()

    def load(self, store: Store, quads: Path) -> None:
        """Load a file of canonical N-Quads in bulk. What an interrupted load has left is loaded again.

        Args:
            store: the store of the server, which may write to the graphs.
            quads: the file.
        """
        assert isinstance(store, EndpointStore)
        writable = store.writable
        with tempfile.TemporaryDirectory(dir=quads.parent, prefix=".graphs-") as folder:
            try:
                for graph, file in split_by_graph(quads, Path(folder)).items():
                    store.writable = graph
                    bulk_load(self._server, store, [file], restart=True)
            finally:
                store.writable = writable

    def index_names(self, store: Store, graphs: Sequence[str]) -> None:
        """Add the names of entities to the full-text index, so that they are found at once."""
        assert isinstance(store, EndpointStore)
        for graph in graphs:
            index_graph(self._server, store, bundled_schema("corpus"), graph)


def corpus_server(url: str) -> CorpusServer | None:
    """Return the server that kgqa runs at a URL; None if there is none."""
    server = Server.for_url(url)
    return None if server is None else CorpusServer(server)


def split_by_graph(quads: Path, folder: Path) -> dict[str, Path]:
    """Write the triples of each named graph to a file of N-Triples; return the files by graph."""
    files: dict[str, IO[bytes]] = {}
    with ExitStack() as opened, open(quads, "rb") as lines:
        for line in lines:
            triple, graph = split_graph(line)
            name = (graph or b"").decode()
            if name not in files:
                files[name] = opened.enter_context(open(folder / f"{len(files)}.nt", "wb"))
            files[name].write(triple)
    return {graph: Path(file.name) for graph, file in files.items()}
