"""Cleans a dump in several processes, a group of chunk files at a time."""

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa.errors import KgqaError, LoadError
from kgqa.virtuoso.freebase.dump.layout import (
    FILES_PER_GROUP,
    LINES_PER_CHUNK,
    MAX_FILES,
    Layout,
    chunk_file,
    chunk_files,
)
from kgqa.virtuoso.freebase.dump.reader import Place
from kgqa.virtuoso.freebase.dump.rules import Cleaning
from kgqa.virtuoso.freebase.dump.tally import Tally
from kgqa.words import clean

# about what a cleaned line of the dump takes, half of which are dropped
BYTES_PER_LINE = 70


@dataclass(frozen=True, slots=True)
class Advance:
    """How far the cleaning of a group is: lines judged of it, bytes of the dump read from its beginning."""

    group: int
    lines: int
    bytes_read: int


@dataclass(frozen=True, slots=True)
class Group:
    """A cleaned group: its chunk files (none if they were not wanted), its counts, and the place to read the next group
    from, None where the dump ends with this one.
    """

    number: int
    files: tuple[Path, ...]
    tally: Tally
    place: Place | None


@dataclass(frozen=True)
class Cleaner:
    """The processes that clean one dump. Use as a context manager: they end with it.

    Args:
        dump: the file, as text or gzip.
        cleaning: what to keep.
        folder: where chunk files are written; None to count only.
        lines_per_chunk: lines of the dump that go into a chunk file, before cleaning.
        workers: how many processes; None for as many as there are cores, at most FILES_PER_GROUP.
        first_group, place: where to go on.
    """

    dump: Path
    cleaning: Cleaning
    folder: Path | None
    lines_per_chunk: int
    workers: int | None = None
    first_group: int = 0
    place: Place = Place()
    _running: list[_Worker] = field(default_factory=list, repr=False)

    def __enter__(self) -> Cleaner:
        count = min(self.workers or len(os.sched_getaffinity(0)), FILES_PER_GROUP)
        for number in range(count):
            self._running.append(_Worker(self._task(number, count)))
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._running:
            worker.kill()

    def _task(self, number: int, count: int) -> dict[str, Any]:
        return {
            "dump": str(self.dump.absolute()),
            "cleaning": self.cleaning.as_json(),
            "lines_per_chunk": self.lines_per_chunk,
            "worker": number,
            "workers": count,
            "group": self.first_group,
            "place": {"byte": self.place.byte, "line": self.place.line},
        }

    def start(self, group: int) -> None:
        """Begin to clean a group, and return at once. Groups come in their order, each after `wait` for the last one."""
        for worker in self._running:
            worker.tell({"group": group, "folder": str(self.folder.absolute()) if self.folder else None})

    def wait(self, group: int, *, advance: Callable[[Advance], None] | None = None) -> Group:
        """Wait until the group is clean.

        Args:
            advance: is called several times a second.

        Raises:
            LoadError: the dump cannot be read to its end, or the disk is full.
            KgqaError: a process ended by itself.
        """
        results: dict[int, dict[str, Any]] = {}
        steps = {number: {"lines": 0, "bytes": 0} for number in range(len(self._running))}
        with selectors.DefaultSelector() as selector:
            for number, worker in enumerate(self._running):
                selector.register(worker.answers, selectors.EVENT_READ, number)
            while len(results) < len(self._running):
                for key, _ in selector.select():
                    for message in self._running[key.data].listen():
                        if "error" in message:
                            raise self._failure(message)
                        if "tally" in message:
                            results[key.data] = message
                            selector.unregister(key.fileobj)
                        else:
                            steps[key.data] = message
                if advance:
                    lines = sum(step["lines"] for step in steps.values())
                    advance(Advance(group, lines, min(step["bytes"] for step in steps.values())))
        return self._group(group, results)

    def _group(self, number: int, results: dict[int, dict[str, Any]]) -> Group:
        tally = Tally()
        for result in results.values():
            tally.add(Tally.from_json(result["tally"]))
        files = [chunk_file(self.folder, number, file) for file in range(FILES_PER_GROUP)] if self.folder else []
        return Group(
            number=number,
            files=tuple(files),
            tally=tally,
            # the first process has the first part of every group: what it reads next begins the next group
            place=Place(**results[0]["place"]) if results[0]["place"] else None,
        )

    def _failure(self, message: dict[str, Any]) -> KgqaError:
        if not message.get("full"):
            return LoadError(message["error"])
        folder = self.folder or Path()
        layout = Layout(self.lines_per_chunk)
        needed = MAX_FILES * layout.lines_per_group // FILES_PER_GROUP * BYTES_PER_LINE
        return LoadError(
            f"The disk of {folder} is full ({shutil.disk_usage(folder).free / 1e9:.1f} GB free). Chunk files need up to "
            f"{needed / 1e9:.1f} GB there at a time, and the database about as many bytes as the packed dump has. Make "
            f"room, or give fewer --lines-per-chunk; then go on."
        )


def clean_dump(
    dump: Path,
    cleaning: Cleaning,
    folder: Path | None,
    *,
    lines_per_chunk: int = LINES_PER_CHUNK,
    workers: int | None = None,
    advance: Callable[[Advance], None] | None = None,
) -> Tally:
    """Clean a whole dump into chunk files of a folder, as many as it takes, or only count.

    Args:
        folder: is made if it is not there; None to count only.

    Raises:
        LoadError: the folder has chunk files already or cannot be written, the dump cannot be read, the disk is full.
        KgqaError: a process ended by itself.
    """
    if folder is not None:
        _prepare(folder)
    tally, number, finished = Tally(), 0, False
    try:
        with Cleaner(dump, cleaning, folder, lines_per_chunk, workers=workers) as cleaner:
            while not finished:
                cleaner.start(number)
                group = cleaner.wait(number, advance=advance)
                tally.add(group.tally)
                number, finished = number + 1, group.place is None
    finally:
        for file in chunk_files(folder) if folder else ():
            if file.suffix == ".part" or not file.stat().st_size:
                file.unlink()
    return tally


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LoadError(f"{folder} cannot be made ({error.strerror}). Choose another folder.") from error
    if chunk_files(folder):
        raise LoadError(
            f"{folder} holds {chunk_files(folder)[0].name} and more already. Choose or make an empty folder."
        )


class _Worker:
    def __init__(self, task: dict[str, Any]) -> None:
        self._errors = tempfile.TemporaryFile()
        # -P and an explicit path: nothing in the working folder can stand in for a module
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
        self._begun = b""
        self.tell(task)

    def tell(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        # where it has ended, why is told where its answer is awaited
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def listen(self) -> list[dict[str, Any]]:
        """The messages that have come; there is something to read."""
        data = os.read(self.answers.fileno(), 1 << 16)
        if data:
            *lines, self._begun = (self._begun + data).split(b"\n")
            return [json.loads(line) for line in lines]
        status = self._process.wait()
        self._errors.seek(0)
        last = clean(self._errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2])[:200]
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise KgqaError(
            f"A process that cleans the dump {how}{': ' + last if last else ''}. If the machine is short of memory, "
            f"give fewer --workers; then go on."
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream:
                stream.close()
