"""Writes to servers: edits and RDF files as SPARQL updates, which work with every server, but are slow.

A server cannot undo an upload. All files are therefore read and checked completely before the first triple is sent. If
the connection is lost, the triples sent so far stay in the graph; loading the same files again adds the missing ones.
"""

from __future__ import annotations

import re
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kgqa.errors import LoadError, PartialResult, QueryRejected, StoreError, StoreTimeout, StoreUnavailable
from kgqa.graph.detection import EDIT_GRAPHS, named_graphs
from kgqa.graph.editing import batches, terms, triple_chars
from kgqa.graph.query.text import decode_term, render, render_term
from kgqa.graph.rdf.files import FileJob, MalformedLines, file_job, read_blocks
from kgqa.graph.rdf.lines import split_graph
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
UPDATE_SECONDS = 120.0
MAX_REJECTED = 100
"""An upload ends after the server has rejected this many lines: probably it would reject all."""
MAX_GRAPHS = 10_000
DEFAULT_GRAPH = "urn:kgqa:graph"
LONGEST_IRI_BYTES = 1_800
"""Maximum length of an IRI. Virtuoso silently cuts longer IRIs (after 1,870 bytes of the last part); two different
IRIs could then become equal."""
Line = tuple[bytes, int]
"""A canonical line of N-Triples, and its number in its file."""
_NUL = re.compile(rb"\0|(?<!\\)(?:\\\\)*+\\(?:u0000|U00000000)").search


def send_edit(send: Callable[..., None], graph: str, adds: Sequence[Triple], removes: Sequence[Triple]) -> None:
    """Remove and add triples of a graph in one update.

    A large edit is first written to two graphs of its own, and then moved in one update. A server that ends in between
    leaves these two graphs behind, and the edited graph as it was.

    Args:
        send: sends the update queries/TEMPLATE.rq with typed values.
    """
    name = Entity(graph)
    if len(list(batches([*removes, *adds], INLINE_TRIPLES, BATCH_CHARS, length=triple_chars))) <= 1:
        send("edit", graph=name, adds=list(map(terms, adds)), removes=list(map(terms, removes)))
        return
    edit = f"{EDIT_GRAPHS}{uuid.uuid4()}"
    added, removed = Entity(f"{edit}:adds"), Entity(f"{edit}:removes")
    try:
        for staged, triples in ((added, adds), (removed, removes)):
            for batch in batches(triples, BATCH_TRIPLES, BATCH_CHARS, length=triple_chars):
                send("insert_triples", graph=staged, triples=list(map(terms, batch)))
        send("edit_staged", graph=name, adds=added, removes=removed, timeout=EDIT_SECONDS)
    finally:
        for staged in (added, removed):
            with suppress(StoreError):
                send("clear_graph", graph=staged)


def choose_target_graph(store: Store) -> str:
    """Choose the graph to load into by default: the server's only user graph, or DEFAULT_GRAPH if it has none.

    Raises:
        LoadError: the server has several user graphs. StoreError: see `named_graphs`.
    """
    found = named_graphs(store)
    if len(found) > 1:
        names = ", ".join(map(clean, found[:10])) + (", ..." if len(found) > 10 else "")
        raise LoadError(
            f"{store.location} has several graphs.",
            "Name the graph to load into: ",
            Option("graph-iri", "IRI"),
            f". Graphs: {names}",
        )
    return found[0] if found else DEFAULT_GRAPH


def target_graph(store: Store, writable: str | Collection[str] | None) -> str:
    """Return the only graph of a server that may be written to.

    Raises:
        LoadError: there is none or more than one, or the graph is a system graph of the server.
        InvalidTerm: the graph's name is not an IRI.
    """
    hint = "Name the graph to write to: ", Option("graph-iri", "IRI"), "."
    if not writable or not isinstance(writable, str):
        raise LoadError(f"{store.location} is open for reading only.", *hint)
    render_term(Entity(writable))
    if writable in store.capabilities.system_graphs:
        raise LoadError(f"<{writable}> is a system graph of the server.", *hint)
    return writable


