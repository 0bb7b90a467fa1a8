"""The worker process around the engine: `python -m kgqa.graph.embedded.worker`.

The worker reads requests from stdin and writes responses to stdout. pyoxigraph can neither time out nor cancel a query,
and some queries abort the whole process. To stop a query, the parent process kills the worker and starts another.

The worker ignores Ctrl-C; the parent process handles it. A thread waits until stdin is closed and then ends the
process, even in the middle of a query, so that no worker outlives its parent. The thread that reads a request also runs
the request, because passing requests between threads would take as long as a small query.

Format of the messages: a request is a 4-byte big-endian length and JSON; a response is one letter (`R` result,
`E` error, `P` progress), a 4-byte big-endian length, and the payload.
"""

from __future__ import annotations

import errno
import io
import json
import os
import select
import signal
import struct
import threading
import time
from pathlib import Path
from typing import IO, Any, cast

import pyoxigraph as ox

from kgqa.errors import KgqaError, PartialResult, StoreUnavailable
from kgqa.graph.embedded.folder_errors import write_error
from kgqa.graph.embedded.sandbox import deny_network
from kgqa.text.hints import Place, shown_at

PROGRESS_SECONDS = 0.1


class _CappedWriter(io.RawIOBase):
    """A file-like object that collects a TSV result and raises PartialResult at the first row or byte beyond a cap."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self._rows = -1  # the header is a line too
        self._bytes = 0
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self.error: PartialResult | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        data = bytes(data)
        self._rows += data.count(b"\n")
        self._bytes += len(data)
        if self._rows > self._max_rows:
            self.error = PartialResult(
                f"The result has more than {self._max_rows:,} rows.", "Ask for fewer rows, or raise `max_rows`."
            )
        elif self._bytes > self._max_bytes:
            self.error = PartialResult(f"The result is larger than {self._max_bytes:,} bytes.", "Ask for fewer rows.")
        if self.error:
            raise self.error
        self.parts.append(data)
        return len(data)


class RequestHandler:
    """Runs requests on one open store."""

    def __init__(self) -> None:
        self._opened: ox.Store | None = None
        self._last_progress = 0.0

    @property
    def store(self) -> ox.Store:
        """The open store."""
        assert self._opened is not None, "the first request opens the store"
        return self._opened

    def handle(self, request: dict[str, Any]) -> bytes:
        """Run a request and return its result."""
        result: bytes = getattr(self, "do_" + request["op"])(request)
        return result

    def do_open(self, request: dict[str, Any]) -> bytes:
        path = request["path"]
        if request["mode"] != "write":
            _limit_memory(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
        try:
            self._opened = ox.Store(path) if request["mode"] == "write" else ox.Store.read_only(path)
        except (OSError, RuntimeError, ValueError) as error:
            if os.strerror(errno.EMFILE) in str(error) or "file descriptors" in str(error):
                raise StoreUnavailable(
                    "The graph needs more open files than the system allows.", "Raise the limit: ulimit -n 4096"
                ) from error
            if os.strerror(errno.ENOSPC) in str(error):
                folder = Path(path).parent.parent
                raise write_error(folder, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from error
            raise StoreUnavailable(f"The graph's data cannot be opened: {error}.", "Load the data again.") from error
        return b""

    def do_select(self, request: dict[str, Any]) -> bytes:
        result = self.store.query(request["query"])
        if not isinstance(result, ox.QuerySolutions):
            raise SyntaxError("not a SELECT query")
        writer = _CappedWriter(request["max_rows"], request["max_bytes"])
        try:
            result.serialize(cast(IO[bytes], writer), format=ox.QueryResultsFormat.TSV)
        finally:
            if writer.error:  # the engine may wrap the writer's exception
                raise writer.error from None
        return b"".join(writer.parts)

    def do_ask(self, request: dict[str, Any]) -> bytes:
        result = self.store.query(request["query"])
        if not isinstance(result, ox.QueryBoolean):
            raise SyntaxError("not an ASK query")
        return b"1" if result else b"0"

    def do_contained(self, request: dict[str, Any]) -> bytes:
        """Return one byte for each N-Quads line: 1 if the store contains the quad."""
        return bytes(quad in self.store for quad in ox.parse(request["lines"], format=ox.RdfFormat.N_QUADS))

    def do_edit(self, request: dict[str, Any]) -> bytes:
        """Remove and add N-Quads lines of one graph: in one transaction, or with `bulk` faster, but not atomically."""
        removes, adds = (list(ox.parse(request[key], format=ox.RdfFormat.N_QUADS)) for key in ("removes", "adds"))
        steps = []
        if removes:
            steps.append(f"DELETE DATA {_block(removes)}")
        if request["drop"]:
            steps.append(f"DROP SILENT GRAPH {removes[0].graph_name}")
        if adds and not request["bulk"]:
            steps.append(f"INSERT DATA {_block(adds)}")
        if steps:
            self.store.update(" ;\n".join(steps))
        if adds and request["bulk"]:
            self.store.bulk_extend(adds)
        return b""

    def do_copy(self, request: dict[str, Any]) -> bytes:
        """Copy the store into a new folder, by hard links where possible."""
        self.store.backup(request["target"])
        return b""

    def do_load(self, request: dict[str, Any]) -> bytes:
        from kgqa.graph.embedded.bulk_load import Journal, run_load
        from kgqa.graph.embedded.folder import GraphFolder

        _limit_memory(request["memory"])
        folder = GraphFolder(Path(request["folder"]))
        return json.dumps(run_load(folder, Journal.read(folder), self._progress)).encode()

    def _progress(self, fields: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._last_progress >= PROGRESS_SECONDS:
            self._last_progress = now
            send(b"P", json.dumps(fields).encode())


def _limit_memory(size: int) -> None:
    """Let this process use at most `size` bytes of memory: one query must not take all of the machine's."""
    import resource

    # RLIMIT_DATA, not RLIMIT_AS: threads and the engine reserve more addresses than they use
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard))


