"""Cleans a dump with several worker processes and writes it as groups of chunk files."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kgqa.errors import KgqaError, LoadError
from kgqa.text.words import clean
from kgqa.virtuoso.freebase.dump.layout import (
    FILES_PER_GROUP,
    LINES_PER_CHUNK,
    MAX_FILES,
    chunk_file,
    chunk_files,
)
from kgqa.virtuoso.freebase.dump.reader import START, DumpPosition
from kgqa.virtuoso.freebase.dump.rules import Cleaning
from kgqa.virtuoso.freebase.dump.tally import Tally

# average number of bytes written per line of the dump; half of the lines are dropped and count as 0 bytes
BYTES_PER_LINE = 70


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """A group of cleaned lines.

    Attributes:
        files: the chunk files of the group; empty if lines are only counted.
        tally: counts of kept, repaired and dropped lines in the group.
        place: position in the dump where the next group begins; None at the end of the dump.
    """

    files: tuple[Path, ...]
    tally: Tally
    place: DumpPosition | None


@dataclass(frozen=True)
class Cleaner:
    """The worker processes that clean one dump, as a context manager.

    Args:
        dump: the dump file, as text or gzip.
        cleaning: which lines to keep.
        folder: folder for the chunk files; None to count the lines without writing files.
        lines_per_chunk: lines of the dump per chunk file, before cleaning.
        workers: number of processes; None for one per core, at most FILES_PER_GROUP.
        first_group: number of the first group to clean.
        place: position in the dump where the first group begins.
    """

    dump: Path
    cleaning: Cleaning
    folder: Path | None
    lines_per_chunk: int
    workers: int | None = None
    first_group: int = 0
    place: DumpPosition = START
    _running: list[_Worker] = field(default_factory=list, repr=False)

    def __enter__(self) -> Cleaner:
        count = min(self.workers or len(os.sched_getaffinity(0)), FILES_PER_GROUP)
        task = {
            "dump": str(self.dump.absolute()),
            "cleaning": asdict(self.cleaning),
            "lines_per_chunk": self.lines_per_chunk,
            "workers": count,
            "group": self.first_group,
            "place": asdict(self.place),
        }
        for number in range(count):
            self._running.append(_Worker({**task, "worker": number}))
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._running:
            worker.kill()

    def start(self, group: int) -> None:
        """Start cleaning a group without waiting for the result; call `wait` before starting the next group."""
        for worker in self._running:
            worker.send({"group": group, "folder": str(self.folder.absolute()) if self.folder else None})

    def wait(self, group: int, *, progress: Callable[[int, int], None] | None = None) -> CleanedGroup:
        """Wait until a group is cleaned, and return the result.

        Args:
            progress: called several times per second with the group and the bytes of the dump that have been read.

        Raises:
            LoadError: the dump cannot be read to its end, or the disk is full.
            KgqaError: a worker process ended unexpectedly.
        """
        results: dict[int, dict[str, Any]] = {}
        bytes_read = [0] * len(self._running)
        with selectors.DefaultSelector() as selector:
            for number, worker in enumerate(self._running):
                selector.register(worker.answers, selectors.EVENT_READ, number)
            while len(results) < len(self._running):
                for key, _ in selector.select():
                    for message in self._running[key.data].receive():
                        if "error" in message:
                            raise self._failure(message)
                        if "tally" in message:
                            results[key.data] = message
                            selector.unregister(key.fileobj)
                        else:
                            bytes_read[key.data] = message["bytes"]
                if progress:
                    progress(group, min(bytes_read))
        tally = Tally()
        for result in results.values():
            tally.add(Tally(**result["tally"]))
        files = [chunk_file(self.folder, group, file) for file in range(FILES_PER_GROUP)] if self.folder else []
        return CleanedGroup(
            files=tuple(files),
            tally=tally,
            # the first worker cleans the first part of every group, so it knows where the next group begins
            place=DumpPosition(**results[0]["place"]) if results[0]["place"] else None,
        )

    def _failure(self, message: dict[str, Any]) -> KgqaError:
        if not message.get("full"):
            return LoadError(message["error"])
        folder = self.folder or Path()
        needed = MAX_FILES * self.lines_per_chunk * BYTES_PER_LINE
        return LoadError(
            f"The disk of {folder} is full ({shutil.disk_usage(folder).free / 1e9:.1f} GB free). Chunk files need up "
            f"to {needed / 1e9:.1f} GB at a time, and the database needs as much space as the compressed dump.",
            "Free some space, or lower --lines-per-chunk; then resume.",
        )


def clean_dump(
    dump: Path,
    cleaning: Cleaning,
    folder: Path | None,
    *,
    lines_per_chunk: int = LINES_PER_CHUNK,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tally:
    """Clean a whole dump into chunk files, or only count its lines.

    Args:
        folder: folder for the chunk files, created if needed; None to count the lines without writing files.

    Raises:
        LoadError: the folder contains chunk files or is not writable, the dump cannot be read, or the disk is full.
        KgqaError: a worker process ended unexpectedly.
    """
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LoadError(f"{folder} cannot be created ({error.strerror}).", "Choose another folder.") from error
        if found := chunk_files(folder):
            raise LoadError(f"{folder} already contains chunk files ({found[0].name} ...).", "Choose an empty folder.")
    tally, number, finished = Tally(), 0, False
    try:
        with Cleaner(dump, cleaning, folder, lines_per_chunk, workers=workers) as cleaner:
            while not finished:
                cleaner.start(number)
                group = cleaner.wait(number, progress=progress)
                tally.add(group.tally)
                number, finished = number + 1, group.place is None
    finally:
        for file in chunk_files(folder) if folder else ():
            if file.suffix == ".part" or not file.stat().st_size:
                file.unlink()
    return tally


class _Worker:
    def __init__(self, task: dict[str, Any]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `kill`)
        # -P and an explicit path, so that Python imports no file from the working folder
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kgqa.virtuoso.freebase.dump.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            bufsize=0,
        )
        assert self._process.stdin and self._process.stdout
        self.answers = self._process.stdout
        self._partial_line = b""
        self.send(task)

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        # `receive` reports why a worker has ended
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[dict[str, Any]]:
        """Return the messages that have arrived; call this method when `answers` is readable."""
        data = os.read(self.answers.fileno(), 1 << 16)
        if data:
            *lines, self._partial_line = (self._partial_line + data).split(b"\n")
            return [json.loads(line) for line in lines]
        status = self._process.wait()
        self._errors.seek(0)
        last = clean(self._errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2])[:200]
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise KgqaError(
            f"A worker process that cleans the dump {how}{': ' + last if last else ''}.",
            "If the machine is short of memory, lower --workers; then resume.",
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream:
                stream.close()
