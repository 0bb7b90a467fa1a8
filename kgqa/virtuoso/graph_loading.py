"""Loads RDF files into a graph at a URL: in bulk if kgqa runs the server (Virtuoso), otherwise by SPARQL updates.

For a bulk load, all files are checked first. Then their lines are written as chunks of canonical N-Triples into the
server's import folder, a few chunks at a time. An interrupted bulk load can be resumed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from kgqa.errors import KgqaError, LoadError, ServerError
from kgqa.graph.detection import detect_schema, load_warnings
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore, open_endpoint
from kgqa.graph.endpoint.upload import (
    Line,
    check_lines,
    choose_target_graph,
    target_graph,
    upload_blocks,
    upload_problem,
)
from kgqa.graph.names.reading import NameReader, NameShare
from kgqa.graph.rdf.files import FileJob, MalformedLines, check_unchanged, file_job
from kgqa.graph.store import LoadReport, MalformedLine, OnError, Progress
from kgqa.model.terms import Entity
from kgqa.schema import Schema
from kgqa.settings.values import Settings, resolve
from kgqa.storage.cache import Cache
from kgqa.text.hints import Command, Option
from kgqa.text.words import clean, sentence
from kgqa.virtuoso.loads import Journal, chunk_folder, forget_journal, load_groups, load_lock, open_journal
from kgqa.virtuoso.server import Server

NAME = "graph-load"
CHUNK_LINES = 250_000
GROUP_CHUNKS = 4
# the reason of the full-text rules in the database
INDEX_OWNER = "kgqa"

_RISKY = re.compile(
    rb'"(?:\^\^<http://www\.w3\.org/2001/XMLSchema#(?:(?P<integer>integer)|d(?:uration|ayTimeDuration)|yearMonthDuration)>'
    rb"|\^\^<http://www\.w3\.org/1999/02/22-rdf-syntax-ns#XMLLiteral>|\^\^<http://www\.openlinksw\.com/schemas/virtrdf#"
    rb"[^>]*>|@[A-Za-z0-9-]*--[a-z]+) \.\n\Z"
)
_INTEGER = re.compile(rb'"[+-]?[0-9]+"\^\^')


@dataclass(kw_only=True)
class BulkJournal(Journal):
    """The state of loading RDF files.

    Attributes:
        lines_done: number of lines of the files in the recorded groups.
        before: number of triples in the graph before the load.
        lines: number of lines in all files.
        malformed: number of malformed lines, which are not loaded.
        examples: the first malformed lines.
    """

    files: list[FileJob]
    lines_done: int = 0
    before: int = 0
    lines: int = 0
    malformed: int = 0
    examples: list[MalformedLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UrlLoad:
    """The result of `load_into_url`.

    Attributes:
        report: counts of lines and triples.
        graph_iri: the graph to which the triples were added.
        schema: the schema detected in the graph.
        names: number of indexed names; None after a load by SPARQL updates, which indexes no names.
        warnings: sentences about what questions will lack in the graph.
        share: how many subjects have a name; None if the graph is too large to count them.
    """

    report: LoadReport
    graph_iri: str
    schema: Schema
    names: int | None
    warnings: tuple[str, ...] = ()
    share: NameShare | None = None


def load_into_url(
    files: Sequence[Path],
    url: str,
    *,
    graph_iri: str | None = None,
    settings: Settings | None = None,
    cache: Cache | None = None,
    on_error: OnError = "fail",
    format: str | None = None,
    resume: bool = False,
    restart: bool = False,
    progress: Callable[[Progress], None] = lambda progress: None,
    notify: Callable[[str], None] = lambda text: None,
) -> UrlLoad:
    """Load RDF files into one graph of a SPARQL server, and index the names of the graph after a bulk load.

    Args:
        files: RDF files; empty with `resume`.
        url: the address of the SPARQL endpoint.
        graph_iri: the graph. If None: with `resume`, the graph of the interrupted load; otherwise the only graph of the
            server, or urn:kgqa:graph if the server has no graph.
        settings: settings of the endpoint (user, timeout ...); None for the settings of the user.
        cache: the cache from which results of the graph are removed; None for the default cache.
        on_error: "fail" loads nothing if any line is malformed, "skip" leaves malformed lines out.
        format: file extension of the RDF format, for files whose names have no extension.
        resume: continue an interrupted bulk load.
        restart: discard an interrupted bulk load first.
        progress: called while the files are checked and loaded.
        notify: called with a short text when a new step begins.

    Raises:
        LoadError: a file is missing or malformed, or several graphs could be meant; nothing was loaded. Or
            `resume` was given for a server that kgqa does not run.
        StoreError: the server cannot be reached or refuses updates.
        ServerError: the server that kgqa runs failed.
        KeyboardInterrupt: Ctrl-C was pressed; the exception's argument tells the user what is loaded and how to resume.
    """
    settings = settings or resolve()
    server = _own_server(url) if resume else Server.for_url(url)
    journal = open_journal(server, NAME, BulkJournal, resume=True, restart=False) if server and resume else None
    with open_endpoint(
        url, EndpointOptions.of(settings), cache=cache or Cache.default(), timeout=settings.graph.timeout
    ) as store:
        graph = graph_iri or (journal.graph if journal else None)
        if graph is None:
            graph = choose_target_graph(store)
            notify(f"Loading into the graph <{clean(graph)}>. To choose another graph, use {Option('graph-iri')}.")
        store.writable = graph
        if server is None:
            report = store.load(files, progress=progress, on_error=on_error, format=format)
        else:
            report = bulk_load(
                server,
                store,
                files,
                on_error=on_error,
                progress=progress,
                format=format,
                resume=resume,
                restart=restart,
            )
        schema, names = detect_schema(store, [graph]), None
        warnings = load_warnings(store, [graph], schema)
        if server is not None:
            notify("The files are loaded. Indexing the names ...")
            names = index_graph(server, store, schema, graph)
        share = NameReader(store, schema, (Entity(graph),), lambda: settings.graph.timeout).share()
    return UrlLoad(report, graph, schema, names, tuple(warnings), share)


def discard_load(url: str) -> bool:
    """Discard an interrupted bulk load, but keep its triples; return False if there was no such load.

    Raises:
        LoadError: kgqa does not run the server.
    """
    server = _own_server(url)
    with load_lock(server.folder):
        return forget_journal(server, NAME)


def _own_server(url: str) -> Server:
    server = Server.for_url(url)
    if server is None:
        raise LoadError(
            f"A load into {url} cannot be resumed or discarded: kgqa uses SPARQL updates for servers that were not "
            "started with kgqa virtuoso start.",
            "Load the files again; triples already loaded do no harm.",
        )
    return server


def index_graph(server: Server, store: EndpointStore, schema: Schema, graph_iri: str) -> int:
    """Add the names of a graph to the server's full-text index, which `bif:contains` searches.

    Names that are added later are indexed within minutes, or when this function is called again.

    Args:
        store: the store of the server's endpoint.
        schema: defines which predicates are names and aliases.
        graph_iri: the graph whose names are indexed.

    Returns:
        The number of names. If it is 0, nothing is indexed.

    Raises:
        KgqaError: the server failed, or the names could not be counted in time.
    """
    try:
        reader = NameReader(store, schema, (Entity(graph_iri),))
        names = reader.count()
        if names:
            for predicate in reader.kinds:
                server.sql("DB.DBA.RDF_OBJ_FT_RULE_ADD(?, ?, ?)", (graph_iri, predicate, INDEX_OWNER))
            server.sql("DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ()")
            # the interval in minutes; see SchedulerInterval in virtuoso.ini
            server.sql("DB.DBA.VT_BATCH_UPDATE('DB.DBA.RDF_OBJ', 'ON', ?)", (1,))
            server.sql("checkpoint")
        return names
    except KgqaError as error:
        command = f"kgqa virtuoso index --graph-iri {graph_iri} --schema {schema.name}"
        raise ServerError(f"The names are not indexed. {sentence(error)} Index them: {command}") from error


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
        resume: continue an interrupted load with its own files; `files`, `on_error` and `format` are ignored.
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
    graph = target_graph(store, store.writable)
    with load_lock(server.folder) as lock, chunk_folder(server, NAME) as folder:
        journal = open_journal(server, NAME, BulkJournal, resume=resume, restart=restart)
        if journal and journal.graph != graph:
            raise LoadError(
                f"The interrupted load is into another graph, <{journal.graph}>.",
                "To resume it, give ",
                Option("graph-iri", journal.graph),
            )
        for job in journal.files if journal else ():
            check_unchanged(job, Command("graph load", "FILE", restart=True, into=store.url))
        jobs = journal.files if journal else [file_job(Path(file), format) for file in files]
        if not jobs:
            raise LoadError("No file was given.", "Give at least one RDF file.")
        malformed = MalformedLines(on_error)
        read = partial(upload_blocks, jobs, graph, folder, progress=progress, unfit=unloadable_reason)
        if journal is None:
            lines = check_lines(read(malformed), progress)
            journal = BulkJournal(
                graph=graph,
                files=jobs,
                before=server.triples_of(graph),
                lines=lines,
                malformed=malformed.count,
                examples=malformed.examples,
            )
        state = journal

        def record(ends: list[Progress]) -> None:
            state.lines_done = ends[-1].lines
            for end in ends:
                progress(end)

        load_groups(
            server,
            NAME,
            state,
            _write_groups(read(MalformedLines("skip")), state.lines_done, folder, chunk_lines),
            lock=lock,
            record=record,
            describe=lambda: (
                f"{state.lines_done:,} of {state.lines:,} lines are loaded into <{graph}>. "
                f"Resume: kgqa graph load --resume --into {store.url}"
            ),
        )
        progress(Progress("", 0, 0, state.lines, "finishing"))
        triples = server.triples_of(graph)
        store.invalidate()
    return LoadReport(
        files=len(jobs),
        lines=state.lines,
        added=triples - state.before,
        triples=triples,
        malformed=state.malformed,
        examples=tuple(state.examples),
        fingerprint=store.fingerprint_of([graph]),
        seconds=round(time.monotonic() - started, 3),
    )


def unloadable_reason(line: bytes) -> str | None:
    """Return why the server's loader would change or reject a canonical N-Triples line; None if it loads the line."""
    risky = _RISKY.search(line)
    if risky and not risky["integer"]:
        return "the server does not store such a value unchanged (durations, XML, geometries, directions of text)"
    if risky and not _INTEGER.match(line, line.index(b' "') + 1):
        return "not an integer despite its datatype: the server would store 0"
    return upload_problem(line)


def _write_groups(
    blocks: Iterable[tuple[list[Line], Progress]], lines_done: int, folder: Path, chunk_lines: int
) -> Generator[tuple[list[Path], list[Progress]]]:
    """Write the lines after the first `lines_done`, a group of chunks for each step.

    Yields the files of a group, and how far each of the source's files is loaded with it.
    """
    remaining = ((lines, end) for lines, end in blocks if end.lines > lines_done)
    for number in count():
        chunks = [folder / f"{number:06}-{chunk}.nt" for chunk in range(GROUP_CHUNKS)]
        ends: dict[str, Progress] = {}
        for path in chunks:
            written = 0
            with open(path, "wb") as file:
                for lines, end in remaining:
                    file.writelines(line for line, _ in lines)
                    written, ends[end.file] = written + len(lines), end
                    if written >= chunk_lines:
                        break
        if not ends:
            return
        yield chunks, list(ends.values())