def upload_problem(line: bytes) -> str | None:
    """Return why a line cannot be sent to a server (an IRI that is too long, or a NUL character), or None."""
    if _NUL(line):
        return "the character NUL, which servers read as the end of the text"
    if len(line) <= LONGEST_IRI_BYTES:
        return None
    subject, predicate, rest = line.split(b" ", 2)
    longest = max(len(subject), len(predicate), rest.index(b" ") if rest[:1] == b"<" else 0) - 2
    if longest <= LONGEST_IRI_BYTES:
        return None
    return f"an IRI of {longest:,} bytes, more than servers store ({LONGEST_IRI_BYTES:,})"


def upload_blocks(
    jobs: Sequence[FileJob],
    graph: str,
    staging: Path,
    malformed: MalformedLines,
    *,
    progress: Callable[[Progress], None],
    unfit: Callable[[bytes], str | None] = upload_problem,
) -> Iterator[tuple[list[Line], Progress]]:
    """Read RDF files as blocks of lines to send to one graph of a server. Every call yields the same blocks.

    Args:
        graph: IRI of the graph.
        staging: folder for files converted to N-Quads; the caller removes the folder.
        malformed: collects the malformed lines.
        progress: called regularly while a file is converted.
        unfit: returns why the server would not store a canonical line unchanged; then the line counts as malformed.

    Yields:
        The lines, and the progress of a load that has loaded them.

    Raises:
        LoadError: a line is malformed (unless malformed lines are skipped), a line belongs to another graph, or a file
            is cut short or cannot be read.
    """
    before = 0
    for job in jobs:
        for block in _blocks_of(job, before, graph.encode(), staging, malformed, progress, unfit):
            yield block
            before = block[1].lines


def _blocks_of(
    job: FileJob,
    before: int,
    graph: bytes,
    staging: Path,
    malformed: MalformedLines,
    progress: Callable[[Progress], None],
    unfit: Callable[[bytes], str | None],
) -> Iterator[tuple[list[Line], Progress]]:
    bad: list[tuple[int, str]] = []

    for block, bytes_done in read_blocks(
        job,
        staging,
        lambda number, reason: bad.append((number, reason)),
        lambda bytes_done, lines: progress(Progress(job.name, bytes_done, job.size, before + lines, "reading")),
    ):
        fit: list[Line] = []
        for text, number in zip(block.lines, block.numbers):
            line, other = (text, None) if job.format == ".nt" else split_graph(text)
            if other not in (None, graph):
                found = clean((other or b"").decode("utf-8", "replace"))[:300]
                raise LoadError(
                    f"{job.name}, line {number}: this triple belongs to the graph <{found}>, "
                    f"but the load is for <{graph.decode()}>. Nothing was sent.",
                    "Load the file into that graph (",
                    Option("graph-iri", found),
                    "), or remove the graph names from the file.",
                )
            if reason := unfit(line):
                bad.append((number, reason))
            else:
                fit.append((line, number))
        for number, reason in sorted(bad):
            malformed.add(job.name, number, reason)
        bad.clear()
        yield fit, Progress(job.name, bytes_done, job.size, before + block.end)


def check_lines(blocks: Iterable[tuple[list[Line], Progress]], progress: Callable[[Progress], None]) -> int:
    """Read all blocks, and return the number of lines. Raises the errors of `upload_blocks`."""
    lines = 0
    for _, done in blocks:
        lines = done.lines
        progress(replace(done, stage="reading"))
    return lines


