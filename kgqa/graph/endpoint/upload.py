"""Edits graphs and uploads RDF files by SPARQL updates. This works with every server, but is slow.

All files of an upload are checked before the first triple is sent. If the connection is lost, the triples sent so far
stay in the graph. Loading the same files again then adds only the missing triples.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from kgqa.errors import InvalidTerm, LoadError, PartialResult, QueryRejected, StoreError, StoreTimeout, StoreUnavailable
from kgqa.graph.detection import EDIT_GRAPHS, named_graphs
from kgqa.graph.editing import batches, terms
from kgqa.graph.embedded.tsv import decode_term
from kgqa.graph.query.templates import render, render_term
from kgqa.graph.rdf.files import FileJob, MalformedLines, file_job
from kgqa.graph.rdf.upload import UploadFiles, upload_problem
from kgqa.graph.store import LoadReport, OnError, Progress, Store
from kgqa.model import Entity, Triple
from kgqa.text.hints import Option
from kgqa.text.words import clean

INLINE_TRIPLES = 200
"""The largest edit whose triples are written into the update itself. Virtuoso compiles at most about 900."""
BATCH_TRIPLES = 1_000
BATCH_CHARS = 200_000
"""Limits of one update. Virtuoso's compiler runs out of memory between 2,000 triples (270 kB) and 5,000 (680 kB)."""
EDIT_SECONDS = 600.0
"""Time limit of the update that moves the triples of a large edit into its graph."""


class SendUpdate(Protocol):
    """Sends the update queries/TEMPLATE.rq with typed values."""

    def __call__(self, template: str, *, timeout: float | None = None, **values: Any) -> None: ...


def send_edit(send: SendUpdate, graph: str, adds: Sequence[Triple], removes: Sequence[Triple]) -> None:
    """Remove and add triples of a graph in one update.

    A large edit is first written to two graphs of its own, and then moved in one update. A server that ends in between
    leaves these two graphs behind, and the edited graph as it was.
    """
    name, everything = Entity(graph), [*removes, *adds]
    if len(everything) <= INLINE_TRIPLES and len(list(batches(everything, INLINE_TRIPLES, BATCH_CHARS))) <= 1:
        send("edit", graph=name, adds=list(map(terms, adds)), removes=list(map(terms, removes)))
        return
    edit = f"{EDIT_GRAPHS}{uuid.uuid4()}"
    staged = {Entity(f"{edit}:adds"): adds, Entity(f"{edit}:removes"): removes}
    try:
        for each, triples in staged.items():
            for batch in batches(triples, BATCH_TRIPLES, BATCH_CHARS):
                send("insert_triples", graph=each, triples=list(map(terms, batch)))
        added, removed = staged
        send("edit_staged", graph=name, adds=added, removes=removed, timeout=EDIT_SECONDS)
    finally:
        for each in staged:
            with suppress(StoreError):
                send("clear_graph", graph=each)


UPDATE_SECONDS = 120.0
MAX_REJECTED = 100
"""The upload stops if the server rejects more lines than this: the lines themselves are then probably not the cause."""
MAX_GRAPHS = 10_000
DEFAULT_GRAPH = "urn:kgqa:graph"


class UpdatableStore(Store, Protocol):
    """A store that accepts updates over HTTP, such as `EndpointStore`."""

    writable: str | Collection[str] | None
    """The graph that `update` may write to; None if writing is not allowed."""

    def update(self, template: str, *, graph: str, timeout: float | None = None, **values: Any) -> None:
        """Send the update queries/TEMPLATE.rq with typed values."""
        ...

    def invalidate(self) -> None:
        """Forget the fingerprint and the results cached under it."""
        ...


def choose_target_graph(store: UpdatableStore) -> str:
    """Choose the graph to load into by default: the server's only user graph, or DEFAULT_GRAPH if it has none.

    Raises:
        LoadError: the server has several user graphs. StoreError: see `Store.select`.
    """
    try:
        found = named_graphs(store)
    except (StoreTimeout, PartialResult) as error:
        raise LoadError(
            f"The graph to load into cannot be chosen: {error.message}",
            "Name the graph to load into: ",
            Option("graph-iri", "IRI"),
            ".",
        ) from error
    if len(found) > 1:
        names = ", ".join(map(clean, found[:10])) + (", ..." if len(found) > 10 else "")
        raise LoadError(
            f"{store.location} has several graphs.",
            "Name the graph to load into: ",
            Option("graph-iri", "IRI"),
            f". Graphs: {names}",
        )
    return found[0] if found else DEFAULT_GRAPH


def target_graph(store: UpdatableStore) -> str:
    """Return the graph that the store may write to.

    Raises:
        LoadError: the store has no writable graph, the graph's name is not an IRI, or the graph is a system graph of
            the server.
    """
    graph = store.writable
    if not graph or not isinstance(graph, str):
        raise LoadError(
            f"{store.location} is open for reading only.",
            "Name the graph to write to: ",
            Option("graph-iri", "IRI"),
            ".",
        )
    try:
        render_term(Entity(graph))
    except InvalidTerm as error:
        raise LoadError(
            f"{clean(graph)[:200]} is not an IRI.",
            "Name the graph as in ",
            Option("graph-iri", "http://example.org/mine"),
        ) from error
    if graph in store.capabilities.system_graphs:
        raise LoadError(
            f"<{graph}> is a system graph of the server.", "Name another graph: ", Option("graph-iri", "IRI")
        )
    return graph


