"""Loading of RDF files into a graph folder: locks, journal, worker process and recovery from errors."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kgqa.errors import LoadError, QueryRejected, StoreCrashed, StoreError, StoreUnavailable
from kgqa.graph.embedded.bulk_load import Journal
from kgqa.graph.embedded.folder import HALF_WRITTEN, GraphFolder, Lock, disk_errors, system_error
from kgqa.graph.embedded.graph_hashes import DatasetHash, GraphHash
from kgqa.graph.embedded.records import GraphMeta, LoadedFile
from kgqa.graph.embedded.workers import OUT_OF_MEMORY, Worker
from kgqa.graph.rdf.files import check_unchanged, file_job
from kgqa.graph.store import LoadReport, MalformedLine, OnError, Progress
from kgqa.schema import usable_prefixes
from kgqa.text.hints import Command, Hint, Option

_OWN_FILES = re.compile(rf"write\.lock|\.?schema-\w+\.toml(?:\.[0-9]+)?|{HALF_WRITTEN.pattern}")
LOAD_MEMORY = 4 << 30
"""Constant part of the loading process's memory limit, in bytes."""
MEMORY_PER_BYTE = 8
"""Bytes added to the memory limit per byte of the files to load.

The last stage of a load needs 56 bytes of memory per line, and a line takes 8 to 12 bytes in a compressed dump."""


def make_folder(path: Path) -> GraphFolder:
    """Return the graph folder at a path; the folder is created if needed.

    Raises:
        StoreUnavailable: the path is a file, or a folder that contains other files or is not writable.
    """
    folder = GraphFolder(Path(path))
    path = folder.path
    with disk_errors(path):
        if str(path.absolute()).encode("utf-8", "replace") != os.fsencode(path.absolute()):
            raise StoreUnavailable(
                f"The path {path} is not valid UTF-8, which the engine needs.", "Choose another folder for the graph."
            )
        if path.exists() and not path.is_dir():
            raise StoreUnavailable(f"{path} is a file.", "Choose a new folder for the graph.")
        is_graph = folder.exists() or folder.journal_file.exists()
        if path.is_dir() and not is_graph and any(not _OWN_FILES.fullmatch(item.name) for item in path.iterdir()):
            raise StoreUnavailable(f"{path} contains other files.", "Choose a new folder for the graph.")
        path.mkdir(parents=True, exist_ok=True)
    return folder


def create_empty_graph(folder: GraphFolder) -> None:
    """Create a graph without triples, for a store that is filled by edits."""
    make_folder(folder.path)
    lock = folder.write_lock()
    try:
        folder.create_generation(1, None)
        worker = Worker(folder.store_dir(1), "write")
        worker.call({"op": "ask", "query": "ASK {}"}, seconds=60)
        worker.kill()
        folder.publish(GraphMeta.of(1, DatasetHash({})))
    finally:
        lock.release()


