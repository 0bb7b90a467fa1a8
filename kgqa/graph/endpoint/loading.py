"""Loading files into a server that takes SPARQL updates: what works everywhere, and slowly.

Everything is judged before the first triple is sent. What was sent stays when the connection is lost; a triple that is
there already is no new one, so the same files may be loaded again.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

import pyoxigraph as ox

from kgqa.errors import InvalidTerm, LoadError, PartialResult, QueryRejected, StoreError, StoreTimeout, StoreUnavailable
from kgqa.graph.detection import user_graphs
from kgqa.graph.endpoint.profiles import Profile
from kgqa.graph.query.templates import render, render_term
from kgqa.graph.rdf.files import FileJob, MalformedLines, file_job
from kgqa.graph.rdf.upload import UploadBlock, UploadFiles, upload_problem
from kgqa.graph.store import LoadReport, OnError, Progress, Store, single_count
from kgqa.model import Entity, Literal
from kgqa.words import clean

BATCH_TRIPLES = 1_000
BATCH_BYTES = 200_000
"""Of one update. Virtuoso's compiler runs out of memory between 2,000 triples (270 kB) and 5,000 (680 kB)."""
UPDATE_SECONDS = 120.0
MOST_REFUSED = 100
"""Lines that the server may refuse, where such lines are left out, before something else must be wrong."""
COUNT_SECONDS = 600.0
MANY_GRAPHS = 10_000
DEFAULT_GRAPH = "urn:kgqa:graph"


class UpdatableStore(Store, Protocol):
    """A server that takes updates, as `EndpointStore` is one."""

    @property
    def url(self) -> str:
        """The address that takes queries and updates."""
        ...

    @property
    def writable(self) -> str | None:
        """The graph that `update` may write to."""
        ...

    @property
    def profile(self) -> Profile:
        """What kind of server it is."""
        ...

    def forget(self) -> None:
        """Drop what is known of the graph as it was."""
        ...


def graph_to_write(store: UpdatableStore) -> str:
    """The graph to load into where nobody named one: the only one of the user's that is there, else `DEFAULT_GRAPH`.

    Raises:
        LoadError: there are several. And what `select` raises.
    """
    try:
        found = user_graphs(store)
    except (StoreTimeout, PartialResult) as error:
        raise LoadError(
            f"Which graphs {store.url} has could not be told in time: name one, --graph-iri IRI."
        ) from error
    if len(found) > 1:
        names = ", ".join(map(clean, found[:10])) + (", ..." if len(found) > 10 else "")
        raise LoadError(
            f"{store.url} has several graphs: say which one to load into, --graph-iri IRI. There are {names}"
        )
    return found[0] if found else DEFAULT_GRAPH


def writable_graph(store: UpdatableStore) -> str:
    """The one graph that the store may write to.

    Raises:
        LoadError: none was named, it is no IRI, or it is one of the server's own.
    """
    graph = store.writable
    if not graph:
        raise LoadError(
            f"{store.url} is open for reading only: name the graph that may be written to, --graph-iri IRI."
        )
    try:
        render_term(Entity(graph))
    except InvalidTerm as error:
        raise LoadError(f"{clean(graph)[:200]} is no IRI of a graph: --graph-iri http://example.org/mine") from error
    if graph in store.profile.own_graphs:
        raise LoadError(f"<{graph}> belongs to the server itself. Choose a graph of your own: --graph-iri IRI")
    return graph


def check_updates(store: UpdatableStore, graph: str) -> None:
    """Find out whether the server takes updates, by one that changes nothing.

    Raises:
        QueryRejected, StoreUnavailable, StoreTimeout: it does not; the message says why.
    """
    nobody = [Entity(uuid.uuid4().urn) for _ in range(3)]
    update = render("doctor_update", graph=Entity(graph), subject=nobody[0], relation=nobody[1], object=nobody[2])
    try:
        store.update(update)
    except QueryRejected as error:
        raise QueryRejected(
            f"{store.url} takes no updates from you, so nothing can be loaded. Is it meant to be written to, and may "
            f"this user (endpoint.user) do so? {error}"
        ) from error


def count_in(store: UpdatableStore, graph: str) -> int | None:
    """How many triples a graph has now; None where counting took too long."""
    try:
        query = render("count_triples", view=(Entity(graph),))
        return single_count(store.select(query, timeout=COUNT_SECONDS, fresh=True))
    except (StoreTimeout, PartialResult):
        return None


def _count_before(store: UpdatableStore, graph: str) -> int | None:
    """As `count_in`, but a graph that is not there is not asked about: once asked, Virtuoso takes it for empty when it
    plans queries, also after the load, and then a count of a million triples takes it minutes.
    """
    try:
        rows = store.select(render("named_graphs", limit=MANY_GRAPHS), fresh=True)
        if len(rows) < MANY_GRAPHS and not any(row[0] == Entity(graph) for row in rows):
            return 0
    except (StoreTimeout, PartialResult):
        pass
    return count_in(store, graph)


