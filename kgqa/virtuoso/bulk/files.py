"""RDF files into the Virtuoso of one's own, in bulk: `kgqa graph load FILES --into URL`.

All files are judged first. Then their lines are written as chunks of canonical N-Triples into the server's import folder,
a few chunks make a group, and while the server loads one group the next one is written. A group is on disk when the
server's load of it returns, which the journal then notes; what comes later is loaded again after a crash.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from kgqa.errors import LoadError, ServerError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import target_graph
from kgqa.graph.rdf.files import MalformedLines, check_unchanged, file_job
from kgqa.graph.rdf.upload import UploadFiles
from kgqa.graph.store import LoadReport, MalformedLine, OnError, Progress
from kgqa.virtuoso.bulk import load_token
from kgqa.virtuoso.bulk.background import BackgroundLoad
from kgqa.virtuoso.bulk.chunks import Chunk, write_chunks
from kgqa.virtuoso.bulk.journal import sentence
from kgqa.virtuoso.bulk.load_journal import NAME, LoadJournal, forget, only_load
from kgqa.virtuoso.bulk.load_token import new_token
from kgqa.virtuoso.bulk.refused import refused_lines, unfit
from kgqa.virtuoso.server.server import Server

CHUNK_LINES = 250_000
GROUP_CHUNKS = 4
"""Chunks that are loaded at once; as many more are written meanwhile."""
LOADERS = 2
POLL_SECONDS = 0.2
ORPHAN_SECONDS = 600.0


def load_files(
    server: Server,
    store: EndpointStore,
    files: Iterable[str | Path] = (),
    *,
    on_error: OnError = "fail",
    progress: Callable[[Progress], None] | None = None,
    format: str | None = None,
    resume: bool = False,
    restart: bool = False,
    loaders: int = LOADERS,
    chunk_lines: int = CHUNK_LINES,
) -> LoadReport:
    """Load RDF files into the store's writable graph.

    Args:
        server: the server that the store speaks to.
        resume: go on with an interrupted load; `files`, `on_error`, `format` and `chunk_lines` are as they were.
        restart: forget an interrupted load first. Without either, an interrupted load is an error.
        format: the ending that stands for the format, where the files' names do not tell.
        loaders: how many chunks the server reads at the same time.
        chunk_lines: lines of a chunk.

    Raises:
        LoadError: a file is missing, malformed, cut short, or has triples of other graphs; nothing was loaded.
        ServerError: the server died, the disk is full, another load runs; `resume` goes on.
        KeyboardInterrupt: Ctrl-C; the group that the server was at is loaded, and `resume` goes on.
    """
    started = time.monotonic()
    graph = target_graph(store)
    jobs = [] if resume else [file_job(Path(file), format) for file in files]
    if not resume and not jobs:
        raise LoadError("There is no file to load.")
    with only_load(server.folder):
        journal = LoadJournal.read(server.folder)
        if resume:
            journal = _taken_up(journal, store, graph)
            load_token.check(server, journal.token, journal.chunks)
            _wait_for_orphans(server)
        elif journal is not None and not restart:
            raise LoadError(
                f"An earlier load into {store.url} was interrupted. Go on with it: --resume. Forget it: --restart."
            )
        else:
            journal = LoadJournal(graph, store.url, on_error, chunk_lines, jobs, new_token())
            journal.before = count_triples(server, graph)
            journal.save(server.folder)
        _BulkLoad(server, journal, loaders, progress).run()
        store.invalidate()
        triples = count_triples(server, graph)
        forget(server.folder)
        load_token.forget(server, journal.token)
    return LoadReport(
        files=len(journal.files),
        lines=journal.lines,
        added=triples - journal.before,
        triples=triples,
        malformed=journal.malformed,
        examples=tuple(MalformedLine(**example) for example in journal.examples),
        fingerprint=store.fingerprint,
        seconds=round(time.monotonic() - started, 3),
    )


def discard_interrupted(server: Server) -> bool:
    """Forget an interrupted load; what it loaded stays. Gives whether there was one."""
    with only_load(server.folder):
        found = LoadJournal.read(server.folder) is not None
        forget(server.folder)
        shutil.rmtree(server.import_folder / NAME, ignore_errors=True)
    return found


def interrupted_graph(server: Server) -> str | None:
    """The graph that an interrupted load was writing to; None where there is no such load."""
    journal = LoadJournal.read(server.folder)
    return journal.graph if journal else None


def count_triples(server: Server, graph: str) -> int:
    """How many triples a graph has. Asked by SQL, which has no time limit."""
    return int(server.sql("select count(*) from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph,))[0][0])


def _taken_up(journal: LoadJournal | None, store: EndpointStore, graph: str) -> LoadJournal:
    if journal is None:
        raise LoadError(f"No interrupted load at {store.url}: there is nothing to resume.")
    if journal.graph != graph:
        raise LoadError(f"The interrupted load is into <{journal.graph}>: --graph-iri {journal.graph}")
    for job in journal.files:
        check_unchanged(job, f"kgqa graph load FILE --restart --into {store.url}")
    return journal


def _wait_for_orphans(server: Server) -> None:
    """Wait until the server has ended what it does for a kgqa that was killed."""
    deadline = time.monotonic() + ORPHAN_SECONDS
    while server.status().state == "loading" and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


class _BulkLoad:
    """Carries out the load in a journal."""

    def __init__(
        self, server: Server, journal: LoadJournal, loaders: int, progress: Callable[[Progress], None] | None
    ) -> None:
        self._server = server
        self._journal = journal
        self._loaders = loaders
        self._progress = progress or (lambda progress: None)
        self._malformed = MalformedLines(journal.on_error)
        self._told = 0
        self._work = server.import_folder / NAME
        self._source = UploadFiles(
            journal.files,
            journal.graph,
            staging=self._work,
            malformed=self._malformed,
            unfit=unfit,
            progress=self._progress,
        )

    def run(self) -> None:
        try:
            self._work.mkdir(exist_ok=True)
            self._check()
            self._load()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._how_far()) from None
        except (ServerError, LoadError) as error:
            if not self._journal.checked:
                # nothing was loaded, so there is nothing to go on with
                forget(self._server.folder)
                raise
            raise ServerError(f"{sentence(error)} {self._how_far()}") from error
        finally:
            shutil.rmtree(self._work, ignore_errors=True)
        self._progress(Progress("", 0, 0, self._journal.lines, "finishing"))

    def _check(self) -> None:
        journal, source = self._journal, self._source
        if journal.checked:
            source.doubtful = set(journal.doubtful)
            self._malformed.count = journal.malformed
            self._malformed.examples = [MalformedLine(**example) for example in journal.examples]
            return
        source.check()
        journal.lines, journal.doubtful, journal.checked = source.lines, sorted(source.doubtful), True
        self._note()

    def _note(self) -> None:
        self._journal.malformed = self._malformed.count
        self._journal.examples = [asdict(example) for example in self._malformed.examples]
        self._journal.save(self._server.folder)

    def _how_far(self) -> str:
        journal = self._journal
        done = f"{journal.lines_done:,} of {journal.lines:,} lines are" if journal.checked else "Nothing is"
        return f"{done} in <{journal.graph}> for good. Go on: kgqa graph load --resume --into {journal.url}"

    def _load(self) -> None:
        journal = self._journal
        chunks = write_chunks(
            self._source, number=journal.chunks, lines=journal.chunk_lines, folder=self._work, name=_name(journal)
        )
        under_way: _Group | None = None
        try:
            while group := list(islice(chunks, GROUP_CHUNKS)):
                self._finish(under_way)
                files = [chunk.path for chunk in group]
                under_way = _Group(group, BackgroundLoad(self._server, files, journal.graph, loaders=self._loaders))
            self._finish(under_way)
        except BaseException:
            # what the server is at will soon be loaded; a second Ctrl-C does not wait for it
            self._finish(under_way)
            raise

    def _finish(self, group: _Group | None) -> None:
        """Wait for a group, note that it is loaded, and remove its chunks; once, however often it is asked for."""
        if group is None or group.finished:
            return
        while not group.load.ended(POLL_SECONDS):
            self._tell(group.chunks[: group.load.files_done])
        group.finished = True
        for chunk, result in zip(group.chunks, group.load.results()):
            if result.error:
                self._settle(chunk)
        load_token.note(self._server, self._journal.token, group.chunks[-1].number + 1)
        for chunk in group.chunks:
            for place in chunk.reached:
                job = self._journal.files[place.file]
                job.lines_done = max(job.lines_done, place.line)
            for job in self._journal.files[: chunk.reached[-1].file]:
                job.done = True
            self._journal.chunks = max(self._journal.chunks, chunk.number + 1)
        self._note()
        self._tell(group.chunks)
        for chunk in group.chunks:
            chunk.path.unlink(missing_ok=True)

    def _settle(self, chunk: Chunk) -> None:
        """Find the lines of a chunk that the server refuses, and load the others."""
        refused = refused_lines(self._server, chunk.path, self._journal.graph)
        places = self._source.find(refused, [place.file for place in chunk.reached])
        for line, message in refused.items():
            file, number = places[line]
            if self._journal.on_error == "fail":
                raise LoadError(
                    f"{file}, line {number}: the server refuses it: {message}. Mend the line, or leave such lines out, "
                    f"and load all files again: --restart, or --restart --on-error skip."
                )
            self._malformed.add(file, number, f"the server refuses it: {message}")

    def _tell(self, chunks: Sequence[Chunk]) -> None:
        """Report all places that these chunks go up to, so that no file is passed over; each place once."""
        for place in (place for chunk in chunks for place in chunk.reached):
            if place.all_lines > self._told:
                self._told = place.all_lines
                job = self._journal.files[place.file]
                self._progress(Progress(job.name, place.bytes_done, job.size, place.all_lines))


@dataclass
class _Group:
    """Chunks that the server loads."""

    chunks: Sequence[Chunk]
    load: BackgroundLoad
    finished: bool = False


def _name(journal: LoadJournal) -> str:
    """What the chunks of this load are called: the same content has the same name when it is loaded again."""
    told = [journal.graph, str(journal.chunk_lines), *(f"{job.path} {job.sha256}" for job in journal.files)]
    return hashlib.sha256("\n".join(told).encode("utf-8", "surrogateescape")).hexdigest()[:12]
