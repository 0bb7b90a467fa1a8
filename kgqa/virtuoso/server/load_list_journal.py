"""Which files are being loaded: kept on disk, so that after a crash it can be said what has to be loaded again.

The server keeps a list of its own (`DB.DBA.LOAD_LIST`). Loaders write without a log of changes, so a crash takes the
database back to its last checkpoint, and the server's list with it: whatever that list calls done was on disk. The
journal holds the names of all files, because the list may have lost them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa.lock_files import held
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.processes import alive, name_of
from kgqa.words import clean, sentence

SHOWN_FILES = 20
LOAD_LOCK = "graph-load.lock"
"""Is held by whoever makes files and loads them, of either kind."""
GO_ON = {"freebase-load": "kgqa freebase load DUMP --resume", "graph-load": "kgqa graph load --resume --into URL"}
"""How loads go on that make their files themselves, by the folder that these lie in."""


def begin(folder: ServerFolder, files: Sequence[Path], graph_iri: str, *, lost: Mapping[str, str]) -> None:
    """Note that these files are about to be loaded into a graph.

    Args:
        lost: files of earlier loads that have to be loaded again, and their graphs. Those among `files` are done with.
    """
    names = [str(file) for file in files]
    left = {file: graph for file, graph in lost.items() if file not in names}
    _write(folder, {"graph": graph_iri, "files": names, "lost": left, "clients": []})


def note_clients(folder: ServerFolder, pids: Sequence[int]) -> None:
    """Note the SQL clients that load: they live as long as the server works for them, even if we are killed."""
    _write(folder, {**(folder.journal() or {}), "clients": list(pids)})


def settle(folder: ServerFolder, done: Iterable[str]) -> dict[str, str]:
    """A load has ended, well or not: keep in the journal what is not on disk.

    Args:
        done: the files that the server's list calls loaded, as of its last checkpoint.

    Returns:
        The files that have to be loaded again, and the graph of each.
    """
    journal = folder.journal()
    if journal is None:
        return {}
    lost = still_lost(journal, done)
    if lost:
        _write(folder, {**journal, "files": [], "lost": lost, "clients": []})
    else:
        folder.journal_file.unlink(missing_ok=True)
    return lost


def forget_made(folder: ServerFolder, name: str) -> None:
    """Forget what was lost of the files that a load made itself, in this folder: it makes them anew, or is given up."""
    journal = folder.journal()
    if journal is not None and not journal["files"]:
        lost = {file: graph for file, graph in journal["lost"].items() if Path(file).parent.name != name}
        if lost:
            _write(folder, {**journal, "lost": lost})
        else:
            folder.journal_file.unlink(missing_ok=True)


def still_lost(journal: Mapping[str, Any], done: Iterable[str]) -> dict[str, str]:
    """The files that have to be loaded again, and the graph of each, given those the server calls loaded."""
    finished = set(done)
    return {**journal["lost"], **{file: journal["graph"] for file in journal["files"] if file not in finished}}


def loader_runs(journal: Mapping[str, Any]) -> bool:
    """Whether one of the clients that load is still there."""
    return any(alive(pid) and name_of(pid).startswith("isql") for pid in journal["clients"])


def advice(lost: Mapping[str, str]) -> str:
    """What to tell of files that have to be loaded again, given the graph of each; empty where there are none."""
    if not lost:
        return ""
    folders = {Path(file).parent.name for file in lost}
    if folders <= GO_ON.keys():
        ways = " and ".join(GO_ON[folder] for folder in sorted(folders))
        return f"A load into {', '.join(f'<{graph}>' for graph in sorted(set(lost.values())))} was interrupted. Go on: {ways}"
    graphs = sorted(set(lost.values()))
    parts = []
    for graph in graphs:
        names = [Path(file).name for file in lost if lost[file] == graph]
        more = f" and {len(names) - SHOWN_FILES} more (loading.json has them all)" if len(names) > SHOWN_FILES else ""
        parts.append(f"{', '.join(names[:SHOWN_FILES])}{more} into <{graph}>")
    number = "1 file has" if len(lost) == 1 else f"{len(lost)} files have"
    return (
        f"A load was interrupted: {number} to be loaded again (what is in already does no harm): {'; '.join(parts)}. "
        f"To forget about it, remove loading.json in the server's folder."
    )


def left_to_do(folder: ServerFolder, lost: Mapping[str, str]) -> str:
    """`advice`, and the same of loads that make their files themselves: between two groups nothing is lost, and yet
    half of the graph is missing. Of those, nothing is said while one is going on.
    """
    if not lost and not any((folder.path / f"{name}.json").exists() for name in GO_ON):
        return ""  # the lock is not touched without need
    going_on = held(folder.path / LOAD_LOCK)
    left = {file: graph for file, graph in lost.items() if not going_on or Path(file).parent.name not in GO_ON}
    parts = [advice(left)] if left else []
    for name, way in GO_ON.items():
        graph = None if going_on else _half_loaded(folder, name)
        if graph is not None and not any(way in part for part in parts):
            option = folder.option if name == "freebase-load" else ""  # the other finds its server by the URL
            parts.append(f"A load into <{graph}> was interrupted. Go on: {way}{option}")
    return " ".join([*map(sentence, parts[:-1]), *parts[-1:]])


def _half_loaded(folder: ServerFolder, name: str) -> str | None:
    """The graph that an interrupted load was into, None where there is no such load."""
    try:
        data = json.loads((folder.path / f"{name}.json").read_text(encoding="utf-8"))
        return clean(str(data["graph"] if "graph" in data else data["options"]["graph_iri"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError):
        return "unknown: what was noted is damaged"


def _write(folder: ServerFolder, entry: Mapping[str, Any]) -> None:
    folder.write_private("loading.json", json.dumps(entry, indent=1))
