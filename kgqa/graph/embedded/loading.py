"""Loading of RDF files into a graph folder.

A load is one transaction over all its files. A worker process builds the next generation of the folder: it checks and
hashes the lines, and the engine loads them in segments. After each segment, a journal records the position in the file;
an interrupted load is resumed there. The finished generation is then published.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyoxigraph as ox
from msgspec import structs, to_builtins

from kgqa.errors import LoadError, StoreCrashed, StoreError, StoreUnavailable
from kgqa.graph.embedded.folder import GraphFolder, system_error
from kgqa.graph.embedded.records import (
    Digests,
    GraphHash,
    GraphMeta,
    GraphSettings,
    LoadedFile,
    SchemaName,
    digests_of,
)
from kgqa.graph.embedded.workers import OUT_OF_MEMORY, Worker
from kgqa.graph.rdf.files import FileJob, MalformedLines, check_unchanged, file_job, read_blocks, staged_file
from kgqa.graph.rdf.lines import lines_by_graph
from kgqa.graph.store import LoadReport, MalformedLine, OnError, Progress
from kgqa.schema import usable_prefixes
from kgqa.storage import loading as checked
from kgqa.storage.atomic_files import write_json
from kgqa.text.hints import Command, Hint, Option, current_place

LOAD_MEMORY = 4 << 30
"""Constant part of the loading process's memory limit, in bytes."""
MEMORY_PER_BYTE = 8
"""Bytes added to the memory limit per byte of the files to load.

The last stage of a load needs 64 bytes of memory per line, and a line takes 8 to 12 bytes in a compressed dump."""
SEGMENT_BYTES = 64 << 20


@dataclass
class Journal:
    """The state of a load, stored in loading.json of the generation that it makes."""

    on_error: OnError
    files: list[FileJob]
    schema: SchemaName
    settings: GraphSettings

    def save(self, folder: GraphFolder) -> None:
        """Write the journal atomically."""
        write_json(folder.journal_file, asdict(self))

    @classmethod
    def read(cls, folder: GraphFolder) -> Journal:
        """Read the journal. Raises LoadError if there is none, or it is damaged."""
        if not folder.journal_file.exists():
            raise LoadError(f"There is no interrupted load at {folder.path} to resume.")
        hint = Hint("Start the load again: ", Command("graph load", "FILE", restart=True, into=folder.path))
        return checked.load(folder.journal_file, Journal, error=LoadError, hint=hint)


