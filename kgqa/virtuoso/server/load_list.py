"""Loads files from the import folder; several loaders take the files from the server's table DB.DBA.LOAD_LIST."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kgqa.errors import KgqaError, ServerError
from kgqa.storage.lock_files import held, only_one
from kgqa.text.words import clean, sentence
from kgqa.virtuoso.instance.folder import LoadListJournal, ServerFolder
from kgqa.virtuoso.instance.processes import is_alive, process_name
from kgqa.virtuoso.instance.server_log import free_bytes, free_space
from kgqa.virtuoso.instance.session import Session

POLL_SECONDS = 0.5
DONE = "2"
# a server that cannot enlarge its database file crashes and loses everything since its last checkpoint
MIN_FREE_BYTES = 256_000_000
MAX_SHOWN_FILES = 20
LOAD_LOCK = "graph-load.lock"
"""The lock file that `graph load` and `freebase load` hold while they write and load chunk files."""
RESUME_COMMANDS = {
    "freebase-load": "kgqa freebase load DUMP --resume",
    "graph-load": "kgqa graph load --resume --into URL",
}
"""Map from the name of a folder of chunk files to the command that resumes the load of these files."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """A loaded file; `error` is the server's error message, or None if the whole file was loaded."""

    file: Path
    error: str | None = None


