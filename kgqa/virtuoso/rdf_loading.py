"""Loads RDF files in bulk into a Virtuoso server run by kgqa; an interrupted load can be resumed.

All files are checked first. Then their lines are written as chunks of canonical N-Triples into the server's import
folder, a few chunks at a time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from kgqa.errors import LoadError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import target_graph
from kgqa.graph.rdf.files import FileJob, MalformedLines, check_unchanged, file_job
from kgqa.graph.rdf.upload import UploadFiles, upload_problem
from kgqa.graph.store import LoadReport, MalformedLine, OnError, Progress
from kgqa.virtuoso.groups import Group, Journal, chunk_folder, forget_journal, load_groups, open_journal
from kgqa.virtuoso.load_list import load_lock
from kgqa.virtuoso.server import Server

NAME = "graph-load"
CHUNK_LINES = 250_000
GROUP_CHUNKS = 4

_RISKY = re.compile(
    rb'"(?:\^\^<(?:http://www\.w3\.org/2001/XMLSchema#(integer|duration|dayTimeDuration|yearMonthDuration)'
    rb"|http://www\.w3\.org/1999/02/22-rdf-syntax-ns#(XMLLiteral)|http://www\.openlinksw\.com/schemas/(virtrdf)#[^>]*)>"
    rb"|@[A-Za-z0-9-]*(--)[a-z]+) \.\n\Z"
)
_INTEGER = re.compile(rb'"[+-]?[0-9]+"\^\^')


def unloadable_reason(line: bytes) -> str | None:
    """Return why the server's loader would change or reject a canonical N-Triples line; None if it loads the line."""
    risky = _RISKY.search(line)
    if risky is None:
        return upload_problem(line)
    if risky[1] == b"integer":
        if _INTEGER.match(line, line.index(b' "') + 1):
            return upload_problem(line)
        return "not an integer despite its datatype: the server would store 0"
    if risky[1]:
        return "the server does not support durations: it would store a number"
    return "the server does not support this kind of text" if risky[4] else "the server does not support this datatype"


@dataclass(kw_only=True)
class BulkJournal(Journal):
    """The state of loading RDF files.

    Attributes:
        lines_done: number of lines of the files in the recorded groups.
        before: number of triples in the graph before the load.
        lines: number of lines in all files.
        doubtful: numbers of the files whose lines need the parser of the embedded engine.
        malformed: number of malformed lines, which are not loaded.
        examples: the first malformed lines.
    """

    url: str
    files: list[FileJob]
    chunk_lines: int
    lines_done: int = 0
    before: int = 0
    lines: int = 0
    doubtful: list[int] = field(default_factory=list)
    malformed: int = 0
    examples: list[MalformedLine] = field(default_factory=list)


def bulk_load(
    server: Server,
    store: EndpointStore,
    files: Iterable[str | Path] = (),
    *,
    on_error: OnError = "fail",
    progress: Callable[[Progress], None] = lambda progress: None,
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
    with load_lock(server.folder) as lock, chunk_folder(server, NAME) as folder:
        journal = open_journal(server, NAME, BulkJournal, resume=resume, restart=restart)
        resumed = journal is not None
        if journal is None:
            forget_journal(server, NAME)
            jobs = [file_job(Path(file), format) for file in files]
            if not jobs:
                raise LoadError("No file was given.", "Give at least one RDF file.")
            journal = BulkJournal(graph=graph, url=store.url, files=jobs, chunk_lines=chunk_lines)
        elif journal.graph != graph:
            raise LoadError(
                f"The interrupted load is into another graph, <{journal.graph}>.",
                f"To resume it, give --graph-iri {journal.graph}",
            )
        for job in journal.files if resumed else ():
            check_unchanged(job, f"kgqa graph load FILE --restart --into {store.url}")
        malformed = MalformedLines(on_error)
        source = UploadFiles(
            journal.files, graph, staging=folder, malformed=malformed, unfit=unloadable_reason, progress=progress
        )
        source.doubtful = set(journal.doubtful)
        if not resumed:
            source.check()
            journal.before, journal.lines, journal.doubtful = server.triples_of(graph), source.lines, [*source.doubtful]
            journal.malformed, journal.examples = malformed.count, malformed.examples
        load_groups(
            server,
            NAME,
            journal,
            _groups(source, journal, folder, progress),
            lock=lock,
            describe=lambda: (
                f"{journal.lines_done:,} of {journal.lines:,} lines are loaded into <{graph}>. "
                f"Resume: kgqa graph load --resume --into {store.url}"
            ),
        )
        forget_journal(server, NAME)
        progress(Progress("", 0, 0, journal.lines, "finishing"))
        triples = server.triples_of(graph)
        store.invalidate()
    return LoadReport(
        files=len(journal.files),
        lines=journal.lines,
        added=triples - journal.before,
        triples=triples,
        malformed=journal.malformed,
        examples=tuple(journal.examples),
        fingerprint=store.fingerprint_of([graph]),
        seconds=round(time.monotonic() - started, 3),
    )


def _groups(
    source: UploadFiles, journal: BulkJournal, folder: Path, progress: Callable[[Progress], None]
) -> Generator[Group]:
    """Write the lines that the journal does not record as loaded, a few chunks for each step."""
    pieces = ((lines, end) for lines, end in _pieces(source) if end.lines > journal.lines_done)
    ends: list[Progress] = []

    def loaded(ends: list[Progress]) -> Callable[[], None]:
        def loaded() -> None:
            journal.lines_done = ends[-1].lines
            for end in ends:
                progress(end)

        return loaded

    for number in count():
        chunks, ends = [], []
        for chunk in range(GROUP_CHUNKS):
            path = folder / f"{number:06}-{chunk}.nt"
            ends_of_chunk = _write_chunk(path, pieces, journal.chunk_lines)
            ends += ends_of_chunk
            chunks.append(path)
        if not ends:
            return
        yield Group(chunks, loaded(ends))


def _write_chunk(path: Path, pieces: Iterator[tuple[list[bytes], Progress]], lines: int) -> list[Progress]:
    """Write at least this number of lines, if there are so many; return the ends of their blocks, one per file."""
    written, ends = 0, {}
    with open(path, "wb") as file:
        for block, end in pieces:
            file.writelines(block)
            ends[end.file] = end
            written += len(block)
            if written >= lines:
                break
    return [*ends.values()]


def _pieces(source: UploadFiles) -> Iterator[tuple[list[bytes], Progress]]:
    """Yield the lines of all files in blocks, each with the progress of a load that has loaded the block."""
    before = 0
    for number, job in enumerate(source.jobs):
        last = 0
        for block in source.blocks(number):
            last = block.end
            yield block.lines, Progress(job.name, block.bytes_done, job.size, before + last)
        before += last


def discard_interrupted(server: Server) -> bool:
    """Discard the journal of an interrupted load, but keep its triples; return False if there was no such load."""
    with load_lock(server.folder):
        return forget_journal(server, NAME)


def interrupted_graph(server: Server) -> str | None:
    """Return the IRI of the graph of an interrupted load; None if there is no such load."""
    journal = server.folder.read_json(f"{NAME}.json", BulkJournal, "Load everything again with --restart.", LoadError)
    return journal.graph if journal else None
