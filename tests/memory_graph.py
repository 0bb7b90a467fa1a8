"""Small graphs in memory, with the engine of graph folders but without files and worker processes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

import pyoxigraph as ox

from kgqa.errors import QueryRejected
from kgqa.graph.embedded.tsv import decode_tsv
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.store import Rows
from kgqa.schema import bundled_schema


class MemoryStore:
    """A read-only `Store` over N-Triples lines."""

    concurrency = 4

    def __init__(self, lines: Sequence[str]) -> None:
        self._store = ox.Store()
        self._store.load("\n".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES)
        self.triples = len(self._store)
        self.location = "memory"
        self.fingerprint = self.version = hashlib.sha256("\n".join(sorted(set(lines))).encode()).hexdigest()

    def _query(self, query: str):
        try:
            return self._store.query(query)
        except SyntaxError as error:
            raise QueryRejected(str(error)) from error

    def select(self, query: str, *, timeout=None, max_rows=None, fresh=False) -> Rows:
        result = io.BytesIO()
        self._query(query).serialize(result, format=ox.QueryResultsFormat.TSV)
        return decode_tsv(result.getvalue())

    def ask(self, query: str, *, timeout=None, fresh=False) -> bool:
        return bool(self._query(query))

    def notice(self) -> None:
        return None

    def close(self) -> None:
        pass


def memory_graph(lines: Sequence[str], *, schema: str = "freebase", **options) -> KnowledgeGraph:
    """Return a graph over N-Triples lines."""
    return KnowledgeGraph(MemoryStore(lines), bundled_schema(schema), **options)