def load_graph(
    path: Path,
    files: Iterable[str | Path] = (),
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
        files: the RDF files; ignored if `resume` is true, because the files of the interrupted load are then read.
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
        LoadError: a file is missing, malformed or cut short; the graph is unchanged.
        StoreBusy: another load is running.
        StoreUnavailable: the folder is not writable, or is not a graph folder.
        KeyboardInterrupt: Ctrl-C; the load can be resumed.
    """
    started = time.monotonic()
    jobs = [file_job(Path(file), format) for file in files]
    if not resume and not jobs:
        raise LoadError("No file to load.", "Name at least one RDF file.")
    folder = make_folder(path)
    lock = folder.write_lock()
    try:
        base = folder.meta() if folder.exists() else None
        done = _finish_published(folder, base)
        notice = folder.unpublished.notice(base.generation) if base else ""
        folder.unpublished.remove()
        if resume and done and base:
            return _report_published(done, base, started)
        if resume:
            journal = Journal.read(folder)
            _check_base(journal, base, folder)
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
            before = base.generation if base else None
            journal = Journal((before or 0) + 1, before, on_error, jobs, schema or "", settings or {})
        with _discarded_on_error(folder):
            if not resume:
                journal.save(folder)
            if not any(job.lines_done or job.done for job in journal.files):
                folder.create_generation(journal.generation, journal.base)
            limit = memory or (LOAD_MEMORY + MEMORY_PER_BYTE * sum(job.size for job in journal.files))
            result = _run_worker(folder, lock, progress, limit)
            known = base.hashes if base else DatasetHash({})
            hashes = known.plus({graph: GraphHash(*each) for graph, each in result["graphs"].items()})
            history = (*(base.files if base else ()), *(LoadedFile(job.path, job.sha256) for job in journal.files))
            declared = [base.prefixes if base else {}, *result["prefixes"]]
            meta = (base.with_hashes if base else GraphMeta.of)(
                journal.generation,
                hashes,
                schema=schema or journal.schema or (base.schema if base else ""),
                settings={**(base.settings if base else {}), **journal.settings, **(settings or {})},
                files=history,
                prefixes=usable_prefixes({name: iri for each in reversed(declared) for name, iri in each.items()}),
            )
            folder.publish(meta)
    finally:
        lock.release()
    return LoadReport(
        files=len(journal.files),
        lines=result["lines"],
        added=meta.triples - (base.triples if base else 0),
        triples=meta.triples,
        malformed=result["malformed"],
        examples=tuple(MalformedLine(**example) for example in result["examples"]),
        fingerprint=meta.fingerprint,
        seconds=round(time.monotonic() - started, 3),
        notice=notice,
        empty=tuple(result["empty"]),
    )


def discard_interrupted(path: Path) -> bool:
    """Discard an interrupted load. Returns False if there is no interrupted load.

    Raises:
        StoreUnavailable: the folder does not exist or is not writable.
        StoreBusy: a load is running.
    """
    folder = GraphFolder(Path(path))
    if not folder.path.is_dir():
        raise StoreUnavailable(f"There is no graph at {folder.path}.", "Check the path.")
    lock = folder.write_lock()
    try:
        _finish_published(folder, folder.meta() if folder.exists() else None)
        if not folder.journal_file.exists():
            return False
        _discard(folder)
        return True
    finally:
        lock.release()


def _finish_published(folder: GraphFolder, base: GraphMeta | None) -> Journal | None:
    """Remove the journal of a load that was killed after its publication. Returns None without such a load."""
    if base is None or not folder.is_journal_published():
        return None
    journal = Journal.read(folder)
    folder.finish_publishing({base.generation})
    return journal


def _report_published(done: Journal, now: GraphMeta, started: float) -> LoadReport:
    """Return the report on a load that was published before `--resume` was used."""
    return LoadReport(
        files=len(done.files),
        lines=sum(job.lines_done for job in done.files),
        added=None,
        triples=now.triples,
        malformed=0,
        examples=(),
        fingerprint=now.fingerprint,
        seconds=round(time.monotonic() - started, 3),
    )


def _check_base(journal: Journal, base: GraphMeta | None, folder: GraphFolder) -> None:
    before = base.generation if base else None
    if journal.base != before or journal.generation != (before or 0) + 1:
        raise LoadError(
            f"{folder.journal_file} does not belong to the present state of the graph.",
            "Start the load again: ",
            Command("graph load", "FILE", restart=True, into=folder.path),
        )


class _TooLittleMemory(LoadError):
    """The loading process reached its memory limit. The journal is kept, and the load can be resumed."""


@contextmanager
def _discarded_on_error(folder: GraphFolder) -> Iterator[None]:
    """Discard the load after an error that would occur again if the load were resumed."""
    try:
        yield
    except _TooLittleMemory:
        raise  # the load is kept for --resume
    except StoreCrashed as error:
        raise LoadError(
            f"The loading process died ({error}). The graph is unchanged.",
            "Resume the load: ",
            Command("graph load", resume=True, into=folder.path),
        ) from error
    except (LoadError, QueryRejected, StoreUnavailable, OSError) as error:
        _discard(folder)
        if isinstance(error, LoadError):
            raise
        why = system_error(folder.path, error) or error
        raise LoadError(f"The load was discarded and the graph is unchanged. {why}") from error


def _run_worker(
    folder: GraphFolder, lock: Lock, progress: Callable[[Progress], None] | None, memory: int
) -> dict[str, Any]:
    worker = Worker(None, locks=[lock])
    try:
        payload = worker.call(
            {"op": "load", "folder": str(folder.path), "memory": memory},
            progress=lambda fields: progress(Progress(**fields)) if progress else None,
        )
        result: dict[str, Any] = json.loads(bytes(payload))
        return result
    except StoreError as error:
        if OUT_OF_MEMORY.search(str(error)):
            raise _TooLittleMemory(
                f"The load needs more than {memory >> 20:,} MB of memory. The graph is unchanged.",
                Hint(
                    "If you trust the files, raise the limit and resume: KGQA_GRAPH_LOAD_MEMORY=MEGABYTES ",
                    Command("graph load", resume=True, into=folder.path),
                    python=f"If you trust the files, raise the limit (memory=MEGABYTES) and resume: {folder.path}",
                ),
            ) from error
        raise
    finally:
        worker.kill()


def _discard(folder: GraphFolder) -> None:
    """Remove the unpublished generation and the journal of a load."""
    with suppress(LoadError):
        folder.remove_generation(Journal.read(folder).generation)
    folder.journal_file.unlink(missing_ok=True)
