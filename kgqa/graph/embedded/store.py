"""The embedded store: a graph folder queried in worker processes that can be killed."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import structs

from kgqa.errors import QueryRejected, StoreBusy, StoreError, StoreUnavailable
from kgqa.graph.editing import EditHistory, net_changes
from kgqa.graph.embedded.folder import GraphFolder, disk_errors
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.records import (
    MAX_TRANSACTION,
    Change,
    GraphHash,
    GraphMeta,
    contained,
    parts,
    stored_triples,
)
from kgqa.graph.embedded.workers import Worker, WorkerKilled, WorkerPool
from kgqa.graph.query.text import decode_tsv
from kgqa.graph.query.tokens import error_in, prepare_for_engine, to_standard_sparql
from kgqa.graph.store import (
    DEFAULT_MAX_ROWS,
    DEFAULT_TIMEOUT,
    Capabilities,
    EditReport,
    LoadReport,
    OnError,
    Progress,
    Rows,
    Store,
)
from kgqa.model import Triple
from kgqa.text.hints import Command, Hint
from kgqa.text.words import counted

MAX_RESULT_BYTES = 512 << 20
MAX_QUERY_CHARS = 4 << 20
MAX_TRIES = 1000
"""How often a store tries to lock the published generation while other processes publish."""


class EmbeddedStore(Store):
    """A graph folder opened for reading or, with `writable`, for reading and editing.

    A store opened for reading uses up to `workers` processes, each of which runs one query at a time. It reads the
    generation that was published when it was opened; `refresh` changes to a later one.

    A store opened for editing works on a copy of the published generation, in a single worker process. Its own queries
    see its edits at once, other processes after `publish`. `close` publishes, too, and so does the end of a
    with-statement, unless an exception ended it: then the edits since the last `publish` are discarded. Edits that a
    killed process has not published are lost; `notice` of the next store that is opened for editing says how many.

    Args:
        path: the graph folder.
        writable: whether to allow edits. Only one process at a time can have a folder open for editing.
        create: whether to create an empty graph if the folder has none.
        workers: maximum number of worker processes; None for the number of CPUs, at most 4.
        timeout: default timeout of queries, in seconds.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy: see `GraphFolder.meta`, `GraphFolder.write_lock`,
            `GraphFolder.create_working_copy`.
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
        self.writable = writable
        self.timeout = timeout
        self._locks: list[BinaryIO] = []
        self._meta: GraphMeta
        self._published: dict[str, GraphHash]
        self._copy: int
        size = 1 if writable else max(1, workers or min(4, os.cpu_count() or 1))
        mode = "write" if writable else "read"
        self._pool = WorkerPool(size, mode=mode, locks=self._locks, name=self.location)
        self._history = EditHistory()
        self._editing = threading.RLock()
        self._uncertain: Change | None = None
        """An edit during which the worker died or was killed: it is not known yet whether it was made."""
        self._notice = ""
        if create and not self.folder.exists():
            load_graph(self.folder.path)
        self._finalizer = weakref.finalize(self, _close, self._pool, self._locks)
        try:
            if writable:
                self._open_copy()
            else:
                self._open_current()
        except BaseException:
            self._finalizer()
            raise

    def __repr__(self) -> str:
        return f"<EmbeddedStore {self.location} ({counted(self._meta.triples, 'triple')})>"

    # --- the Store protocol

    @property
    def location(self) -> str:
        return str(self.folder.path)

    @property
    def capabilities(self) -> Capabilities:
        # two folders can have the same fingerprint
        text = os.fsencode(f"{self._place}\0{self._meta.id}")
        return Capabilities(updates=self.writable, identity=f"-{hashlib.sha256(text).hexdigest()[:12]}")

    @cached_property
    def _place(self) -> Path:
        return self.folder.path.resolve()  # one read of the disk per part of the path, so not for each query

    @property
    def settings(self) -> dict[str, Any]:
        schema = self._meta.schema
        if schema and schema.endswith(".toml"):
            schema = str(self.folder.path / schema)
        more = {"schema": schema, "prefixes": self._meta.prefixes}
        return {**self._meta.settings, **{key: value for key, value in more.items() if value}}

    def triples_of(self, graphs: Sequence[str] = ()) -> int:
        self._settle()
        return self._meta.view(graphs).triples

    def fingerprint_of(self, graphs: Sequence[str] = ()) -> str:
        self._settle()
        return self._meta.view(graphs).fingerprint

    def version_of(self, graphs: Sequence[str] = ()) -> str:
        self._settle()
        return self._history.version_of(graphs or ("",))

    def edits_since(self, version: str, graphs: Sequence[str] = ()) -> list[EditReport] | None:
        self._settle()
        return self._history.since(version, graphs or ("",))

    @property
    def meta(self) -> GraphMeta:
        """The content of graph.json when this store was opened or last published, with the hashes after its edits."""
        return self._meta

    def notice(self) -> str | None:
        return self._notice if self.writable else self.folder.notice()

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        caps = {"max_rows": DEFAULT_MAX_ROWS if max_rows is None else max_rows, "max_bytes": MAX_RESULT_BYTES}
        data = self._query("select", query, timeout, **caps)
        try:
            return decode_tsv(data)
        except ValueError as error:
            raise QueryRejected(f"The result has a term that kgqa does not support: {error}.") from error

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        return bytes(self._query("ask", query, timeout)) == b"1"

    def edit(self, graph: str, adds: Iterable[Triple], removes: Iterable[Triple] = ()) -> EditReport:
        if not self.writable:
            raise QueryRejected(
                "This graph is open for reading only.",
                Hint(python="Open it for editing: open_store(PATH, writable=True)"),
            )
        wanted, unwanted = stored_triples(graph, adds), stored_triples(graph, removes)
        with self._editing:
            self._settle()
            try:
                # the only worker is held, so that a query sees all of the edit with its new version, or nothing
                with self._writer() as worker:
                    new, old = net_changes(wanted, unwanted, present=lambda lines: contained(worker, lines))
                    change = Change(graph, {line: wanted[line] for line in new}, {line: unwanted[line] for line in old})
                    if new or old:
                        self._uncertain = change
                        self._make(change, worker)
                    return self._record(change)
            except StoreError:
                with suppress(StoreError):
                    if report := self._settle():
                        return report
                raise

    def _make(self, change: Change, worker: Worker) -> None:
        """Make an edit: as one transaction or, if it is large, in parts on a copy that becomes the working copy."""
        if len(change.adds) + len(change.removes) <= MAX_TRANSACTION:
            change.make(worker)
            return
        old, generation = self._copy, self.folder.next_generation()
        with self.folder.copied(worker, generation):
            writer = Worker(self.folder.store_dir(generation), "write", self._locks)
            try:
                for lines in parts([*change.removes]):
                    writer.call({"op": "edit", "adds": "", "removes": lines})
                for lines in parts([*change.adds]):
                    writer.call({"op": "extend", "lines": lines})
            finally:
                writer.kill()
        self._copy = generation
        self._pool.open(self.folder.store_dir(generation))
        self.folder.remove_generation(old)

    def _record(self, change: Change) -> EditReport:
        """Record an edit that has been made, and return its report."""
        self._uncertain = None
        if change.adds or change.removes:
            self.folder.log_edit(self._meta.generation, len(change.adds), len(change.removes))
        self._meta = self._meta.changed({change.graph: change.hash()})
        return self._history.add(change.graph, change.adds.values(), change.removes.values())

    def _settle(self) -> EditReport | None:
        """Find out whether the last edit was made, if its worker died; if it was made, return its report."""
        if self._uncertain:
            with self._editing, self._writer() as worker:
                if self._uncertain and self._uncertain.was_made(worker):
                    return self._record(self._uncertain)
                self._uncertain = None
        return None

    @contextmanager
    def _writer(self) -> Iterator[Worker]:
        """Lend the only worker. It is killed after an error of the disk, after which the engine accepts no changes."""
        with disk_errors(self.folder.path), self._pool.lend() as worker:
            try:
                yield worker
            except BaseException:
                worker.kill()
                raise

    def publish(self) -> None:
        with self._editing:
            self._settle()
            if self.writable and self._meta.graphs != self._published:
                meta = structs.replace(self._meta, generation=self.folder.next_generation())
                try:
                    with self._writer() as worker, self.folder.copied(worker, meta.generation):
                        self.folder.publish(meta, self._copy)
                finally:
                    if self.folder.current() == meta.generation:  # even if what follows the publication was interrupted
                        self._meta, self._published = meta, meta.graphs

    def refresh(self) -> bool:
        """Change to the generation that another process has published since. Return whether there was one.

        Running queries finish on the old generation. Raises the same errors as opening the folder.
        """
        if self.writable or self.folder.meta().generation == self._meta.generation:
            return False
        self._reopen()
        return True

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
                "A store that is open for editing cannot load files.",
                "Close it, and load the files with ",
                Command("graph load"),
                " or a store that is open for reading.",
            )
        report = load_graph(self.folder.path, files, on_error=on_error, progress=progress, format=format)
        self._reopen()
        return report

    def close(self, *, publish: bool = True) -> None:
        """Publish the edits unless `publish` is False, end the worker processes and release the locks.

        Raises:
            StoreUnavailable: the edits cannot be published and are lost; call `publish` first to be able to repeat it.
        """
        if not self._finalizer.alive:
            return
        try:
            if publish:
                self.publish()
            if self.writable:
                self.folder.edit_log.unlink(missing_ok=True)
        finally:
            self._pool.close()
            if self.writable:  # removed before the lock is released
                self.folder.remove_generation(self._copy)
            self._finalizer()

    def __exit__(self, exception: type[BaseException] | None, *_: object) -> None:
        self.close(publish=exception is None)

    # --- workers

    def _query(self, op: str, query: str, timeout: float | None, **fields: Any) -> memoryview:
        """Run a query in a worker: once more if the worker is killed, and once in standard SPARQL if it is refused."""
        if len(query) > MAX_QUERY_CHARS:
            raise QueryRejected(
                f"The query is longer than {MAX_QUERY_CHARS:,} characters.", "Split it into shorter queries."
            )
        at = time.monotonic() + (self.timeout if timeout is None else timeout)
        prepared, killed = prepare_for_engine(query), False
        while True:
            try:
                with self._pool.lend(max(0.0, at - time.monotonic())) as worker:
                    request = {"op": op, "query": prepared, **fields}
                    return worker.call(request, seconds=max(0.001, at - time.monotonic()))
            except WorkerKilled:
                if killed:
                    raise
                killed = True
            except QueryRejected as error:
                standard = to_standard_sparql(prepared)
                if standard == prepared:
                    raise error_in(error, query, prepared) from None
                prepared = standard

    def _open_copy(self) -> None:
        """Lock the folder for writing, and open a copy of the published generation."""
        self.folder.meta()  # raises the error for a folder without a graph
        self._locks.append(self.folder.write_lock())
        self._meta = self.folder.meta()
        self._published = self._meta.graphs
        self._notice = self.folder.lost_edits()
        self._copy = self.folder.create_working_copy(self._meta.generation)
        self._pool.open(self.folder.store_dir(self._copy))

    def _open_current(self) -> None:
        """Lock and open the published generation instead of an earlier one.

        If another process publishes a new generation between reading and locking, the record is read again.
        """
        for _ in range(MAX_TRIES):
            _release(self._locks)
            self._meta = self.folder.meta()
            with suppress(OSError):  # the generation is being removed, or a read-only disk has no locks
                self._locks.append(self.folder.read_lock(self._meta.generation))
            if self.folder.current() == self._meta.generation:
                return self._pool.open(self.folder.store_dir(self._meta.generation))
        raise StoreBusy(
            f"{self.folder.path} is replaced again and again by loads of other processes.", "Try again later."
        )

    def _reopen(self) -> None:
        self._open_current()
        self._history.forget()


def _release(locks: list[BinaryIO]) -> None:
    while locks:
        locks.pop().close()


def _close(pool: WorkerPool, locks: list[BinaryIO]) -> None:
    pool.close()
    _release(locks)
