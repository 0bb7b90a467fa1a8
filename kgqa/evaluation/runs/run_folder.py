"""Writes to the folder of a run in such a way that no answer is lost if the process is killed.

A prediction is one line; this line is synced to the disk before the question counts as done. Resuming removes an
incomplete line at the end. A lock keeps other processes from writing to the same run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.run_files import (
    BATCH,
    FORMAT,
    LOCK,
    MANIFEST,
    PREDICTIONS,
    Run,
    RunError,
    open_run,
    pending_runs,
    read_lines,
)
from kgqa.storage.atomic_files import cannot_create, replace_file
from kgqa.storage.foreign import refuse_links
from kgqa.storage.lock_files import only_one
from kgqa.text.hints import Command, Option


class RunFolder:
    """A locked run to which this process writes; returned by `create_run` and `resume_run`. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: set[str] = set()
        """Ids of the questions that have a prediction."""
        self._file: int = -1
        for leftover in path.glob(".*.json*.*-*"):  # temporary files of a killed process, see `replace_file`
            with suppress(OSError):
                leftover.unlink()

    def append(self, records: Iterable[Record]) -> None:
        """Append predictions and sync them to the disk.

        Raises:
            RunError: the disk is full, or the folder cannot be written.
        """
        records = list(records)
        lines = [json.dumps(asdict(record), ensure_ascii=True, separators=(",", ":")) for record in records]
        data = "".join(f"{line}\n" for line in lines).encode("ascii")
        try:
            if self._file < 0:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._file = os.open(self.path / PREDICTIONS, flags, 0o644)
            while data:
                data = data[os.write(self._file, data) :]
            os.fdatasync(self._file)
        except OSError as error:
            raise RunError(
                f"{self.path / PREDICTIONS} cannot be written: {error.strerror}. All answers in it are kept.",
                "Make room or make the file writable, then resume the run: ",
                Command("eval resume", self.path),
            ) from error
        self.done.update(record.id for record in records)

    def write(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a JSON file into the folder, completely or not at all."""
        text = json.dumps(data, ensure_ascii=True, indent=1) + "\n"  # a data set may contain half of a surrogate pair
        _replace(self.path / name, [text.encode("ascii")])

    def remove(self, which: Callable[[Record], bool]) -> int:
        """Remove the selected predictions and return their number; `resume` asks the questions again."""
        gone = {place: record.id for place, record in enumerate(Run(self.path, {}).records()) if which(record)}
        if gone:
            self.close()
            self.done.difference_update(gone.values())
            lines = read_lines(self.path / PREDICTIONS)
            _replace(self.path / PREDICTIONS, (line for place, (_, line) in enumerate(lines) if place not in gone))
        return len(gone)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def repair(self) -> None:
        """Remove an incomplete last line, and read the ids of the questions that are done.

        Raises:
            RunError: a complete line is not a prediction.
        """
        path = self.path / PREDICTIONS
        if path.is_file() and (end := _end_of_last_line(path)) < path.stat().st_size:
            os.truncate(path, end)
        self.done = {record.id for record in Run(self.path, {}).records()}


@contextmanager
def create_run(
    path: Path, manifest: Mapping[str, Any], *, before: Callable[[], object] = lambda: None
) -> Iterator[RunFolder]:
    """Create a run in a folder without a run, and lock the run.

    Args:
        before: called before other processes can see the run.

    Raises:
        RunError: the folder already has a run, or cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(cannot_create(path, error), "Choose another folder: ", Option("out")) from error
    with _locked(path) as folder:
        if (path / MANIFEST).exists() or (path / PREDICTIONS).exists():
            raise RunError(
                f"{path} already contains a run.",
                "Choose another folder with ",
                Option("out"),
                ", or resume the run: ",
                Command("eval resume", path),
            )
        before()
        folder.write(MANIFEST, manifest)
        yield folder


def create_runs(group: Path, manifests: Mapping[str, Mapping[str, Any]], *, before: Callable[[], object]) -> None:
    """Create several runs in subfolders of a folder: all runs or none, even if the process is killed.

    Args:
        group: an existing folder that this process has locked.
        manifests: the object of run.json for each subfolder.
        before: as for `create_run`.

    Raises:
        RunError: the folder already contains a run, or cannot be written.
    """
    for name in manifests:
        if (group / name / MANIFEST).exists() or (group / name / PREDICTIONS).exists():
            raise RunError(f"{group} already contains runs.", "Resume these runs: ", Command("eval resume", group))
    before()
    RunFolder(group).write(BATCH, {"format": FORMAT, "runs": manifests})
    create_pending_runs(group)


def create_pending_runs(group: Path) -> None:
    """Create the runs that a killed process had planned and not yet created.

    Args:
        group: the folder that contains all runs; this process holds its lock.

    Raises:
        RunError: a folder cannot be written.
    """
    for run in pending_runs(group):
        with create_run(run.folder, run.manifest):
            pass
    (group / BATCH).unlink(missing_ok=True)


@contextmanager
def resume_run(path: Path) -> Iterator[tuple[RunFolder, Run]]:
    """Lock an existing run, to write more predictions.

    Raises:
        RunError: the folder contains no run, or another process has locked the run.
    """
    open_run(path)
    with _locked(path) as folder:
        run = open_run(path)
        folder.repair()
        yield folder, run


@contextmanager
def _locked(path: Path) -> Iterator[RunFolder]:
    folder = RunFolder(path)
    with locked(path), closing(folder):
        yield folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the folder of a run or of several runs.

    Raises:
        RunError: another process has locked the folder, the folder contains a link, or it cannot be written.
    """
    refuse_links(path, RunError)
    with ExitStack() as stack:
        try:
            locked = stack.enter_context(only_one(path / LOCK))
        except OSError as error:  # for example a folder of another user, or a read-only disk
            raise RunError(
                f"{path} cannot be written: {error.strerror}.", "Choose another folder: ", Option("out")
            ) from error
        if not locked:
            raise RunError(f"Another kgqa is running in {path}.", f"Wait until it is done; see kgqa eval status {path}")
        yield


def _end_of_last_line(path: Path) -> int:
    """Return the position in bytes after the last complete line."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - (1 << 16))
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


def _replace(path: Path, parts: Iterable[bytes]) -> None:
    """Replace a file atomically, synced to the disk."""
    try:
        replace_file(path, parts)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}. The old content of the file is kept.") from error
