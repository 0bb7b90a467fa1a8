"""The embedded store: a graph folder queried in worker processes that can be killed."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kgqa.errors import QueryRejected, StoreBusy, StoreTimeout, StoreUnavailable
from kgqa.graph.editing import net_changes, present_triples, terms
from kgqa.graph.embedded.folder import GraphFolder, GraphMeta, Lock, fingerprint
from kgqa.graph.embedded.loading import create_empty_graph, load_graph
from kgqa.graph.embedded.tsv import decode_tsv
from kgqa.graph.embedded.worker_client import Worker, WorkerKilled
from kgqa.graph.query.templates import render
from kgqa.graph.query.tokens import prepare_for_engine
from kgqa.graph.query.virtuoso_dialect import to_standard_sparql
from kgqa.graph.store import (
    DEFAULT_MAX_ROWS,
    DEFAULT_TIMEOUT,
    Capabilities,
    EditReport,
    LoadReport,
    OnError,
    Progress,
    Rows,
)
from kgqa.model import Entity, Triple

MAX_RESULT_BYTES = 512 << 20
MAX_QUERY_CHARS = 4 << 20


class EmbeddedStore:
    """A graph folder opened for reading or, with `writable`, for reading and updates.

    A store opened for reading uses up to `workers` processes, each of which runs one query at a time. With `writable`,
    a single worker process runs all queries and updates, and no other process can open the folder.

    Args:
        path: the graph folder.
        writable: whether to allow updates.
        create: whether to create an empty graph if the folder has none.
        workers: maximum number of worker processes; None for the number of CPUs, at most 4.
        timeout: default timeout of queries and updates, in seconds.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy: see `GraphFolder.meta` and `GraphFolder.write_lock`.
    """

    def __init__(
        self,
        path: Path,
        *,
        writable: bool = False,
        create: bool = False,
        workers: int | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self.folder = GraphFolder(Path(path))
        self.location = str(self.folder.path)
        self.writable = writable
        self.timeout = timeout
        self._size = 1 if writable else max(1, workers or min(4, os.cpu_count() or 1))
        self._slots = threading.BoundedSemaphore(self._size)
        self._guard = threading.Lock()
        self._idle: list[Worker] = []
        self._busy: list[Worker] = []
        self._closed = False
        self._updates = 0
        self._locks: list[Lock] = []
        if create and not self.folder.exists():
            create_empty_graph(self.folder)
        self._meta = self._lock_current()
        self._finalizer = weakref.finalize(self, _close, self._idle, self._busy, self._locks)
        self._give_back(self._start())  # the worker process starts while the caller continues

    has_free_slot = True

    def __repr__(self) -> str:
        count = self._meta.triples
        known = "" if self._meta.stale else f" ({count:,} triple{'s' if count != 1 else ''})"
        return f"<EmbeddedStore {self.location}{known}>"

    # --- the Store protocol

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(updates=self.writable, identity=self.identity)

    @property
    def settings(self) -> dict[str, Any]:
        schema = self.meta.schema
        if schema and schema.endswith(".toml"):
            schema = str(self.folder.path / schema)
        return {**self.meta.settings, **({"schema": schema} if schema else {})}

    def triples_of(self, graphs: Sequence[str] = ()) -> int | None:
        return self.triples

    def may_scan(self, graphs: Sequence[str] = ()) -> bool:
        return True

    def fingerprint_of(self, graphs: Sequence[str] = ()) -> str:
        return self.fingerprint

    def version_of(self, graphs: Sequence[str] = ()) -> str:
        return self.version

    def edits_since(self, version: str, graphs: Sequence[str] = ()) -> list[EditReport] | None:
        return [] if version == self.version else None

    def responds(self, seconds: float) -> bool:
        return True

    def edit(self, graph: str, adds: Iterable[Triple], removes: Iterable[Triple] = ()) -> EditReport:
        added, removed = net_changes(adds, removes, present=lambda triples: present_triples(self, graph, triples))
        if added or removed:
            values = {"adds": [terms(triple) for triple in added], "removes": [terms(triple) for triple in removed]}
            self.update(render("edit", graph=Entity(graph) if graph else None, **values))
        return EditReport(graph, tuple(added), tuple(removed), self.version, "")

    def publish(self) -> None:
        if self.writable and self._meta.stale:
            self._rehash()

    @property
    def fingerprint(self) -> str:
        if self._meta.stale:
            self._rehash()
        return self._meta.fingerprint

    @property
    def identity(self) -> str:
        """A hash of this folder and generation for cache keys, because two folders can have the same fingerprint."""
        created = (
            f"{self.folder.path.resolve()}\0{self._meta.generation}\0{self.folder.created_ns(self._meta.generation)}"
        )
        return f"-{hashlib.sha256(os.fsencode(created)).hexdigest()[:12]}"

    @property
    def version(self) -> str:
        return f"{self._meta.generation}.{self._updates}"

    @property
    def meta(self) -> GraphMeta:
        """The content of graph.json: number of triples, schema, settings, files."""
        if self._meta.stale:
            self._rehash()
        return self._meta

    @property
    def triples(self) -> int:
        return self.meta.triples

    def notice(self) -> str | None:
        return self.folder.interruption_notice()

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        caps = {"max_rows": DEFAULT_MAX_ROWS if max_rows is None else max_rows, "max_bytes": MAX_RESULT_BYTES}
        data = self._query({"op": "select", **caps}, query, timeout)
        try:
            return decode_tsv(data)
        except ValueError as error:
            raise QueryRejected(f"The result has a term that kgqa does not support: {error}.") from error

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        return self._query({"op": "ask"}, query, timeout) == b"1"

    def update(self, update: str, *, timeout: float | None = None) -> None:
        if not self.writable:
            raise QueryRejected("This graph is open for reading only. Open it with writable=True to change it.")
        text = self._prepared(update)
        if not self._meta.stale:  # marked as stale before the update, in case of a crash
            self._meta = self.folder.update_meta(stale=True)
        try:
            self._call({"op": "update", "update": text}, timeout)
        finally:  # changed only after the update, because tables computed during the update may be outdated
            self._updates += 1

    def load(
        self,
        files: Iterable[str | Path],
        *,
        on_error: OnError = "fail",
        progress: Callable[[Progress], None] | None = None,
        format: str | None = None,
    ) -> LoadReport:
        if self.writable:
            raise StoreUnavailable(
                "A store that is open for updates cannot load files. Close it, and load the files with "
                "kgqa graph load or a store that is open for reading."
            )
        report = load_graph(self.folder.path, files, on_error=on_error, progress=progress, format=format)
        self._reopen()
        return report

    def close(self) -> None:
        try:
            if self.writable and self._meta.stale and not self._closed:
                self._rehash()
        finally:  # if hashing fails, e.g. on a full disk, the graph stays marked as stale
            self._closed = True
            self._finalizer()

    def __enter__(self) -> EmbeddedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- workers

    def worker_pids(self) -> list[int]:
        """Return the process ids of idle workers."""
        with self._guard:
            return [worker.pid for worker in self._idle]

    def _query(self, request: dict[str, Any], query: str, timeout: float | None) -> bytes:
        prepared = self._prepared(query)
        try:
            return self._call({**request, "query": prepared}, timeout)
        except QueryRejected:
            standard = to_standard_sparql(prepared)
            if standard == prepared:
                raise
            return self._call({**request, "query": standard}, timeout)

    def _prepared(self, query: str) -> str:
        if len(query) > MAX_QUERY_CHARS:
            raise QueryRejected(
                f"The query is longer than {MAX_QUERY_CHARS:,} characters. Split it into shorter queries."
            )
        return prepare_for_engine(query)

    def _lock_current(self) -> GraphMeta:
        """Lock the current generation and return its record.

        If another process publishes a new generation between reading and locking, the record is read again.
        """
        for last_try in (False, False, True):
            meta = self.folder.meta()
            try:
                if self.writable:
                    self._locks.append(self.folder.write_lock())
                lock = self.folder.read_lock(meta.generation, exclusive=self.writable)
                self._locks += [lock] if lock else []
                if self.folder.meta().generation == meta.generation:
                    return meta
            except BaseException:
                self._drop_locks()
                if last_try or self.folder.meta().generation == meta.generation:
                    raise
            self._drop_locks()
        raise StoreBusy(f"{self.folder.path} is replaced again and again by loads of other processes. Try again later.")

    def _drop_locks(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def _start(self) -> Worker:
        store = str(self.folder.store_dir(self._meta.generation))
        mode = "write" if self.writable else "read"
        worker = Worker({"path": store, "mode": mode}, tuple(lock.fd for lock in self._locks))
        worker.generation = self._meta.generation
        return worker

    def _give_back(self, worker: Worker) -> None:
        with self._guard:
            if self._closed or worker.generation != self._meta.generation:
                worker.kill()
            else:
                self._idle.append(worker)

    @contextmanager
    def _worker(self, timeout: float) -> Iterator[Worker]:
        if self._closed:
            raise StoreUnavailable(f"The graph at {self.folder.path} has been closed. Open it again.")
        if not self._slots.acquire(timeout=timeout):
            raise StoreTimeout(
                f"All {self._size} workers were busy for {timeout:g} s. Try again, or allow more time: --timeout"
            )
        worker = None
        try:
            with self._guard:
                while self._idle and worker is None:
                    worker = self._idle.pop()
                    if not worker.alive:  # the idle worker was killed from outside
                        worker.kill()
                        worker = None
            worker = worker or self._start()
            self._busy.append(worker)
            yield worker
        finally:
            if worker in self._busy:
                self._busy.remove(worker)
            if worker is not None and worker.alive:
                self._give_back(worker)
            self._slots.release()

    def _call(self, request: dict[str, Any], timeout: float | None) -> bytes:
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        try:
            return self._call_once(request, deadline)
        except WorkerKilled:
            if request["op"] == "update":
                raise  # the update is not repeated, because it may have been applied in part
        return self._call_once(request, deadline)

    def _call_once(self, request: dict[str, Any], deadline: float) -> bytes:
        with self._worker(max(0.0, deadline - time.monotonic())) as worker:
            return worker.call(request, timeout=max(0.001, deadline - time.monotonic()))

    # --- records

    def _rehash(self) -> None:
        if not self.writable:
            raise StoreUnavailable(
                f"The graph at {self.folder.path} was updated and not closed properly. Open and close it once with "
                "kgqa.graph.opening.open_store(PATH, writable=True), or load the data again."
            )
        data = np.frombuffer(self._call({"op": "hash"}, 3600.0), dtype="<u8")
        self.folder.save_hashes(self._meta.generation, data)
        self._meta = self.folder.update_meta(stale=False, triples=int(data.size), fingerprint=fingerprint(data))

    def _reopen(self) -> None:
        with self._guard:
            idle, self._idle[:] = list(self._idle), []
        for worker in idle:
            worker.kill()
        self._drop_locks()
        self._meta = self._lock_current()


def _close(idle: list[Worker], busy: list[Worker], locks: list[Lock]) -> None:
    while idle:
        idle.pop().kill()
    for worker in list(busy):
        worker.end()  # the thread that waits for the worker's response gets StoreCrashed
    while locks:
        locks.pop().release()