def _block(quads: list[ox.Quad]) -> str:
    """Return the quads of one graph as the block of a SPARQL update."""
    triples = "\n".join(f"{quad.subject} {quad.predicate} {quad.object} ." for quad in quads)
    graph = quads[0].graph_name
    return f"{{ {triples} }}" if isinstance(graph, ox.DefaultGraph) else f"{{ GRAPH {graph} {{ {triples} }} }}"


def send(kind: bytes, payload: bytes) -> None:
    """Write one response: a letter for its kind, the length and the payload."""
    data = kind + struct.pack(">I", len(payload)) + payload
    view = memoryview(data)
    while view:
        view = view[os.write(_OUT, view) :]


def error_payload(error: BaseException) -> bytes:
    """Return an exception's class name, message and hint as JSON; the engine's exceptions get a kgqa class."""
    hint = ""
    if isinstance(error, KgqaError):
        kind, message, hint = type(error).__name__, error.message, error.hint
    elif isinstance(error, SyntaxError):
        kind, message = "QueryRejected", f"Not valid SPARQL: {error.msg or error}"
    elif isinstance(error, (OSError, MemoryError)):
        kind, message = "StoreUnavailable", f"The graph cannot be opened or read: {str(error) or type(error).__name__}"
    elif isinstance(error, Exception):
        kind, message = "QueryRejected", f"The engine could not run the query: {error}"
    else:
        kind, message = "StoreCrashed", f"The engine failed with an internal error: {error}"
    return json.dumps({"kind": kind, "message": message, "hint": hint}).encode()


def _end_with_parent() -> None:
    closed = select.poll()
    closed.register(0, 0)  # only the closing of the other end is reported
    closed.poll()
    os._exit(0)


def _read_request() -> dict[str, Any]:
    (size,) = struct.unpack(">I", _read_exactly(4))
    request: dict[str, Any] = json.loads(_read_exactly(size))
    return request


def _read_exactly(size: int) -> bytes:
    parts = []
    while size:
        data = os.read(0, size)
        if not data:
            os._exit(0)  # the parent closed the pipe or ended, so the result is not needed
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def main() -> None:
    """Serve requests until the parent ends."""
    global _OUT  # noqa: PLW0603 - send() is called from everywhere
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    deny_network()  # before other threads start, so that they inherit the restriction
    # responses go to the original stdout, accidental prints to stderr
    _OUT = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    handler = RequestHandler()
    while True:
        request = _read_request()
        with shown_at(Place(**request.pop("place"))):
            _respond(handler, request)


def _respond(handler: RequestHandler, request: dict[str, Any]) -> None:
    try:
        send(b"R", handler.handle(request))
    except BaseException as error:  # noqa: BLE001 - reported to the parent
        try:
            send(b"E", error_payload(error))
        except OSError:
            os._exit(0)
        if not isinstance(error, Exception):
            os._exit(1)


_OUT = 1

if __name__ == "__main__":
    main()
