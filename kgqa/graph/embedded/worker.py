"""The worker process around the engine: `python -m kgqa.graph.embedded.worker FD`.

The worker reads requests from a connection and answers them, see `kgqa.graph.embedded.workers`. pyoxigraph can neither
time out nor cancel a query, and some queries abort the whole process. To stop a query, the parent process kills the
worker and starts another.

The worker ignores Ctrl-C; the parent process handles it. A thread waits until the connection is closed and then ends
the process, even in the middle of a query, so that no worker outlives its parent. The thread that reads a request also
runs the request, because passing requests between threads would take as long as a small query.

Queries with SERVICE or LOAD are refused before they reach a worker (`query.tokens`). In addition, on Linux the worker
process gives up the system calls that create sockets (seccomp in filter mode, see seccomp(2)).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, cast

import pyoxigraph as ox

from kgqa.errors import KgqaError, PartialResult, StoreUnavailable
from kgqa.text.hints import Place, shown_at

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
# for each machine type: the audit number of its ABI, and the numbers of the system calls socket and io_uring_setup
_MACHINES = {
    "x86_64": (0xC000003E, 41, 425),
    "aarch64": (0xC00000B7, 198, 425),
}
_X32_BIT = 0x40000000
# the codes of instructions of the filter, and its results
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EACCES
_OFFSET_NUMBER, _OFFSET_MACHINE = 0, 4


def deny_network() -> bool:
    """Give up the right to create sockets, for this thread and its future threads and processes. This cannot be undone.

    Returns:
        True if sockets are denied now; False on systems other than Linux, on unknown machine types, and on kernels
        without seccomp.
    """
    known = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or known is None or sys.maxsize < 1 << 32:
        return False
    machine, socket_call, ring_call = known
    steps = [
        (_LOAD, 0, 0, _OFFSET_MACHINE),
        (_JUMP_EQUAL, 0, 4, machine),  # refused: a different ABI has different call numbers
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        (_JUMP_AT_LEAST, 2, 0, _X32_BIT),
        (_JUMP_EQUAL, 1, 0, socket_call),
        (_JUMP_EQUAL, 0, 1, ring_call),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(instructions)))
    try:
        call = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    if call(_PR_SET_NO_NEW_PRIVS, 1, None, 0, 0) != 0:
        return False
    status: int = call(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program), 0, 0)
    return status == 0


class _CappedWriter:
    """A file-like object that collects a TSV result and raises PartialResult at the first row or byte beyond a cap."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self.data = bytearray()
        self.error: PartialResult | None = None
        self._rows = -1  # the header is a line too
        self._max_rows, self._max_bytes = max_rows, max_bytes

    def write(self, data: Any) -> int:
        self.data += data
        self._rows += bytes(data).count(b"\n")
        if self._rows > self._max_rows:
            self.error = PartialResult(
                f"The result has more than {self._max_rows:,} rows.", "Ask for fewer rows, or raise `max_rows`."
            )
        elif len(self.data) > self._max_bytes:
            self.error = PartialResult(f"The result is larger than {self._max_bytes:,} bytes.", "Ask for fewer rows.")
        if self.error:
            raise self.error
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""


class RequestHandler:
    """Runs requests on one open store.

    Args:
        report: called with the fields of `store.Progress` during a load.
    """

    def __init__(self, report: Callable[[dict[str, Any]], None] = lambda fields: None) -> None:
        self.store: ox.Store
        """The open store; the first request opens it."""
        self._report = report

    def handle(self, request: dict[str, Any]) -> bytes | bytearray:
        """Run a request and return its result."""
        result: bytes | bytearray = getattr(self, "do_" + request["op"])(request)
        return result

    def do_open(self, request: dict[str, Any]) -> bytes:
        path = request["path"]
        if request["mode"] != "write":
            _limit_memory(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
        try:
            self.store = ox.Store(path) if request["mode"] == "write" else ox.Store.read_only(path)
        except (OSError, RuntimeError, ValueError) as error:
            from kgqa.graph.embedded.folder import system_error  # with numpy, which no query needs

            raise system_error(Path(path).parent.parent, error) or StoreUnavailable(
                f"The graph's data cannot be opened: {error}.", "Load the data again."
            ) from error
        return b""

    def do_select(self, request: dict[str, Any]) -> bytearray:
        result = self.store.query(request["query"])
        if not isinstance(result, ox.QuerySolutions):
            raise SyntaxError("not a SELECT query")
        writer = _CappedWriter(request["max_rows"], request["max_bytes"])
        try:
            result.serialize(cast(IO[bytes], writer), format=ox.QueryResultsFormat.TSV)
        finally:
            if writer.error:  # the engine may wrap the writer's exception
                raise writer.error from None
        return writer.data

    def do_ask(self, request: dict[str, Any]) -> bytes:
        result = self.store.query(request["query"])
        if not isinstance(result, ox.QueryBoolean):
            raise SyntaxError("not an ASK query")
        return b"1" if result else b"0"

    def do_contained(self, request: dict[str, Any]) -> bytes:
        """Return one byte for each N-Quads line: 1 if the store contains the quad."""
        return bytes(quad in self.store for quad in ox.parse(request["lines"], format=ox.RdfFormat.N_QUADS))

    def do_edit(self, request: dict[str, Any]) -> bytes:
        """Remove and add N-Quads lines of one graph in one transaction."""
        removes, adds = (list(ox.parse(request[key], format=ox.RdfFormat.N_QUADS)) for key in ("removes", "adds"))
        parts = (("DELETE", removes), ("INSERT", adds))
        self.store.update(" ;\n".join(f"{name} DATA {_block(quads)}" for name, quads in parts if quads))
        # the engine would keep an empty graph
        graph = (removes or adds)[0].graph_name
        if isinstance(graph, ox.NamedNode) and not any(self.store.quads_for_pattern(None, None, None, graph)):
            self.store.remove_graph(graph)
        return b""

    def do_extend(self, request: dict[str, Any]) -> bytes:
        """Add N-Quads lines: faster and with less memory than `edit`, but not atomically."""
        self.store.bulk_load(request["lines"].encode(), format=ox.RdfFormat.N_QUADS)
        return b""

    def do_copy(self, request: dict[str, Any]) -> bytes:
        """Copy the store into a new folder, by hard links where possible."""
        self.store.backup(request["target"])
        return b""

    def do_load(self, request: dict[str, Any]) -> bytes:
        from kgqa.graph.embedded.loading import run_load

        _limit_memory(request["memory"])
        with shown_at(Place(**request["place"])):
            try:
                return run_load(Path(request["folder"]), self._report)
            except KgqaError as error:  # its hint is put into words here
                raise type(error)(error.message, error.hint) from error


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


def main(fd: int) -> None:
    """Serve requests until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    deny_network()  # before other threads start, so that they inherit the restriction
    threading.Thread(target=_end_with_parent, args=(fd,), daemon=True).start()
    connection = Connection(fd)
    handler = RequestHandler(lambda fields: connection.send_bytes(b"P" + json.dumps(fields).encode()))
    while True:
        request = json.loads(connection.recv_bytes())
        try:
            connection.send_bytes(b"R" + handler.handle(request))
        except BaseException as error:  # noqa: BLE001 - reported to the parent
            connection.send_bytes(b"E" + error_payload(error))
            if not isinstance(error, Exception):
                os._exit(1)


def _end_with_parent(fd: int) -> None:
    closed = select.poll()
    closed.register(fd, 0)  # only the closing of the other end is reported
    closed.poll()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
