"""Resumable loads of groups of chunk files: while the server loads one group, the next one is written.

A group is recorded in the journal of its load after a checkpoint of the server, so a recorded group survives a crash of
kgqa or the server. Groups have the same lines every time, so a resumed load begins after the last recorded group.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from kgqa.errors import KgqaError, LoadError, ServerError
from kgqa.virtuoso.load_list import FileResult, RunningLoad
from kgqa.virtuoso.server import Server
from kgqa.text.words import clean, sentence

LOADERS = 2
SHOWN_LINE = 200
_LINE = re.compile(r"\bline (\d+)")


@dataclass(kw_only=True)
class Journal:
    """The state of a load into a graph; `groups` are on disk."""

    graph: str
    groups: int = 0


T = TypeVar("T", bound=Journal)


@dataclass(frozen=True, slots=True)
class Group:
    """Chunk files that the server loads at the same time; empty files are not sent to the server.

    `loaded` brings the journal up to date after the group is on disk.
    """

    files: list[Path]
    loaded: Callable[[], None]


def open_journal(server: Server, name: str, kind: type[T], *, resume: bool, restart: bool) -> T | None:
    """Return the journal NAME.json of the load to resume; None for a new load.

    Args:
        resume: there must be an interrupted load. Without `resume` and `restart`, there must be none.

    Raises:
        LoadError: there is no load to resume, an interrupted load is in the way, its journal is damaged, or the
            server's database does not have its triples.
    """
    remedy = "Load everything again with --restart; triples already loaded do no harm."
    journal = None if restart else server.folder.read_json(f"{name}.json", kind, remedy, LoadError)
    if resume and journal is None:
        raise LoadError("There is no interrupted load to resume.", "Start the load without --resume.")
    if journal is not None and not resume:
        raise LoadError(
            f"An earlier load into <{journal.graph}> was interrupted.",
            "Continue it with --resume, or discard it and load everything again with --restart.",
        )
    if journal is not None and not server.holds(journal.graph):
        raise LoadError(
            f"The server's database lacks the triples of <{journal.graph}> that the interrupted load had finished.",
            "Load everything again: --restart",
        )
    return journal


def forget_journal(server: Server, name: str) -> bool:
    """Delete a journal, so that its load cannot be resumed; return False if there is none."""
    journal = server.folder.path / f"{name}.json"
    exists = journal.exists()
    journal.unlink(missing_ok=True)
    return exists


@contextmanager
def chunk_folder(server: Server, name: str) -> Iterator[Path]:
    """Create an empty folder in the import folder, and remove it at the end."""
    folder = server.import_folder / name
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        raise ServerError(
            f"{folder} cannot be written ({error.strerror}).", "Free some space, or make the folder writable."
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def load_groups(
    server: Server,
    name: str,
    journal: Journal,
    groups: Generator[Group],
    *,
    lock: int,
    describe: Callable[[], str],
    loaders: int = LOADERS,
    waiting: Callable[[int], None] | None = None,
) -> None:
    """Load groups of chunk files into the journal's graph, and record each of them.

    Args:
        groups: writes the files of a group for each step.
        lock: the descriptor of the lock of loads.
        describe: tells what is loaded and how to resume; added to errors if a group is recorded.
        waiting: called several times per second while the server loads, with the number of finished files of the group.

    Raises:
        KgqaError: the load failed; groups that are recorded stay loaded.
        KeyboardInterrupt: Ctrl-C was pressed; the current group has been completed.
    """
    running: list[tuple[Group, RunningLoad]] = []

    def finish() -> None:
        """Wait until the current group is on disk, record it, and remove its files."""
        while running:
            group, load = running.pop()
            for result in load.wait(waiting):
                _check(result)
            group.loaded()
            journal.groups += 1
            server.folder.write_json(f"{name}.json", journal)
            for file in group.files:
                file.unlink()

    try:
        with closing(groups):
            try:
                for group in groups:
                    finish()
                    files = [file for file in group.files if file.stat().st_size]
                    load = RunningLoad(server, files, journal.graph, lock=lock, loaders=loaders)
                    running.append((group, load))
            finally:
                finish()  # a second Ctrl-C ends this wait
    except KeyboardInterrupt:
        raise KeyboardInterrupt(describe() if journal.groups else "Nothing is loaded yet.") from None
    except KgqaError as error:
        if not journal.groups:
            raise
        raise type(error)(f"{sentence(error)} {describe()}") from error


def _check(result: FileResult) -> None:
    """Raise ServerError, with the line that the server names, if a chunk file was not loaded to its end."""
    if result.error is None:
        return
    number = _LINE.search(result.error)
    with open(result.file, "rb") as lines:
        line = next(islice(lines, int(number[1]) - 1, None), b"") if number else b""
    shown = clean(line.decode("utf-8", "replace"))[:SHOWN_LINE]
    raise ServerError(
        f"The server rejects a line: {result.error}." + (f" The line is: {shown}" if shown else ""),
        "Remove the line from your file and load everything again with --restart.",
    )