def check_updates(store: UpdatableStore, graph: str) -> None:
    """Check that the server accepts updates, by sending an update that changes nothing.

    Raises:
        QueryRejected, StoreUnavailable, StoreTimeout: the update failed; the message gives the reason.
    """
    subject, relation, value = (Entity(uuid.uuid4().urn) for _ in range(3))
    try:
        store.update("doctor_update", graph=graph, subject=subject, relation=relation, object=value)
    except QueryRejected as error:
        raise QueryRejected(
            f"{store.location} rejects updates, so nothing can be loaded.",
            f"Check that the server allows updates for this user (endpoint.user). {error}",
        ) from error


def _count_before(store: UpdatableStore, graph: str) -> int | None:
    """Count the triples of a graph before the upload; if the graph does not exist, do not query it.

    If a missing graph is queried, Virtuoso's query planner still assumes after the upload that the graph is empty.
    Counting a million triples then takes minutes.
    """
    with suppress(StoreTimeout, PartialResult):
        rows = store.select(render("named_graphs", limit=MAX_GRAPHS), fresh=True)
        if len(rows) < MAX_GRAPHS and not any(row[0] == Entity(graph) for row in rows):
            return 0
    return store.triples_of([graph])


def load_by_updates(
    store: UpdatableStore,
    files: Iterable[str | Path],
    *,
    on_error: OnError = "fail",
    progress: Callable[[Progress], None] | None = None,
    format: str | None = None,
) -> LoadReport:
    """Add the triples of RDF files to the store's writable graph, in updates of about a thousand triples each.

    Args:
        on_error: what to do with a line that is malformed or that the server rejects: `fail` stops the upload, `skip`
            counts the line and continues.
        format: the file extension of the format, if the names of the files have no extension.

    Returns:
        A report on the writable graph; `added` and `triples` are None if counting took too long.

    Raises:
        LoadError: a file is missing, malformed or truncated, or has triples of other graphs. Nothing was sent.
        StoreError, KeyboardInterrupt: the upload was interrupted; the message says how much was sent.
    """
    started, progress = time.monotonic(), progress or (lambda progress: None)
    jobs = [file_job(Path(file), format) for file in files]
    if not jobs:
        raise LoadError("No file to load.", "Name at least one RDF file.")
    graph = target_graph(store)
    check_updates(store, graph)
    malformed = MalformedLines(on_error)
    with tempfile.TemporaryDirectory(prefix="kgqa-load-") as staging:
        source = UploadFiles(
            jobs, graph, staging=Path(staging), malformed=malformed, unfit=upload_problem, progress=progress
        )
        try:
            source.check()
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Nothing was loaded.") from None
        before = _count_before(store, graph)
        upload, lines = _Upload(store, graph, malformed), 0
        for job in jobs:
            sent = 0
            try:
                for block, bytes_done in source.blocks(job):
                    for batch in batches(
                        list(zip(block.lines, block.numbers)),
                        BATCH_TRIPLES,
                        BATCH_CHARS,
                        length=lambda pair: len(pair[0]),
                    ):
                        upload.send(batch, job)
                    sent = block.end
                    progress(Progress(job.name, bytes_done, job.size, lines + sent))
            except (StoreError, KeyboardInterrupt) as error:
                loaded = f"the first {sent:,} lines of {job.name}" if sent else f"perhaps a few lines of {job.name}"
                loaded += f" and {lines:,} lines of the files before it" if lines else ""
                raise type(error)(
                    f"{error} Loaded into <{graph}> so far: {loaded}. Load the same files again to add the missing "
                    "triples.".lstrip()
                ) from error
            lines += sent
    progress(Progress("", 0, 0, source.lines, "finishing"))
    store.invalidate()
    after = store.triples_of([graph])
    return LoadReport(
        files=len(jobs),
        lines=source.lines,
        added=None if before is None or after is None else after - before,
        triples=after,
        malformed=malformed.count,
        examples=tuple(malformed.examples),
        fingerprint=store.fingerprint_of([graph]),
        seconds=round(time.monotonic() - started, 3),
    )


class _Upload:
    """Inserts lines into a graph, and finds the lines that the server rejects."""

    def __init__(self, store: UpdatableStore, graph: str, malformed: MalformedLines) -> None:
        self._store = store
        self._graph = graph
        self._malformed = malformed
        self._most_malformed = malformed.count + MAX_REJECTED

    def send(self, lines: Sequence[tuple[bytes, int]], job: FileJob) -> None:
        """Send canonical lines, given with their numbers in a file, in one update; if it is rejected, in halves."""
        triples = [tuple(map(decode_term, line.decode()[:-3].split(" ", 2))) for line, _ in lines]
        try:
            self._store.update("insert_triples", graph=self._graph, triples=triples, timeout=UPDATE_SECONDS)
        except (QueryRejected, StoreUnavailable) as error:
            if not self._is_rejection(error):
                raise
            if len(lines) > 1:
                half = len(lines) // 2
                self.send(lines[:half], job)
                self.send(lines[half:], job)
                return
            number = lines[0][1]
            if self._malformed.on_error == "fail":
                hint = ("Correct the line, or skip such lines: ", Option("on-error", "skip"), ".")
                raise QueryRejected(f"{job.name}, line {number}: {error}", *hint) from error
            if self._malformed.count >= self._most_malformed:
                raise QueryRejected(
                    f"{error} The server rejected {MAX_REJECTED} lines before this one.",
                    "Check the files and the server.",
                ) from error
            self._malformed.add(job.name, number, str(error))

    def _is_rejection(self, error: StoreError) -> bool:
        """Return whether an update failed because of its triples; some servers report an internal error then."""
        if isinstance(error, StoreUnavailable):
            try:
                check_updates(self._store, self._graph)
            except StoreError:
                return False
        return True
