"""Bulk loading: the files go into the server's load list, several loaders work through it, the list is watched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
# the server dies when it cannot extend its database, and then loses everything since its last checkpoint
LEAST_FREE_BYTES = 256_000_000
Progress = Callable[["LoadProgress"], None]


@dataclass(frozen=True, slots=True)
class FileResult:
    """A file and the server's complaint about it; None when all of it was loaded."""

    file: Path
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is: files done, of how many; their bytes, of how many; files with an error; seconds so far."""

    files_done: int
    files: int
    bytes_done: int
    bytes: int
    failed: int
    seconds: float


def load_files(
    folder: ServerFolder,
    files: Sequence[Path],
    graph_iri: str,
    *,
    loaders: int = 2,
    progress: Progress | None = None,
    least_free_bytes: int = LEAST_FREE_BYTES,
) -> list[FileResult]:
    """See `Server.load`.

    Args:
        least_free_bytes: loading stops, and what is loaded is kept, when less than this is free on the disk.
    """
    session, paths = Session(folder), [_checked(folder, file) for file in files]
    if not paths:
        return []
    with _only_load(folder):
        session.sql("select 1")  # nothing is noted down for a server that does not run
        _settle_earlier(session, paths, graph_iri)
        try:
            _enter(session, paths, graph_iri)
            _run(session, paths, loaders, progress, least_free_bytes)
            session.sql("checkpoint")
        except BaseException as error:
            lost = _abandon(session)
            if not isinstance(error, KgqaError):
                raise
            raise ServerError(f"{sentence(error)} {load_list_journal.advice(lost)}" if lost else str(error)) from error
        results = _results(session, paths)
        _forget(session)
        load_list_journal.settle(folder, [str(result.file) for result in results])
        return results


def _checked(folder: ServerFolder, file: Path) -> Path:
    path = Path(os.path.abspath(file))
    if not path.is_file():
        raise ServerError(f"There is no file {clean(str(file))} to load. Give the path of an RDF file.")
    if folder.import_folder not in path.parents:
        raise ServerError(
            f"{clean(str(file))} lies outside of the one folder the server may read. Move or link it there: "
            f"{folder.import_folder}"
        )
    return path


@contextmanager
def _only_load(folder: ServerFolder) -> Iterator[None]:
    """Hold the lock of loads, which vanishes with this process; clients left by a killed one count too."""
    if not folder.path.is_dir():
        raise ServerError(f"The server does not run. Start it: kgqa virtuoso start{folder.option}")
    with only_one(folder.path / "loading.lock") as only:
        entry = folder.journal()
        if not only or (entry is not None and load_list_journal.loader_runs(entry)):
            raise ServerError("Another load into this server is running. Wait until it is done: kgqa virtuoso status")
        yield


def _settle_earlier(session: Session, paths: Sequence[Path], graph_iri: str) -> None:
    """Find out what an earlier, interrupted load got onto the disk, and note the files of this one."""
    lost: dict[str, str] = {}
    if session.folder.journal() is not None:
        session.sql("checkpoint")
        lost = load_list_journal.settle(session.folder, done_files(session))
    load_list_journal.begin(session.folder, paths, graph_iri, lost=lost)


def _enter(session: Session, paths: Sequence[Path], graph_iri: str) -> None:
    _forget(session)
    for path in paths:
        session.sql("ld_add(?, ?)", (str(path), graph_iri))


def _run(
    session: Session, paths: Sequence[Path], loaders: int, progress: Progress | None, least_free_bytes: int
) -> None:
    """Start the loaders and watch the list, and the disk, until all of them have ended."""
    sizes = {str(path): path.stat().st_size for path in paths}
    place = session.folder.database.parent
    started = time.monotonic()
    clients = [session.begin("rdf_loader_run()") for _ in range(max(1, min(loaders, len(paths))))]
    try:
        load_list_journal.note_clients(session.folder, [client.pid for client in clients])
        next_look = started + POLL_SECONDS
        while any(client.poll() is None for client in clients):
            time.sleep(0.02)
            if time.monotonic() < next_look:
                continue
            next_look = time.monotonic() + POLL_SECONDS
            if free_bytes(place) < least_free_bytes:
                raise ServerError(
                    f"Loading was stopped before the disk was full: {free_space(place)} are free at {place}. "
                    f"What was loaded is kept. Make room there and load the rest."
                )
            if progress and all(client.poll() is None for client in clients):
                progress(_progress(session, sizes, time.monotonic() - started))
        for error in [session.finish(client) for client in clients]:
            if error:
                raise error
    finally:
        for client in clients:  # the server ends a loader whose client is gone
            if client.poll() is None:
                client.kill()
                client.communicate()
    if progress:
        progress(_progress(session, sizes, time.monotonic() - started))


def _abandon(session: Session) -> dict[str, str]:
    """After a load that failed: keep what is loaded; gives the files that have to be loaded again, as far as the
    server can still be asked. If it cannot, its next start finds out.
    """
    try:
        session.sql("checkpoint")
        lost = load_list_journal.settle(session.folder, done_files(session))
        _forget(session)
        return lost
    except KgqaError:
        return {}


def done_files(session: Session) -> list[str]:
    """The files that the server's list calls loaded, those with an error left out."""
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


def _forget(session: Session) -> None:
    """Strike our files off the server's list, those of earlier loads too: a loader takes up whatever waits there."""
    session.sql("delete from DB.DBA.LOAD_LIST where strstr(ll_file, ?) = 0", (f"{session.folder.import_folder}/",))
