"""A small SPARQL server on the loopback, based on pyoxigraph, with the faults of real servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox

from kgqa.testing.loopback import LoopbackServer, Response

RESULTS = "application/sparql-results+json"
TRIPLES = 120
SLOW = "?combinations"
"""A variable in the doctor's slow query."""


class SparqlServer:
    """Answers SPARQL with pyoxigraph.

    Args:
        cap: number of rows at which results are silently truncated; 0 for no limit.
        slow: whether a slow query is "finished" with too small a count, or runs "forever".
        writable: whether updates need no login.
        requests: number of requests after which every connection is dropped.
        busy: seconds that a query waits before it runs.

    Attributes:
        queries: the queries received.
        updates: the updates received.
    """

    def __init__(
        self,
        *,
        cap: int = 0,
        slow: str = "forever",
        writable: bool = False,
        requests: int = 1_000_000,
        busy: Callable[[str], float] = lambda query: 0.0,
    ) -> None:
        self.store = ox.Store()
        for number in range(TRIPLES):
            subject, object_ = (ox.NamedNode(f"http://e/{name}{number % 20}") for name in "so")
            self.store.add(ox.Quad(subject, ox.NamedNode(f"http://e/r{number // 20}"), object_))
        self.queries: list[str] = []
        self.updates: list[str] = []
        self._left = requests
        self._busy = busy
        self._cap, self._slow, self._writable = cap, slow, writable
        self._server = LoopbackServer(self._answer)
        self.url = f"http://127.0.0.1:{self._server.port}/sparql"

    def _answer(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Response:
        self._left -= 1
        if self._left < 0:
            return Response(dropped=True)
        form = parse_qs(urlsplit(path).query) | (parse_qs(content.decode()) if method == "POST" else {})
        if "update" in form:
            if not self._writable:
                return Response(403, b"No updates here.", "text/plain")
            self.updates += form["update"]
            self.store.update(form["update"][0])
            return Response(200)
        (query,) = form["query"]
        self.queries.append(query)
        if seconds := self._busy(query):
            self._server.wait(seconds)
        if SLOW in query:
            if self._slow == "forever":
                self._server.wait(20)
            value = {"type": "literal", "value": "4711", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}
            found = {"head": {"vars": ["combinations"]}, "results": {"bindings": [{"combinations": value}]}}
            return Response(200, json.dumps(found).encode(), RESULTS)
        found = json.loads(self.store.query(query).serialize(format=ox.QueryResultsFormat.JSON))
        if self._cap and "results" in found:
            del found["results"]["bindings"][self._cap :]
        return Response(200, json.dumps(found).encode(), RESULTS)

    def close(self) -> None:
        self._server.close()