def load_graph(
    path: Path,
    files: Iterable[str | Path] | None = None,
    *,
    on_error: OnError = "fail",
    progress: Callable[[Progress], None] | None = None,
    format: str | None = None,
    resume: bool = False,
    restart: bool = False,
    schema: str | None = None,
    settings: dict[str, Any] | None = None,
    memory: int | None = None,
) -> LoadReport:
    """Load RDF files into a graph folder as one transaction (all files or none); create the folder if needed.

    Args:
        path: the graph folder.
        files: the RDF files; None creates a graph without triples. Ignored if `resume` is true, because the files of
            the interrupted load are then read.
        on_error: what to do at a malformed line: `fail`, or `skip` the line.
        progress: called regularly with the progress of the load.
        format: the format of all files, as a file name extension such as `nt`; None to use the extension of each file.
        resume: whether to continue an interrupted load.
        restart: whether to discard an interrupted load first. If both `resume` and `restart` are False, an interrupted
            load is an error.
        schema: name of a bundled schema, or of a .toml file in the folder; None keeps the folder's present schema.
        settings: settings to store with the graph, in addition to its present settings.
        memory: memory limit of the loading process, in bytes; None computes a limit from the size of the files, far
            above the memory that ordinary files need.

    Raises:
        LoadError: there is no file, or a file is missing, malformed or cut short; the graph is unchanged.
        StoreBusy: another load is running.
        StoreUnavailable: the folder is not writable, or is not a graph folder.
        KeyboardInterrupt: Ctrl-C; the load can be resumed.
    """
    started = time.monotonic()
    jobs = [file_job(Path(file), format) for file in files or ()]
    if not (jobs or resume or files is None):
        raise LoadError("No file to load.", "Name at least one RDF file.")
    folder = GraphFolder(Path(path))
    folder.create()
    with folder.write_lock() as lock:
        base = folder.meta() if folder.exists() else GraphMeta(0, os.urandom(16).hex())
        if resume:
            journal = Journal.read(folder)
            for job in journal.files:
                check_unchanged(job, Command("graph load", "FILE", restart=True, into=folder.path))
        elif folder.journal_file.exists() and not restart:
            raise LoadError(
                f"An earlier load into {path} was interrupted.",
                "Resume that load with ",
                Option("resume", True),
                ", or discard it with ",
                Option("restart", True),
                ".",
            )
        else:
            journal = Journal(on_error, jobs, schema or "", settings or {})
        limit = memory or (LOAD_MEMORY + MEMORY_PER_BYTE * sum(job.size for job in journal.files))
        notice = folder.lost_edits()
        try:
            if not resume:
                folder.create_generation(base.generation + 1, base.generation)
                journal.save(folder)
            result = _run_worker(folder, lock, progress, limit)
            declared = {name: iri for prefixes in reversed(result["prefixes"]) for name, iri in prefixes.items()}
            meta = structs.replace(
                base.changed({graph: GraphHash(**hash) for graph, hash in result["graphs"].items()}),
                generation=base.generation + 1,
                schema=schema or journal.schema or base.schema,
                settings={**base.settings, **journal.settings, **(settings or {})},
                files=(*base.files, *(LoadedFile(job.path, job.sha256) for job in journal.files)),
                prefixes=usable_prefixes({**declared, **base.prefixes}),
            )
            folder.publish(meta)
        except LoadError:
            folder.remove_generation(base.generation + 1)
            raise
        except (StoreError, OSError) as error:
            raise _load_error(folder, error, limit) from error
    return LoadReport(
        files=len(journal.files),
        lines=result["lines"],
        added=meta.triples - base.triples,
        triples=meta.triples,
        malformed=result["malformed"],
        examples=tuple(MalformedLine(**example) for example in result["examples"]),
        fingerprint=meta.fingerprint,
        seconds=round(time.monotonic() - started, 3),
        notice=notice,
        empty=tuple(result["empty"]),
    )


def _run_worker(
    folder: GraphFolder, lock: BinaryIO, progress: Callable[[Progress], None] | None, memory: int
) -> dict[str, Any]:
    worker = Worker(None, locks=[lock])
    try:
        reply = worker.call(
            {"op": "load", "folder": str(folder.path), "memory": memory, "place": asdict(current_place())},
            progress=lambda fields: progress(Progress(**fields)) if progress else None,
        )
        return dict(json.loads(bytes(reply)))
    finally:
        worker.kill()


def _load_error(folder: GraphFolder, error: StoreError | OSError, memory: int) -> LoadError:
    """Return the error of a load. The load is discarded, unless it may succeed when it is resumed."""
    resume = Command("graph load", resume=True, into=folder.path)
    if OUT_OF_MEMORY.search(str(error)):
        return LoadError(
            f"The load needs more than {memory >> 20:,} MB of memory. The graph is unchanged.",
            Hint(
                "If you trust the files, raise the limit and resume: KGQA_GRAPH_LOAD_MEMORY=MEGABYTES ",
                resume,
                python=f"If you trust the files, raise the limit (memory=MEGABYTES) and resume: {folder.path}",
            ),
        )
    if isinstance(error, StoreCrashed):
        return LoadError(f"The loading process died ({error}). The graph is unchanged.", "Resume the load: ", resume)
    folder.remove_generation(folder.current() + 1)
    why = system_error(folder.path, error) or error
    return LoadError(f"The load was discarded and the graph is unchanged. {why}")


def discard_interrupted(path: Path) -> bool:
    """Discard an interrupted load. Returns False if there is no interrupted load.

    Raises:
        StoreUnavailable: the folder does not exist or is not writable.
        StoreBusy: a load is running.
    """
    folder = GraphFolder(Path(path))
    if not folder.path.is_dir():
        raise StoreUnavailable(f"There is no graph at {folder.path}.", "Check the path.")
    with folder.write_lock():
        interrupted = folder.journal_file.exists()
        if interrupted:
            folder.remove_generation(folder.current() + 1)
        return interrupted


