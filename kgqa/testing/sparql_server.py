"""A scripted SPARQL server on the loopback interface; it speaks real HTTP and can send any reply and any fault.

busy = SparqlReply(503, headers=(("Retry-After", "1"),))
with SparqlServer([table(["x"], [[Entity("http://e/1")]]), busy]) as server:
    EndpointStore(server.url, profile="generic").select("SELECT ?x WHERE { ?x ?p ?o }")
    assert server.requests[0].query.startswith("SELECT")
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kgqa.model import XSD_STRING, Entity, Value
from kgqa.testing.loopback import LoopbackServer, Response

RESULTS = "application/sparql-results+json"


@dataclass(frozen=True, slots=True)
class SparqlReply(Response):
    """A reply of the scripted SPARQL server; see `Response`."""

    content_type: str = RESULTS


@dataclass(frozen=True)
class SparqlRequest:
    """A request to the scripted SPARQL server.

    `headers` have lower-case names. `fields` are the parameters in the URL and in the form. `connection` is the number
    of the connection, from 1.
    """

    method: str
    path: str
    headers: dict[str, str]
    fields: dict[str, str]
    arrived: float
    connection: int

    @property
    def query(self) -> str:
        """The SPARQL query; empty if the request has none."""
        return self.fields.get("query", "")

    @property
    def update(self) -> str:
        """The SPARQL update; empty if the request has none."""
        return self.fields.get("update", "")


def table(variables: Sequence[str], rows: Iterable[Sequence[Value | None]], **options: Any) -> SparqlReply:
    """Return a reply to a SELECT query. `options` are those of `SparqlReply`."""
    return SparqlReply(body=table_bytes(variables, rows), **options)


def truth(value: bool, **options: Any) -> SparqlReply:
    """Return a reply to an ASK query. `options` are those of `SparqlReply`."""
    return SparqlReply(body=json.dumps({"head": {}, "boolean": value}).encode(), **options)


def table_bytes(variables: Sequence[str], rows: Iterable[Sequence[Value | None]]) -> bytes:
    """Encode a table as SPARQL 1.1 Query Results JSON."""
    bindings = [{name: term(value) for name, value in zip(variables, row) if value is not None} for row in rows]
    return json.dumps(
        {"head": {"vars": list(variables)}, "results": {"bindings": bindings}}, ensure_ascii=False
    ).encode()


def term(value: Value) -> dict[str, str]:
    """Encode a term for SPARQL 1.1 Query Results JSON."""
    if isinstance(value, Entity):
        blank = value.iri.startswith("_:")
        return {"type": "bnode", "value": value.iri[2:]} if blank else {"type": "uri", "value": value.iri}
    found = {"type": "literal", "value": value.value}
    if value.language:
        found["xml:lang"] = value.language
    elif value.datatype != XSD_STRING:
        found["datatype"] = value.datatype
    return found


Scripted = SparqlReply | Callable[[SparqlRequest], SparqlReply]


class SparqlServer(LoopbackServer):
    """A SPARQL server on 127.0.0.1; see `LoopbackServer`.

    Args:
        script: a reply to all requests, a function from request to reply, or a sequence of replies that are used one
            by one. When all replies are used, further requests get the status 599.
        port: port number; 0 for a free port.
        server: value of the Server header.
        certificate: files with a certificate and its key, for TLS.

    Attributes:
        url: the server's URL; it ends in /sparql, but requests to any path are answered.
        connections: number of connections opened.
    """

    requests: list[SparqlRequest]

    def __init__(
        self,
        script: Scripted | Iterable[Scripted],
        *,
        port: int = 0,
        server: str = "scripted",
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self._always = script if isinstance(script, SparqlReply) or callable(script) else None
        self._queue: deque[Scripted] = deque(() if isinstance(script, SparqlReply) or callable(script) else script)
        self._connection = threading.local()  # a connection has a thread of its own
        self.connections = 0
        super().__init__(self._answer, port=port, name=server, certificate=certificate)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}/sparql"

    @property
    def queries(self) -> list[str]:
        """The queries received."""
        return [request.query for request in self.requests if request.query]

    def enqueue(self, *script: Scripted) -> None:
        """Add replies that are used before the remaining replies of the script."""
        with self._lock:
            self._queue.extend(script)

    def _answer(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Response:
        arrived = time.monotonic()
        text = content.decode("utf-8", "replace")
        fields = parse_qs(urlsplit(path).query + "&" + text, keep_blank_values=True)
        with self._lock:
            if not hasattr(self._connection, "number"):
                self.connections += 1
                self._connection.number = self.connections
        first = {key: values[0] for key, values in fields.items()}
        request = SparqlRequest(method, path, headers, first, arrived, self._connection.number)
        # a request stops counting before its reply is sent, because the client may then send the next request
        with self.counted(request):
            with self._lock:
                found = self._queue.popleft() if self._queue else self._always
            if found is None:
                return SparqlReply(599, b"The script has no reply left.", "text/plain")
            reply = found if isinstance(found, SparqlReply) else found(request)
            self.wait(reply.seconds)
            return reply
