"""Writes a run's folder so that nothing that was answered is lost, whenever the process ends.

A prediction is one line, written whole and synced to the disk before it counts. A line that a killed process left half
written is cut off by whoever goes on; only one process at a time may.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kgqa.evaluation.runs.records import Record, record_object
from kgqa.evaluation.runs.run_files import (
    BATCH,
    FORMAT,
    LOCK,
    MANIFEST,
    PREDICTIONS,
    Run,
    RunError,
    lines_of,
    open_run,
    pending_runs,
)
from kgqa.lock_files import only_one


class RunFolder:
    """A run that this process may add to. Make it with `begun` or `gone_on`. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: set[str] = set()
        """Ids of the questions that have a prediction."""
        self._file: int = -1

    def append(self, records: Iterable[Record]) -> None:
        """Add predictions; they are on the disk when this returns.

        Raises:
            RunError: the disk is full, or the folder cannot be written.
        """
        records = list(records)
        lines = [json.dumps(record_object(record), ensure_ascii=True, separators=(",", ":")) for record in records]
        data = "".join(f"{line}\n" for line in lines).encode("ascii")
        try:
            if self._file < 0:
                # a folder of somebody else may have a link there, to any file of ours
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self.path / PREDICTIONS, flags, 0o644)
            while data:
                data = data[os.write(self._file, data) :]
            os.fdatasync(self._file)
        except OSError as error:
            raise RunError(
                f"{self.path / PREDICTIONS} cannot be written: {error.strerror}. What is in it stays. When that is "
                f"mended: kgqa eval resume {self.path}"
            ) from error
        self.done.update(record.id for record in records)

    def write(self, name: str, data: Mapping[str, Any]) -> None:
        """Put a JSON file into the folder, whole or not at all."""
        text = json.dumps(data, ensure_ascii=True, indent=1) + "\n"  # a data set may have half a surrogate pair
        _replace(self.path / name, [text.encode("ascii")])

    def forget(self, which: Callable[[Record], bool]) -> int:
        """Take predictions out, so that their questions are asked again. Returns how many."""
        kept: list[int] = []
        run, gone = Run(self.path, {}), 0
        for number, record in enumerate(run.records()):
            if which(record):
                gone += 1
                self.done.discard(record.id)
            else:
                kept.append(number)
        if gone:
            self.close()
            wanted = set(kept)
            lines = lines_of(self.path / PREDICTIONS)
            _replace(self.path / PREDICTIONS, (line for n, (_, line) in enumerate(lines) if n in wanted))
        return gone

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def mend(self) -> None:
        """Cut off a torn last line, and see what is done.

        Raises:
            RunError: another line is no prediction.
        """
        path = self.path / PREDICTIONS
        _refuse_link(path)
        if path.is_file() and path.stat().st_size and _torn(path):
            os.truncate(path, _end_of_last_line(path))
        self.done = {record.id for record in Run(self.path, {}).records()}


@contextmanager
def begun(
    path: Path, manifest: Mapping[str, Any], *, before: Callable[[], object] = lambda: None
) -> Iterator[RunFolder]:
    """A new run in a folder that has none yet.

    Args:
        before: is called before anybody else can see the run.

    Raises:
        RunError: there is a run already, or the folder cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be made: {error.strerror}. Choose another: --out FOLDER") from error
    with _held(path) as folder:
        if (path / MANIFEST).exists() or (path / PREDICTIONS).exists():
            raise RunError(
                f"{path} has a run already. Go on with it: kgqa eval resume {path}. For a new one choose another folder: --out"
            )
        before()
        folder.write(MANIFEST, manifest)
        yield folder


def begin_all(whole: Path, manifests: Mapping[str, Mapping[str, Any]], *, before: Callable[[], object]) -> None:
    """Begin several runs in folders of one folder: all of them or none, whenever the process ends.

    Args:
        whole: is there, and held by this process. manifests: by the name of the folder. before: as for `begun`.

    Raises:
        RunError: there is a run already, or the folder cannot be written.
    """
    for name in manifests:
        if (whole / name / MANIFEST).exists() or (whole / name / PREDICTIONS).exists():
            raise RunError(f"{whole} has runs already. Go on with them: kgqa eval resume {whole}")
    before()
    RunFolder(whole).write(BATCH, {"format": FORMAT, "runs": manifests})
    finish_begin(whole)


def finish_begin(whole: Path) -> None:
    """Begin what of several runs a process that was killed did not come to.

    Args:
        whole: is held by this process.

    Raises:
        RunError: a folder cannot be written.
    """
    for run in pending_runs(whole):
        _refuse_link(run.folder)
        with begun(run.folder, run.manifest):
            pass
    (whole / BATCH).unlink(missing_ok=True)


@contextmanager
def gone_on(path: Path) -> Iterator[tuple[RunFolder, Run]]:
    """A run that is there, to add to it.

    Raises:
        RunError: there is none, or another process adds to it.
    """
    open_run(path)
    with _held(path) as folder:
        run = open_run(path)
        folder.mend()
        yield folder, run


@contextmanager
def _held(path: Path) -> Iterator[RunFolder]:
    folder = RunFolder(path)
    _refuse_link(path / LOCK)
    with ExitStack() as holding:
        try:
            only = holding.enter_context(only_one(path / LOCK))
        except OSError as error:  # a folder of somebody else, a disk that is only read
            raise RunError(f"{path} cannot be written: {error.strerror}. Choose another folder: --out") from error
        if not only:
            raise RunError(f"Another kgqa is running in {path}. Wait until it is done: kgqa eval status {path}")
        holding.callback(folder.close)
        yield folder


def _refuse_link(path: Path) -> None:
    """Raises RunError where a path is a link: what is written to it would be written elsewhere."""
    if path.is_symlink():
        raise RunError(f"{path} is a link to another place, where nothing of a run is written. Remove it.")


def _torn(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _end_of_last_line(path: Path) -> int:
    """Bytes up to the last line end."""
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
    """Write a file beside and put it in place of the old one, with everything on the disk."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)  # of a process that was killed, or somebody's link to another file
        with open(beside, "xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}. What was there stays.") from error
