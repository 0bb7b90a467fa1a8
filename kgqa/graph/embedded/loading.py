"""Loading files into a graph folder, from the caller's side: locks, the journal, a worker to do it, and what is
left behind when something goes wrong.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kgqa.errors import LoadError, QueryRejected, StoreCrashed, StoreError, StoreUnavailable
from kgqa.graph.embedded.folder import HALF_WRITTEN, GraphFolder, GraphMeta, Lock, fingerprint, write_error
from kgqa.graph.embedded.worker_client import OUT_OF_MEMORY, TOO_FEW_FILES, Worker
from kgqa.graph.store import LoadReport, MalformedLine, OnError, Progress

if TYPE_CHECKING:
    from kgqa.graph.embedded.bulk_load import Journal

_OURS = re.compile(rf"write\.lock|\.?schema-\w+\.toml(?:\.[0-9]+)?|{HALF_WRITTEN.pattern}")
LOAD_MEMORY = 4 << 30
"""Bytes that the loading process may take, whatever it loads."""
MEMORY_OF_A_BYTE = 8
"""Bytes of memory on top of that for each byte of the files. Loading takes 24 bytes a line at its end, and a line
compressed as well as dumps are has 8 to 12."""
MEMORY_OF_A_TRIPLE = 32
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)


def make_folder(path: Path) -> GraphFolder:
    """The folder for a graph, made if it is not there.

    Raises:
        StoreUnavailable: a file, a folder with other things in it, or no permission.
    """
    folder = GraphFolder(Path(path))
    path = folder.path
    try:
        if not _is_utf8(path.absolute()):
            raise StoreUnavailable(
                f"{path} is not UTF-8, which the engine needs: give the graph's folder another name."
            )
        if path.exists() and not path.is_dir():
            raise StoreUnavailable(f"{path} is a file; a graph needs a folder of its own.")
        if path.is_dir() and any(path.iterdir()) and not (folder.exists() or folder.journal_file.exists()):
            if any(not _OURS.fullmatch(item.name) for item in path.iterdir()):
                raise StoreUnavailable(f"{path} has other files in it; a graph needs a folder of its own.")
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error
    return folder


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def create_empty_graph(folder: GraphFolder) -> None:
    """Make a graph without triples, for a store that is filled by updates."""
    make_folder(folder.path)
    lock = folder.write_lock()
    try:
        folder.create_generation(1, None)
        worker = Worker({"path": str(folder.store_dir(1)), "mode": "write"})
        worker.call({"op": "ask", "query": "ASK {}"}, timeout=60)
        worker.kill()
        empty = np.empty(0, dtype="<u8")
        folder.save_hashes(1, empty)
        folder.publish(GraphMeta(generation=1, fingerprint=fingerprint(empty), triples=0))
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
    """Load RDF files into a graph folder, made if it is not there. One transaction: all files or none.

    Args:
        resume: go on with an interrupted load instead of starting one; `files` is not used.
        restart: throw an interrupted load away first. Without either, an interrupted load is an error.
        format: the ending that stands for the format, where the files' names do not tell.
        schema: a schema's name, or the name of a .toml file in the folder; None keeps what it was.
        settings: settings that belong to the graph; they are added to those it has.
        memory: bytes that the loading process may take; None for a limit by the size of the files, which is far more
            than they need unless they were made to exhaust it.

    Raises:
        LoadError: a file is missing, malformed or cut short; the graph is as it was.
        StoreBusy: another load is running. StoreUnavailable: no permission, or not a graph's folder.
        KeyboardInterrupt: Ctrl-C; the load can be resumed.
    """
    from kgqa.graph.embedded.bulk_load import Journal, file_job

    started = time.monotonic()
    jobs = [file_job(Path(file), format) for file in files]
    if not resume and not jobs:
        raise LoadError("There is no file to load.")
    folder = make_folder(path)
    lock = folder.write_lock()
    try:
        base = folder.meta() if folder.exists() else None
        if base is not None and base.stale:
            raise StoreUnavailable(f"{path} was changed and not closed properly. Open it once for writing first.")
        done = _finish(folder, base)
        if resume and done:
            return _report_of(done, base, started)
        if resume:
            journal = Journal.read(folder)
            _check_base(journal, base, folder)
            _check_unchanged(journal.files, folder, file_job)
        elif folder.journal_file.exists() and not restart:
            raise LoadError(
                f"An earlier load into {path} was interrupted. Go on with it: --resume. Throw it away: --restart."
            )
        else:
            before = base.generation if base else None
            journal = Journal((before or 0) + 1, before, on_error, jobs, schema or "", settings or {})
        with _nothing_kept(folder):
            if not resume:
                journal.save(folder)
            if not any(job.lines_done or job.done for job in journal.files):
                folder.create_generation(journal.generation, journal.base)
            limit = memory or (
                LOAD_MEMORY
                + MEMORY_OF_A_BYTE * sum(job.size for job in journal.files)
                + MEMORY_OF_A_TRIPLE * (base.triples if base else 0)
            )
            result = _run_worker(folder, lock, progress, limit)
            hashes = folder.load_hashes(journal.generation)
            history = (*(base.files if base else ()), *({"path": j.path, "sha256": j.sha256} for j in journal.files))
            meta = GraphMeta(
                generation=journal.generation,
                fingerprint=fingerprint(hashes),
                triples=result["triples"],
                schema=schema or journal.schema or (base.schema if base else ""),
                settings={**(base.settings if base else {}), **journal.settings, **(settings or {})},
                files=history,
            )
            folder.publish(meta)
    finally:
        lock.release()
    return LoadReport(
        files=len(journal.files),
        lines=result["lines"],
        added=result["added"],
        triples=result["triples"],
        malformed=result["malformed"],
        examples=tuple(MalformedLine(**example) for example in result["examples"]),
        fingerprint=meta.fingerprint,
        seconds=round(time.monotonic() - started, 3),
    )


def discard_interrupted(path: Path) -> bool:
    """Throw an interrupted load away; the graph stays as it was before it. Gives whether there was one."""
    folder = GraphFolder(Path(path))
    if not folder.path.is_dir():
        raise StoreUnavailable(f"There is no graph at {folder.path}.")
    lock = folder.write_lock()
    try:
        _finish(folder, folder.meta() if folder.exists() else None)
        if not folder.journal_file.exists():
            return False
        _discard(folder)
        return True
    finally:
        lock.release()


def _finish(folder: GraphFolder, base: GraphMeta | None) -> Journal | None:
    """Tidy up after a load that was killed when it had been published, before its journal was removed; gives that."""
    from kgqa.graph.embedded.bulk_load import Journal

    if base is None or not folder.is_journal_published():
        return None
    journal = Journal.read(folder)
    folder.finish_publishing(base.generation)
    return journal


def _report_of(done: Journal, now: GraphMeta, started: float) -> LoadReport:
    """What is still known of a load that is done already."""
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
            f"{folder.journal_file} is of a load into another state of the graph. Begin again: "
            f"kgqa graph load FILE --restart --into {folder.path}"
        )


def _check_unchanged(jobs, folder: GraphFolder, look) -> None:
    for job in jobs:
        if look(Path(job.path), job.format).sha256 != job.sha256:
            raise LoadError(
                f"{job.path} has changed since the interrupted load. Begin again: "
                f"kgqa graph load FILE --restart --into {folder.path}"
            )


class _TooLittleMemory(LoadError):
    """The loading process reached its limit of memory. Its journal stays."""


@contextmanager
def _nothing_kept(folder: GraphFolder) -> Iterator[None]:
    """Throw the load away where it fails for a reason that going on with it does not help."""
    try:
        yield
    except _TooLittleMemory:
        raise  # what is done so far stays for --resume
    except StoreCrashed as error:
        raise LoadError(
            f"The loading process died ({error}). What was in the graph before is unchanged. "
            f"Go on where it stopped: kgqa graph load --resume --into {folder.path}"
        ) from error
    except (LoadError, QueryRejected, StoreUnavailable, OSError) as error:
        _discard(folder)
        if isinstance(error, LoadError):
            raise
        raise LoadError(_why_failed(folder, error)) from error


def _why_failed(folder: GraphFolder, error: Exception) -> str:
    """What to say of a load that failed; the engine gives the reasons of the system as text only."""

    def is_any(codes: tuple[int, ...]) -> bool:
        return getattr(error, "errno", None) in codes or any(os.strerror(code) in str(error) for code in codes)

    if is_any(_NO_ROOM):
        return (
            f"There is no space left on the disk of {folder.path}. Nothing of this load was kept, and what was in the "
            "graph before is unchanged. Make room and load again."
        )
    if is_any(_TOO_MANY_OPEN) or TOO_FEW_FILES in str(error):
        return (
            "This process may not open as many files as the load needs. Nothing of it was kept, and what was in the "
            "graph before is unchanged. Allow more and load again: ulimit -n 4096"
        )
    return f"The load failed: {error} Nothing of it was kept."


def _run_worker(
    folder: GraphFolder, lock: Lock, progress: Callable[[Progress], None] | None, memory: int
) -> dict[str, Any]:
    worker = Worker(None, (lock.fd,))
    try:
        payload = worker.call(
            {"op": "load", "folder": str(folder.path), "memory": memory},
            timeout=None,
            progress=(lambda fields: progress(Progress(**fields))) if progress else None,
        )
        return json.loads(payload)
    except StoreError as error:
        if OUT_OF_MEMORY.search(str(error)):
            raise _TooLittleMemory(
                f"The load needs more than {memory >> 20:,} MB of memory. What was in the graph before is unchanged. If the "
                f"files are honest, allow more and go on where it stopped: KGQA_GRAPH_LOAD_MEMORY=MEGABYTES kgqa graph load "
                f"--resume --into {folder.path}"
            ) from error
        raise
    finally:
        worker.kill()


def _discard(folder: GraphFolder) -> None:
    """Remove what a load has made so far. What is published stays, whatever the journal says."""
    from kgqa.graph.embedded.bulk_load import Journal

    with suppress(LoadError):
        folder.remove_generation(Journal.read(folder).generation)
    folder.journal_file.unlink(missing_ok=True)