def run_load_list(
    folder: ServerFolder,
    files: Sequence[Path],
    graph_iri: str,
    *,
    loaders: int = 2,
    progress: Callable[[int], None] | None = None,
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
        settle(folder, loaded_files(session))  # of a load that was killed
        journal = begin(folder, paths, graph_iri)
        try:
            _clear_list(session)
            for path in paths:
                session.sql("ld_add(?, ?)", (str(path), graph_iri))
            _run_loaders(session, journal, paths, loaders, progress, min_free_bytes)
            session.sql("checkpoint")
        except BaseException as error:
            _abandon(session)
            advice = unfinished_loads(folder) if isinstance(error, KgqaError) else ""
            if not advice:
                raise
            raise ServerError(f"{sentence(error)} {advice}") from error
        results = _results(session, paths)
        _clear_list(session)
        settle(folder, [str(result.file) for result in results])
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
        if not only or (entry is not None and has_running_loader(entry)):
            raise ServerError("Another load into this server is running.", "Wait until it ends: kgqa virtuoso status")
        yield


def _run_loaders(
    session: Session,
    journal: LoadListJournal,
    paths: Sequence[Path],
    loaders: int,
    progress: Callable[[int], None] | None,
    min_free_bytes: int,
) -> None:
    """Start the loaders and watch the load list and the disk until all loaders have ended."""
    disk = session.folder.database.parent
    clients = [session.start_statement("rdf_loader_run()") for _ in range(max(1, min(loaders, len(paths))))]
    try:
        # a client runs as long as its loader, even if this process is killed
        journal.clients = [client.pid for client in clients]
        session.folder.write_json(session.folder.journal_file.name, journal)
        next_poll = time.monotonic() + POLL_SECONDS
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
                progress(_files_done(session, paths))
        for outputs in [client.communicate() for client in clients]:
            session.check_outputs(*outputs)
    finally:
        for client in clients:  # killing a client ends its loader in the server
            if client.poll() is None:
                client.kill()
                client.communicate()
    if progress:
        progress(_files_done(session, paths))


def _abandon(session: Session) -> None:
    """Keep the loaded triples of a failed load; if the server does not answer, its next start does this."""
    with suppress(KgqaError):
        session.sql("checkpoint")
        settle(session.folder, loaded_files(session))
        _clear_list(session)


def loaded_files(session: Session) -> list[str]:
    """Return the files that the load list marks as loaded without an error."""
    return [
        file for (file,) in session.sql("select ll_file from DB.DBA.LOAD_LIST where ll_state = 2 and ll_error is null")
    ]


def _files_done(session: Session, paths: Sequence[Path]) -> int:
    rows = session.sql("select ll_file from DB.DBA.LOAD_LIST where ll_state = 2", timeout=60)
    return len({file for (file,) in rows} & set(map(str, paths)))


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


def begin(folder: ServerFolder, files: Sequence[Path], graph_iri: str) -> LoadListJournal:
    """Record that these files are about to be loaded into a graph; files lost earlier from this graph are kept.

    The load list of the server has the same files. Loaders write without a transaction log, so a crash returns the
    database and the load list to the last checkpoint, and each file that the list then marks as loaded is on disk. The
    journal is needed because a crash can remove files from the load list.
    """
    earlier = folder.journal()
    lost = earlier.files if earlier and earlier.graph == graph_iri else []
    journal = LoadListJournal(graph_iri, list(dict.fromkeys([*map(str, files), *lost])))
    folder.write_json(folder.journal_file.name, journal)
    return journal


def settle(folder: ServerFolder, done: Iterable[str]) -> None:
    """Reduce the journal of an ended load to the files that are not on disk.

    Args:
        done: the files that the server's load list marked as loaded at the last checkpoint.
    """
    journal = folder.journal()
    if journal is None:
        return
    finished = set(done)
    left = [file for file in journal.files if file not in finished]
    if left:
        folder.write_json(folder.journal_file.name, LoadListJournal(journal.graph, left))
    else:
        folder.journal_file.unlink(missing_ok=True)


def forget_chunks_of(folder: ServerFolder, name: str) -> None:
    """Remove the journal of chunk files in this folder, because their load rewrites them or is discarded."""
    journal = folder.journal()
    if journal is not None and {Path(file).parent.name for file in journal.files} == {name}:
        folder.journal_file.unlink(missing_ok=True)


def has_running_loader(journal: LoadListJournal) -> bool:
    """Tell whether an SQL client recorded in the journal still runs."""
    return any(is_alive(pid) and process_name(pid).startswith("isql") for pid in journal.clients)


def unfinished_loads(folder: ServerFolder, done: Iterable[str] = ()) -> str:
    """Return a message about interrupted loads and the files that have to be loaded again; "" if there are none.

    A load that was interrupted between two groups of chunk files has lost no file, but its graph is incomplete. The
    message leaves out loads that are running.

    Args:
        done: files of the journal that are on disk.
    """
    journal = folder.journal()
    finished = set(done)
    left = [Path(file) for file in journal.files if file not in finished] if journal else []
    if not left and not any((folder.path / f"{name}.json").exists() for name in RESUME_COMMANDS):
        return ""  # no load to report, so the lock is not needed
    running = held(folder.path / LOAD_LOCK)
    parts = []
    for name, command in {} if running else RESUME_COMMANDS.items():
        graph = _interrupted_graph(folder, name)
        if graph is not None:
            # `graph load` finds the server by its URL and has no --folder
            option = folder.folder_option if name == "freebase-load" else ""
            parts.append(f"A load into <{graph}> was interrupted. Resume it: {command}{option}")
    names = [path.name for path in left if path.parent.name not in RESUME_COMMANDS]
    if names and journal:
        more = f" and {len(names) - MAX_SHOWN_FILES} more (all are in loading.json)"
        listed = ", ".join(names[:MAX_SHOWN_FILES]) + (more if len(names) > MAX_SHOWN_FILES else "")
        number = "1 file has" if len(names) == 1 else f"{len(names)} files have"
        parts.append(
            f"A load was interrupted: {number} to be loaded again (triples already loaded do no harm): {listed} into "
            f"<{journal.graph}>. To ignore them, remove loading.json in the server's folder."
        )
    return " ".join([*map(sentence, parts[:-1]), *parts[-1:]])


def _interrupted_graph(folder: ServerFolder, name: str) -> str | None:
    """Return the graph of an interrupted load; None if there is no such load."""
    try:
        data = json.loads((folder.path / f"{name}.json").read_text(encoding="utf-8"))
        return clean(str(data["graph"] if "graph" in data else data["options"]["graph_iri"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError):
        return "unknown graph: the journal is damaged"