def load_by_updates(
    store: Store,
    files: Iterable[str | Path],
    writable: str | Collection[str] | None,
    update: Callable[..., None],
    *,
    on_error: OnError = "fail",
    progress: Callable[[Progress], None] | None = None,
    format: str | None = None,
) -> LoadReport:
    """Add the triples of RDF files to the writable graph, in updates of about a thousand triples each.

    Args:
        update: sends the update queries/TEMPLATE.rq with typed values.
        on_error: what to do with a line that is malformed or that the server rejects: `fail` stops the upload, `skip`
            counts the line and continues, up to MAX_REJECTED lines that the server rejects.
        format: the file extension of the format, if the names of the files have no extension.

    Returns:
        A report on the writable graph; `added` and `triples` are None if counting took too long.

    Raises:
        LoadError: a file is missing, malformed or truncated, or has triples of other graphs. Nothing was sent.
        QueryRejected, StoreUnavailable, StoreTimeout: the server does not accept updates, and nothing was sent; or the
            upload was interrupted, and the message says how much was sent.
        KeyboardInterrupt: so does its message.
    """
    started, progress = time.monotonic(), progress or (lambda progress: None)
    jobs = [file_job(Path(file), format) for file in files]
    if not jobs:
        raise LoadError("No file to load.", "Name at least one RDF file.")
    graph, malformed = target_graph(store, writable), MalformedLines(on_error)
    unused: dict[str, Any] = {name: Entity(uuid.uuid4().urn) for name in ("subject", "relation", "object")}
    update("doctor_update", graph=graph, **unused)  # changes nothing, but fails if updates are not allowed
    sent = "nothing for certain"

    def send(lines: Sequence[Line], file: str) -> None:
        """Send lines in one update; if it is rejected, in halves."""
        triples = [tuple(map(decode_term, line.decode()[:-3].split(" ", 2))) for line, _ in lines]
        try:
            update("insert_triples", graph=graph, triples=triples, timeout=UPDATE_SECONDS)
        except (QueryRejected, StoreUnavailable) as error:
            if isinstance(error, StoreUnavailable):  # some servers report an internal error for a wrong triple
                update("doctor_update", graph=graph, **unused)
            half, number = len(lines) // 2, lines[0][1]
            if half:
                send(lines[:half], file)
                send(lines[half:], file)
            elif on_error == "skip" and malformed.count < most_malformed:
                malformed.add(file, number, str(error))
            elif on_error == "skip":
                raise QueryRejected(
                    f"{error} The server rejected {MAX_REJECTED} lines before this one.",
                    "Check the files and the server.",
                ) from error
            else:
                raise QueryRejected(
                    f"{file}, line {number}: {error}",
                    "Correct the line, or skip such lines: ",
                    Option("on-error", "skip"),
                    ".",
                ) from error

    with tempfile.TemporaryDirectory(prefix="kgqa-load-") as staging:
        read = partial(upload_blocks, jobs, graph, Path(staging), progress=progress)
        total = check_lines(read(malformed), progress)
        most_malformed = malformed.count + MAX_REJECTED
        before = _count_before(store, graph)
        try:
            for block, done in read(MalformedLines("skip")):
                for batch in batches(block, BATCH_TRIPLES, BATCH_CHARS, length=lambda line: len(line[0])):
                    send(batch, done.file)
                    sent = f"all up to line {batch[-1][1]:,} of {done.file}"
                progress(done)
        except (StoreError, KeyboardInterrupt) as error:
            raise type(error)(
                f"{error} Loaded into <{graph}> so far: {sent}. Load the same files again to add the missing "
                "triples.".lstrip()
            ) from error
    progress(Progress("", 0, 0, total, "finishing"))
    after = store.triples_of([graph])
    return LoadReport(
        files=len(jobs),
        lines=total,
        added=None if before is None or after is None else after - before,
        triples=after,
        malformed=malformed.count,
        examples=tuple(malformed.examples),
        fingerprint=store.fingerprint_of([graph]),
        seconds=round(time.monotonic() - started, 3),
    )


def _count_before(store: Store, graph: str) -> int | None:
    """Count the triples of a graph before the upload; if the graph does not exist, do not query it.

    If a missing graph is queried, Virtuoso's query planner still assumes after the upload that the graph is empty.
    Counting a million triples then takes minutes.
    """
    with suppress(StoreTimeout, PartialResult):
        rows = store.select(render("named_graphs", limit=MAX_GRAPHS), fresh=True)
        if len(rows) < MAX_GRAPHS and not any(row[0] == Entity(graph) for row in rows):
            return 0
    return store.triples_of([graph])