def load_by_updates(
    store: UpdatableStore,
    files: Iterable[str | Path],
    *,
    on_error: OnError = "fail",
    progress: Callable[[Progress], None] | None = None,
    format: str | None = None,
) -> LoadReport:
    """Add the triples of RDF files to the store's writable graph, by updates of about a thousand triples.

    Args:
        on_error: a malformed line, or one that the server refuses: `fail`, or `skip` it and count it.
        format: the ending that stands for the format, where the files' names do not tell.

    Returns:
        The report. `added` and `triples` are of the writable graph, None where the server did not count in time.

    Raises:
        LoadError: a file is missing, malformed, cut short, or has triples of other graphs; nothing was sent.
        StoreError, KeyboardInterrupt: interrupted; the message says how much is in.
    """
    started = time.monotonic()
    jobs = [file_job(Path(file), format) for file in files]
    if not jobs:
        raise LoadError("There is no file to load.")
    graph = writable_graph(store)
    check_updates(store, graph)
    malformed = MalformedLines(on_error)
    with tempfile.TemporaryDirectory(prefix="kgqa-load-") as staging:
        source = UploadFiles(
            jobs, graph, staging=Path(staging), malformed=malformed, unfit=upload_problem, progress=progress
        )
        try:
            source.check()
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Nothing was sent.") from None
        before = _count_before(store, graph)
        _Sender(store, graph, source, progress).send_all()
    if progress:
        progress(Progress("", 0, 0, source.lines, "finishing"))
    store.forget()
    after = count_in(store, graph)
    return LoadReport(
        files=len(jobs),
        lines=source.lines,
        added=None if before is None or after is None else after - before,
        triples=after,
        malformed=malformed.count,
        examples=tuple(malformed.examples),
        fingerprint=store.fingerprint,
        seconds=round(time.monotonic() - started, 3),
    )


class _Sender:
    """Sends the lines of all files, and knows how far it is."""

    def __init__(
        self, store: UpdatableStore, graph: str, source: UploadFiles, progress: Callable[[Progress], None] | None
    ) -> None:
        self._store = store
        self._graph = Entity(graph)
        self._source = source
        self._progress = progress
        self._lines = 0
        self._refused = 0

    def send_all(self) -> None:
        for number, job in enumerate(self._source.jobs):
            sent = 0
            try:
                for block in self._source.blocks(number):
                    for start, batch in batches(block.lines):
                        self._send(batch, start, block, job)
                    self._lines += block.end - sent
                    sent = block.end
                    if self._progress:
                        self._progress(Progress(job.name, block.bytes_done, job.size, self._lines))
            except (StoreError, KeyboardInterrupt) as error:
                raise type(error)(f"{error} {self._how_far(job, sent)}".lstrip()) from error

    def _how_far(self, job: FileJob, sent: int) -> str:
        where = f"the first {sent:,} lines of {job.name}" if sent else f"perhaps a few lines of {job.name}"
        before = self._lines - sent
        also = f", and {before:,} lines of files before it" if before else ""
        return f"In <{self._graph.iri}> are {where}{also}. Load the files again: what is in already does no harm."

    def _send(self, lines: list[bytes], start: int, block: UploadBlock, job: FileJob) -> None:
        """One update. A line that the server refuses is found by halves: it says at most which update it dislikes."""
        try:
            triples = [triple_of(quad) for quad in parsed(lines)]
            self._store.update(render("insert_triples", graph=self._graph, triples=triples), timeout=UPDATE_SECONDS)
        except (QueryRejected, StoreUnavailable) as error:
            if not self._dislikes_lines(error):
                raise
            if len(lines) > 1:
                half = len(lines) // 2
                self._send(lines[:half], start, block, job)
                self._send(lines[half:], start + half, block, job)
                return
            self._refused += 1
            number = block.numbers()[start]
            if self._source.malformed.on_error == "fail":
                hint = "Mend the line, or leave such lines out: --on-error skip."
                raise QueryRejected(f"{job.name}, line {number}: {error} {hint}") from error
            if self._refused > MOST_REFUSED:
                raise QueryRejected(f"{error} It refused {MOST_REFUSED} lines before, so no more are sent.") from error
            self._source.malformed.add(job.name, number, str(error))

    def _dislikes_lines(self, error: StoreError) -> bool:
        """Whether an update failed for what stands in it: some servers call that an internal error."""
        if isinstance(error, StoreUnavailable):
            try:
                check_updates(self._store, self._graph.iri)
            except StoreError:
                return False
        return True


def parsed(lines: list[bytes]) -> Iterable[ox.Quad]:
    """Canonical lines as the engine's terms."""
    return ox.parse(b"".join(lines), format=ox.RdfFormat.N_TRIPLES)


def triple_of(quad: ox.Quad) -> tuple[Entity, Entity, Entity | Literal]:
    """Terms that a template takes."""
    value = quad.object
    if isinstance(value, ox.Literal):
        end = (
            Literal(value.value, language=value.language)
            if value.language
            else Literal(value.value, value.datatype.value)
        )
    else:
        end = Entity(value.value)
    return Entity(quad.subject.value), Entity(quad.predicate.value), end


def batches(lines: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """The lines in pieces of at most BATCH_TRIPLES and BATCH_BYTES, each with the place it begins at; a line that is
    longer is a piece of its own.
    """
    start = size = 0
    for place, line in enumerate(lines):
        if place > start and (place - start == BATCH_TRIPLES or size + len(line) > BATCH_BYTES):
            yield start, lines[start:place]
            start, size = place, 0
        size += len(line)
    if lines:
        yield start, lines[start:]
