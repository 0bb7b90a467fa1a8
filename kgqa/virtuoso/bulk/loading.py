"""Loads RDF files in bulk into a Virtuoso server run by kgqa; an interrupted load can be resumed.

All files are checked first. Then their lines are written as chunks of canonical N-Triples into the server's import
folder. A few chunks form a group; while the server loads one group, kgqa writes the next group. The journal records
each group that is on disk. After a crash, the groups that are not in the journal are loaded again.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from kgqa.errors import LoadError, ServerError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import target_graph
from kgqa.graph.rdf.files import MalformedLines, check_unchanged, file_job
from kgqa.graph.rdf.upload import UploadFiles
from kgqa.graph.store import LoadReport, MalformedLine, OnError, Progress
from kgqa.text.hints import Command
from kgqa.virtuoso.bulk.journal import NAME, BulkJournal, forget_journal, load_lock, open_journal, read_journal
from kgqa.virtuoso.bulk.loader import BulkLoad, Group, check_token, count_triples
from kgqa.virtuoso.bulk.rejected_lines import unloadable_reason
from kgqa.virtuoso.instance.server_log import free_space
from kgqa.virtuoso.server.server import Server

CHUNK_LINES = 250_000
GROUP_CHUNKS = 4
"""Number of chunks in a group; while a group is loaded, the chunks of the next group are written."""


@dataclass(frozen=True, slots=True)
class LinePosition:
    """The end of a line in one of the files of a load.

    Attributes:
        file: number of the file, from 0.
        line: number of lines of this file before the position.
        bytes_done: number of bytes of this file before the position.
        all_lines: number of lines of all files before the position.
    """

    file: int
    line: int
    bytes_done: int
    all_lines: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A file of canonical N-Triples in the import folder.

    `positions` maps the number of each file with lines in this chunk to the end of its last line in the chunk.
    """

    number: int
    path: Path
    positions: dict[int, LinePosition]


def write_chunks(source: UploadFiles, *, number: int, lines: int, folder: Path, name: str) -> Iterator[Chunk]:
    """Write the lines that `source.jobs` does not mark as done, one chunk for each step of the iterator.

    Args:
        number: number of the first chunk; the number is part of the file name.
        lines: number of lines of a chunk, rounded up to the end of a block.
        name: prefix of the file names of the chunks.

    Raises:
        ServerError: the disk is full or cannot be written.
        LoadError: a file can no longer be read.
    """
    pieces = _unloaded_lines(source)
    # each chunk has a temporary name first, because the server may still read a chunk of the same name
    part = folder / f"{name}.part"
    while True:
        chunk = Chunk(number, folder / f"{name}-{number:06}.nt", {})
        written = 0
        try:
            with open(part, "wb") as file:
                for block_lines, position in pieces:
                    file.writelines(block_lines)
                    written += len(block_lines)
                    chunk.positions[position.file] = position
                    if written >= lines:
                        break
            if not chunk.positions:
                part.unlink()
                return
            part.replace(chunk.path)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise ServerError(
                    f"The disk is full: {free_space(folder)} are free at {folder}, where kgqa writes files for the "
                    "server.",
                    "Free some space on this disk.",
                ) from error
            raise ServerError(
                f"{folder} cannot be written ({error.strerror}).",
                "Make the folder writable for the user who runs kgqa.",
            ) from error
        yield chunk
        number += 1


def _unloaded_lines(source: UploadFiles) -> Iterator[tuple[list[bytes], LinePosition]]:
    """Yield blocks of lines that `source.jobs` does not mark as done, and where each block ends."""
    before = 0
    for file, job in enumerate(source.jobs):
        # the caller updates the job while this generator runs
        done_before, last = job.lines_done, 0
        for block in () if job.done else source.blocks(file):
            last = block.end
            if last > done_before:
                yield block.lines, LinePosition(file, last, block.bytes_done, before + last)
        before += last or done_before


def bulk_load(
    server: Server,
    store: EndpointStore,
    files: Iterable[str | Path] = (),
    *,
    on_error: OnError = "fail",
    progress: Callable[[Progress], None] | None = None,
    format: str | None = None,
    resume: bool = False,
    restart: bool = False,
    chunk_lines: int = CHUNK_LINES,
) -> LoadReport:
    """Load RDF files into the store's writable graph.

    Args:
        server: the server of the store.
        resume: continue an interrupted load with its own files and options; `files`, `on_error`, `format` and
            `chunk_lines` are ignored.
        restart: discard an interrupted load first. Without `resume` and `restart`, an interrupted load is an error.
        format: file extension of the RDF format, for files whose names have no extension.
        chunk_lines: number of lines in a chunk.

    Raises:
        LoadError: a file is missing, malformed or truncated, or has triples of other graphs; nothing was loaded.
            Or a file changed or can no longer be read; then the message says what is loaded and how to resume.
        ServerError: the server crashed, rejects a line, the disk is full, or another load runs; the load can be
            resumed.
        KeyboardInterrupt: Ctrl-C was pressed; the current group has been completed, and the load can be resumed.
    """
    started = time.monotonic()
    graph = target_graph(store)
    jobs = [] if resume else [file_job(Path(file), format) for file in files]
    if not resume and not jobs:
        raise LoadError("No file was given.", "Give at least one RDF file.")
    with load_lock(server.folder):
        journal = open_journal(
            server.folder,
            NAME,
            BulkJournal,
            resume=resume,
            restart=restart,
            described=lambda journal: f"into {store.url} was interrupted",
            start="Give the files to load, without --resume.",
        )
        if journal is None:
            journal = BulkJournal(graph, store.url, on_error, chunk_lines, jobs)
        else:
            _check_resumable(journal, store, graph)
            check_token(server, journal.token, journal.chunks)
        triples = _FileLoad(server, journal, progress).run()
        store.invalidate()
    return LoadReport(
        files=len(journal.files),
        lines=journal.lines,
        added=triples - journal.before,
        triples=triples,
        malformed=journal.malformed,
        examples=tuple(MalformedLine(**example) for example in journal.examples),
        fingerprint=store.fingerprint_of([graph]),
        seconds=round(time.monotonic() - started, 3),
    )


