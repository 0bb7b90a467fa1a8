"""Loads files from the import folder; several loaders take the files from the server's table DB.DBA.LOAD_LIST."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kgqa.errors import KgqaError, ServerError
from kgqa.lock_files import only_one
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.server_log import free_bytes, free_space
from kgqa.virtuoso.instance.session import Session
from kgqa.virtuoso.server import load_list_journal
from kgqa.words import clean, sentence

POLL_SECONDS = 0.5
DONE = "2"
# a server that cannot enlarge its database file crashes and loses everything since its last checkpoint
MIN_FREE_BYTES = 256_000_000
OnLoadProgress = Callable[["LoadProgress"], None]


@dataclass(frozen=True, slots=True)
class FileResult:
    """A loaded file; `error` is the server's error message, or None if the whole file was loaded."""

    file: Path
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """Progress of a load: files and bytes done so far, their totals, files with an error, and elapsed seconds."""

    files_done: int
    files: int
    bytes_done: int
    bytes: int
    failed: int
    seconds: float


def run_load_list(
    folder: ServerFolder,
    files: Sequence[Path],
    graph_iri: str,
    *,
    loaders: int = 2,
    progress: OnLoadProgress | None = None,
    min_free_bytes: int = MIN_FREE_BYTES,
) -> list[FileResult]:
    """Load files from the import folder; see `Server.load`.

    Args:
        min_free_bytes: free disk space below which loading stops; triples already loaded are kept.
    """
    session, paths = Session(folder), [_checked(folder, file) for file in files]
    if not paths:
        return []
    with _load_list_lock(folder):
        session.sql("select 1")  # raises an error if the server does not run, before anything is recorded
        load_list_journal.settle(folder, loaded_files(session))  # of a load that was killed
        load_list_journal.begin(folder, paths, graph_iri)
        try:
            _add_to_list(session, paths, graph_iri)
            _run_loaders(session, paths, loaders, progress, min_free_bytes)
            session.sql("checkpoint")
        except BaseException as error:
            _abandon(session)
            advice = load_list_journal.unfinished_loads(folder) if isinstance(error, KgqaError) else ""
            if not advice:
                raise
            raise ServerError(f"{sentence(error)} {advice}") from error
        results = _results(session, paths)
        _clear_list(session)
        load_list_journal.settle(folder, [str(result.file) for result in results])
        return results


def _checked(folder: ServerFolder, file: Path) -> Path:
    path = Path(os.path.abspath(file))
    if not path.is_file():
        raise ServerError(f"There is no file {clean(str(file))}.", "Give the path of an RDF file.")
    if folder.import_folder not in path.parents:
        raise ServerError(
            f"{clean(str(file))} is outside the only folder that the server may read.",
            f"Move or link the file to {folder.import_folder}",
        )
    return path


@contextmanager
def _load_list_lock(folder: ServerFolder) -> Iterator[None]:
    """Hold the lock of the load list. If kgqa was killed, its SQL clients hold the lock until they end."""
    if not folder.path.is_dir():
        raise ServerError("The server is not running.", f"Start it: kgqa virtuoso start{folder.folder_option}")
    with only_one(folder.path / "loading.lock") as only:
        entry = folder.journal()
        if not only or (entry is not None and load_list_journal.has_running_loader(entry)):
            raise ServerError("Another load into this server is running.", "Wait until it ends: kgqa virtuoso status")
        yield


def _add_to_list(session: Session, paths: Sequence[Path], graph_iri: str) -> None:
    _clear_list(session)
    for path in paths:
        session.sql("ld_add(?, ?)", (str(path), graph_iri))


def _run_loaders(
    session: Session, paths: Sequence[Path], loaders: int, progress: OnLoadProgress | None, min_free_bytes: int
) -> None:
    """Start the loaders and watch the load list and the disk until all loaders have ended."""
    sizes = {str(path): path.stat().st_size for path in paths}
    disk = session.folder.database.parent
    started = time.monotonic()
    clients = [session.start_statement("rdf_loader_run()") for _ in range(max(1, min(loaders, len(paths))))]
    try:
        load_list_journal.note_clients(session.folder, [client.pid for client in clients])
        next_poll = started + POLL_SECONDS
        while any(client.poll() is None for client in clients):
            time.sleep(0.02)
            if time.monotonic() < next_poll:
                continue
            next_poll = time.monotonic() + POLL_SECONDS
            if free_bytes(disk) < min_free_bytes:
                raise ServerError(
                    f"Loading stopped because the disk is nearly full: {free_space(disk)} are free at {disk}. "
                    "Triples already loaded are kept.",
                    "Free some space and load the other files.",
                )
            if progress and all(client.poll() is None for client in clients):
                progress(_progress(session, sizes, time.monotonic() - started))
        for error in [session.finish_statement(client) for client in clients]:
            if error:
                raise error
    finally:
        for client in clients:  # killing a client ends its loader in the server
            if client.poll() is None:
                client.kill()
                client.communicate()
    if progress:
        progress(_progress(session, sizes, time.monotonic() - started))


def _abandon(session: Session) -> None:
    """Keep the loaded triples of a failed load; if the server does not answer, its next start does this."""
    with suppress(KgqaError):
        session.sql("checkpoint")
        load_list_journal.settle(session.folder, loaded_files(session))
        _clear_list(session)


def loaded_files(session: Session) -> list[str]:
    """Return the files that the load list marks as loaded without an error."""
    return [
        file for (file,) in session.sql("select ll_file from DB.DBA.LOAD_LIST where ll_state = 2 and ll_error is null")
    ]


def _progress(session: Session, sizes: dict[str, int], seconds: float) -> LoadProgress:
    rows = session.sql("select ll_file, ll_error from DB.DBA.LOAD_LIST where ll_state = 2", timeout=60)
    done = {file: error for file, error in rows if file in sizes}
    return LoadProgress(
        files_done=len(done),
        files=len(sizes),
        bytes_done=sum(sizes[file] for file in done),
        bytes=sum(sizes.values()),
        failed=sum(bool(error) for error in done.values()),
        seconds=seconds,
    )


def _results(session: Session, paths: Sequence[Path]) -> list[FileResult]:
    rows = session.sql("select ll_file, ll_state, ll_error from DB.DBA.LOAD_LIST")
    seen = {file: (state, error) for file, state, error in rows}
    results = []
    for path in paths:
        state, error = seen.get(str(path), ("", ""))
        if state != DONE and not error:
            error = "the server did not finish this file; load it again"
        results.append(FileResult(path, clean(error) or None))
    return results


def _clear_list(session: Session) -> None:
    """Remove the files of the import folder from the load list, because a loader loads every file on that list."""
    session.sql("delete from DB.DBA.LOAD_LIST where strstr(ll_file, ?) = 0", (f"{session.folder.import_folder}/",))
