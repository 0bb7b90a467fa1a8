"""Records in loading.json which files are being loaded, so that kgqa can list the files to load again after a crash.

The server's load list (`DB.DBA.LOAD_LIST`) has the same files. Loaders write without a transaction log, so a crash
returns the database and the load list to the last checkpoint. So each file that the list then marks as loaded is on
disk. The journal is needed because a crash can remove files from the load list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa.lock_files import held
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.processes import is_alive, process_name
from kgqa.words import clean, sentence

MAX_SHOWN_FILES = 20
LOAD_LOCK = "graph-load.lock"
"""The lock file that `graph load` and `freebase load` hold while they write and load chunk files."""
RESUME_COMMANDS = {
    "freebase-load": "kgqa freebase load DUMP --resume",
    "graph-load": "kgqa graph load --resume --into URL",
}
"""Map from the name of a folder of chunk files to the command that resumes the load of these files."""


def begin(folder: ServerFolder, files: Sequence[Path], graph_iri: str) -> None:
    """Record that these files are about to be loaded into a graph; files lost earlier from this graph are kept."""
    earlier = folder.journal()
    lost = earlier["files"] if earlier and earlier["graph"] == graph_iri else []
    names = list(dict.fromkeys([*map(str, files), *lost]))
    _write(folder, {"graph": graph_iri, "files": names, "lost": {}, "clients": []})


def note_clients(folder: ServerFolder, pids: Sequence[int]) -> None:
    """Record the process ids of the SQL clients; each runs as long as its loader, even if this process is killed."""
    _write(folder, {**(folder.journal() or {}), "clients": list(pids)})


def settle(folder: ServerFolder, done: Iterable[str]) -> None:
    """Reduce the journal of an ended load to the files that are not on disk.

    Args:
        done: the files that the server's load list marked as loaded at the last checkpoint.
    """
    journal = folder.journal()
    if journal is None:
        return
    finished = set(done)
    left = [file for file in journal["files"] if file not in finished]
    if left:
        _write(folder, {**journal, "files": left, "clients": []})
    else:
        folder.journal_file.unlink(missing_ok=True)


def forget_chunks_of(folder: ServerFolder, name: str) -> None:
    """Remove the journal of chunk files in this folder, because their load rewrites them or is discarded."""
    journal = folder.journal()
    if journal is not None and {Path(file).parent.name for file in journal["files"]} == {name}:
        folder.journal_file.unlink(missing_ok=True)


def has_running_loader(journal: Mapping[str, Any]) -> bool:
    """Tell whether an SQL client recorded in the journal still runs."""
    return any(is_alive(pid) and process_name(pid).startswith("isql") for pid in journal["clients"])


def unfinished_loads(folder: ServerFolder, done: Iterable[str] = ()) -> str:
    """Return a message about interrupted loads and the files that have to be loaded again; "" if there are none.

    A load that was interrupted between two groups of chunk files has lost no file, but its graph is incomplete. The
    message leaves out loads that are running.

    Args:
        done: files of the journal that are on disk.
    """
    journal = folder.journal()
    finished = set(done)
    left = [Path(file) for file in journal["files"] if file not in finished] if journal else []
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
            f"<{journal['graph']}>. To ignore them, remove loading.json in the server's folder."
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


def _write(folder: ServerFolder, entry: Mapping[str, Any]) -> None:
    folder.write_private("loading.json", json.dumps(entry, indent=1))