# --- in the worker process


def run_load(path: Path, report: Callable[[dict[str, Any]], None]) -> bytes:
    """Run the load that the journal of a folder describes: complete the next generation, but do not publish it.

    Args:
        report: called regularly with the fields of `store.Progress`.

    Returns:
        A JSON object: the `lines`, `malformed`, `examples` and `empty` of `store.LoadReport`, as `graphs` the hash of
        each graph's new triples, and as `prefixes` those that each file declares.

    Raises:
        LoadError: a file is malformed or cut short; the caller discards the generation.
    """
    load = _Load(GraphFolder(path), report)
    for job in load.journal.files:
        load.file(job)
    load.tell("", 0, 0, load.lines, "finishing")
    load.store.flush()
    load.store.optimize()
    result = {
        "lines": load.lines,
        "malformed": load.malformed.count,
        "empty": load.empty,
        "examples": [asdict(example) for example in load.malformed.examples],
        "prefixes": [job.prefixes for job in load.journal.files],
        "graphs": {graph: to_builtins(GraphHash.of(*digests)) for graph, digests in load.digests.items()},
    }
    return json.dumps(result).encode()


class _Load:
    """Checks and hashes the lines of one file after another, and loads them into the engine in segments."""

    def __init__(self, folder: GraphFolder, report: Callable[[dict[str, Any]], None]) -> None:
        self._folder, self._report = folder, report
        self.journal = Journal.read(folder)
        base = folder.current()
        self.store = ox.Store(str(folder.store_dir(base + 1)))
        self._base = ox.Store.read_only(str(folder.store_dir(base))) if base else None
        self.lines = 0
        self.empty: list[str] = []
        self.malformed = MalformedLines(self.journal.on_error)
        self.digests: defaultdict[str, list[Digests]] = defaultdict(list)
        """Those of the lines that the graph did not have before the load, by graph and block."""

    def file(self, job: FileJob) -> None:
        """Hash the new triples of a file, and load the blocks that are not loaded yet."""
        staging = self._folder.journal_file.parent
        segment: list[bytes] = []
        size = end = triples = 0
        blocks = read_blocks(
            job,
            staging,
            lambda line, message: self.malformed.add(job.name, line, message),
            lambda done, lines: self.tell(job.name, done, job.size, self.lines + lines, "reading"),
        )
        for block, bytes_done in blocks:
            new = self._new_lines(block.lines)
            for graph, lines in ({"": new} if job.format == ".nt" else lines_by_graph(new)).items():
                self.digests[graph].append(digests_of(lines))
            triples += len(block.lines)
            self.lines += block.end - block.first
            self.tell(job.name, bytes_done, job.size, self.lines, "loading")
            # a segment ends at the end of a block, so each block was loaded completely or not at all
            end = block.end
            if end > job.lines_done:
                segment.append(b"".join(block.lines))
                size += len(segment[-1])
            if size >= SEGMENT_BYTES:
                self._load(segment, job, end)
                segment, size = [], 0
        self._load(segment, job, end)
        if not triples:
            self.empty.append(job.name)
        staged_file(job, staging).unlink(missing_ok=True)

    def _load(self, segment: list[bytes], job: FileJob, end: int) -> None:
        self.store.bulk_load(b"".join(segment), format=ox.RdfFormat.N_QUADS)
        job.lines_done = max(job.lines_done, end)
        self.journal.save(self._folder)

    def _new_lines(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines that the graph did not have before the load."""
        if self._base is None:
            return lines
        quads = ox.parse(b"".join(lines), format=ox.RdfFormat.N_QUADS)
        return [line for line, quad in zip(lines, quads) if quad not in self._base]

    def tell(self, file: str, bytes_done: int, bytes_total: int, lines: int, stage: str) -> None:
        """Report the progress of the load."""
        self._report(
            {"file": file, "bytes_done": bytes_done, "bytes_total": bytes_total, "lines": lines, "stage": stage}
        )