def discard_interrupted(server: Server) -> bool:
    """Discard the journal of an interrupted load, but keep its triples; return False if there was no such load."""
    with load_lock(server.folder):
        found = read_journal(server.folder, NAME, BulkJournal) is not None
        forget_journal(server.folder, NAME)
        shutil.rmtree(server.import_folder / NAME, ignore_errors=True)
    return found


def interrupted_graph(server: Server) -> str | None:
    """Return the IRI of the graph of an interrupted load; None if there is no such load."""
    journal = read_journal(server.folder, NAME, BulkJournal)
    return journal.graph if journal else None


def _check_resumable(journal: BulkJournal, store: EndpointStore, graph: str) -> None:
    """Raise LoadError if the interrupted load is into another graph, or one of its files has changed."""
    if journal.graph != graph:
        raise LoadError(
            f"The interrupted load is into another graph, <{journal.graph}>.",
            f"To resume it, give --graph-iri {journal.graph}",
        )
    for job in journal.files:
        check_unchanged(job, Command("graph load", "FILE", restart=True, into=store.url))


class _FileLoad(BulkLoad[list[Chunk], int]):
    """Loads the chunks that a journal does not record as loaded; the result is the number of triples in the graph."""

    def __init__(self, server: Server, journal: BulkJournal, progress: Callable[[Progress], None] | None) -> None:
        super().__init__(server, NAME, journal.graph, journal)
        self._journal = journal
        self._progress = progress or (lambda progress: None)
        self._malformed = MalformedLines(journal.on_error)
        self._reported_lines = 0
        self._source = UploadFiles(
            journal.files,
            journal.graph,
            staging=self.folder,
            malformed=self._malformed,
            unfit=unloadable_reason,
            progress=self._progress,
        )

    def groups(self) -> Generator[Group[list[Chunk]]]:
        self._check()
        journal = self._journal
        chunks = write_chunks(
            self._source, number=journal.chunks, lines=journal.chunk_lines, folder=self.folder, name=_name(journal)
        )
        while batch := list(islice(chunks, GROUP_CHUNKS)):
            yield Group([chunk.path for chunk in batch], batch, batch[-1].number + 1)

    def _check(self) -> None:
        journal, source = self._journal, self._source
        if journal.checked:
            source.doubtful = set(journal.doubtful)
            self._malformed.count = journal.malformed
            self._malformed.examples = [MalformedLine(**example) for example in journal.examples]
            return
        source.check()
        journal.before = count_triples(self.server, journal.graph)
        journal.lines, journal.doubtful, journal.checked = source.lines, sorted(source.doubtful), True
        self._save_malformed()

    def _save_malformed(self) -> None:
        self._journal.malformed = self._malformed.count
        self._journal.examples = [asdict(example) for example in self._malformed.examples]
        self.save()

    def is_resumable(self) -> bool:
        return self._journal.checked  # before, nothing is loaded

    def progress_text(self) -> str:
        journal = self._journal
        lines_done = sum(job.lines_done for job in journal.files)
        done = f"{lines_done:,} of {journal.lines:,} lines are" if journal.checked else "Nothing is"
        return f"{done} loaded into <{journal.graph}>. Resume: kgqa graph load --resume --into {journal.url}"

    def waiting(self, group: Group[list[Chunk]] | None) -> None:
        if group:
            self._report(group.content[: group.files_done])

    def loaded(self, group: Group[list[Chunk]]) -> None:
        for chunk in group.content:
            rejected = group.rejected.get(chunk.path)
            places = self._source.find(rejected, list(chunk.positions)) if rejected else {}
            for line, message in (rejected or {}).items():
                file, number = places[line]
                if self._journal.on_error == "fail":
                    raise ServerError(
                        f"{file}, line {number}: the server rejects this line: {message}.",
                        "Correct the line and load all files again with --restart, or skip such lines with --restart "
                        "--on-error skip.",
                    )
                self._malformed.add(file, number, f"rejected by the server: {message}")

    def recorded(self, group: Group[list[Chunk]]) -> None:
        for chunk in group.content:
            for position in chunk.positions.values():
                job = self._journal.files[position.file]
                job.lines_done = max(job.lines_done, position.line)
            for job in self._journal.files[: max(chunk.positions)]:
                job.done = True
        self._journal.chunks = max(self._journal.chunks, group.done)
        self._save_malformed()
        self._report(group.content)

    def finish(self) -> int:
        self._progress(Progress("", 0, 0, self._journal.lines, "finishing"))
        return count_triples(self.server, self._journal.graph)

    def _report(self, chunks: Sequence[Chunk]) -> None:
        """Report as progress how far each file has been loaded with these chunks; report each position only once."""
        for position in (position for chunk in chunks for position in chunk.positions.values()):
            if position.all_lines > self._reported_lines:
                self._reported_lines = position.all_lines
                job = self._journal.files[position.file]
                self._progress(Progress(job.name, position.bytes_done, job.size, position.all_lines))


def _name(journal: BulkJournal) -> str:
    """Return the prefix of the chunk files' names; it depends only on the files, the graph and the chunk size."""
    parts = [journal.graph, str(journal.chunk_lines), *(f"{job.path} {job.sha256}" for job in journal.files)]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:12]
