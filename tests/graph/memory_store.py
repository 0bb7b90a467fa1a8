"""A store in memory, without worker processes: for tests of what is built on stores."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyoxigraph as ox

from kgqa import errors
from kgqa.errors import LoadError, QueryRejected, StoreUnavailable
from kgqa.graph.editing import EditHistory, net_changes, present_triples, terms
from kgqa.graph.embedded.records import GraphHash, GraphMeta, digests_of
from kgqa.graph.embedded.worker import RequestHandler, error_payload
from kgqa.graph.query.text import decode_tsv, render
from kgqa.graph.query.tokens import prepare_for_engine, to_standard_sparql
from kgqa.graph.rdf.lines import lines_by_graph
from kgqa.graph.store import DEFAULT_MAX_ROWS, Capabilities, EditReport, LoadReport, Rows, Store
from kgqa.model import Entity, Triple

_numbers = itertools.count()


class MemoryStore(Store):
    """The engine of the embedded store in this process. Queries have no time limit."""

    location = "memory"
    capabilities = Capabilities()

    def __init__(self, content: str | Iterable[str] = ()) -> None:
        text = content if isinstance(content, str) else "\n".join(line.rstrip("\n") for line in content)
        self.capabilities = Capabilities(updates=True, identity=f"-memory{next(_numbers)}")
        self._history = EditHistory()
        self._closed = False
        self._lock = threading.RLock()  # as in the embedded store, no query runs during an edit
        self._server = RequestHandler()
        self._server.store = ox.Store()
        self._server.store.bulk_load(f"{text}\n".encode(), format=ox.RdfFormat.N_QUADS)

    def version_of(self, graphs: Sequence[str] = ()) -> str:
        return self._history.version_of(graphs or [""])

    def edits_since(self, version: str, graphs: Sequence[str] = ()) -> list[EditReport] | None:
        return self._history.since(version, graphs or [""])

    def triples_of(self, graphs: Sequence[str] = ()) -> int:
        return self._hash(graphs).triples

    def fingerprint_of(self, graphs: Sequence[str] = ()) -> str:
        return self._hash(graphs).fingerprint

    def _hash(self, graphs: Sequence[str]) -> GraphHash:
        lines = self._server.store.dump(format=ox.RdfFormat.N_QUADS).splitlines(keepends=True)
        groups = lines_by_graph(lines).items()
        return GraphMeta(1, "", {graph: GraphHash.of(digests_of(group)) for graph, group in groups}).view(graphs)

    def select(self, query: str, *, timeout=None, max_rows: int | None = None, fresh: bool = False) -> Rows:
        caps = {"max_rows": DEFAULT_MAX_ROWS if max_rows is None else max_rows, "max_bytes": 512 << 20}
        return decode_tsv(self._query({"op": "select", **caps}, query))

    def ask(self, query: str, *, timeout=None, fresh: bool = False) -> bool:
        return self._query({"op": "ask"}, query) == b"1"

    def update(self, update: str, *, timeout=None) -> None:
        self._server.store.update(prepare_for_engine(update))
        self._history.forget()

    def edit(self, graph: str, adds: Iterable[Triple], removes: Iterable[Triple] = ()) -> EditReport:
        with self._lock:
            added, removed = net_changes(adds, removes, present=lambda triples: present_triples(self, graph, triples))
            if added or removed:
                values = {"adds": [terms(triple) for triple in added], "removes": [terms(triple) for triple in removed]}
                self._server.store.update(render("edit", graph=Entity(graph) if graph else None, **values))
            return self._history.add(graph, added, removed)

    def load(self, files: Iterable[str | Path], *, on_error="fail", progress=None) -> LoadReport:
        raise LoadError("this store takes its triples when it is made")

    def close(self) -> None:
        self._closed = True

    def _query(self, request: dict, query: str) -> bytes:
        prepared = prepare_for_engine(query)
        try:
            return self._call({**request, "query": prepared})
        except QueryRejected:
            standard = to_standard_sparql(prepared)
            if standard == prepared:
                raise
            return self._call({**request, "query": standard})

    def _call(self, request: dict) -> bytes:
        if self._closed:
            raise StoreUnavailable("The graph in memory has been closed.")
        try:
            with self._lock:
                return self._server.handle(request)
        except Exception as error:
            report = json.loads(error_payload(error))
            raise getattr(errors, report["kind"])(report["message"], report["hint"]) from error
