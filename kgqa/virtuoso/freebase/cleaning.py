"""Cleans a dump with several worker processes and writes it as groups of chunk files."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kgqa.errors import KgqaError, LoadError
from kgqa.text.hints import Option
from kgqa.virtuoso.freebase.blocks import Tally
from kgqa.virtuoso.freebase.judge import Cleaning
from kgqa.virtuoso.freebase.worker import FILES_PER_GROUP, chunk_file

LINES_PER_CHUNK = 10_000_000


def clean_groups(
    dump: Path,
    cleaning: Cleaning,
    folder: Path | None,
    *,
    lines_per_chunk: int = LINES_PER_CHUNK,
    workers: int | None = None,
    first_group: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Generator[tuple[list[Path], Tally]]:
    """Clean a dump, one group for each step of the iterator. Closing the iterator ends the workers.

    Args:
        dump: the dump file, as text or gzip.
        folder: folder for the chunk files; None to count the lines without writing files.
        lines_per_chunk: lines of the dump per chunk file, before cleaning.
        workers: number of processes; None for one per core, at most FILES_PER_GROUP.
        first_group: number of the first group to clean; the lines before it are read and skipped.

    Yields:
        The chunk files of a group, none if lines are only counted, and the counts of its lines.

    Raises:
        LoadError: the dump cannot be read to its end, or the disk is full.
        KgqaError: a worker process ended unexpectedly.
    """
    count = min(workers or len(os.sched_getaffinity(0)), FILES_PER_GROUP)
    task = {
        "dump": str(dump.absolute()),
        "folder": str(folder.absolute()) if folder else None,
        "languages": cleaning.languages,
        "keep_noise": cleaning.keep_noise,
        "lines_per_chunk": lines_per_chunk,
        "first_group": first_group,
        "workers": count,
    }
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.extend(_start_worker({**task, "worker": number}) for number in range(count))
        for group in itertools.count(first_group):
            for process in processes:
                assert process.stdin
                with suppress(BrokenPipeError):  # `_result` reports why a worker has ended
                    process.stdin.write(b"\n")
            results = [_result(process, group, progress) for process in processes]
            tally = Tally()
            for result in results:
                tally.add(Tally(**result["tally"]))
            files = [chunk_file(folder, group, file) for file in range(FILES_PER_GROUP)] if folder else []
            yield files, tally
            if all(result["last"] for result in results):
                return
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _start_worker(task: dict[str, Any]) -> subprocess.Popen[bytes]:
    # -P and an explicit path, so that Python imports no file from the working folder; a session of its own, because
    # Ctrl-C is sent to all processes of the terminal, but this process decides when a worker ends
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "kgqa.virtuoso.freebase.worker", json.dumps(task)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        bufsize=0,
        start_new_session=True,
    )


def _result(
    process: subprocess.Popen[bytes], group: int, progress: Callable[[int, int], None] | None
) -> dict[str, Any]:
    """Wait for a worker's result for this group."""
    assert process.stdout
    for line in process.stdout:
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise LoadError(reply["error"])
        if "unwritable" in reply:
            hint = ("Free some space, or lower ", Option("lines-per-chunk"), "; then resume.")
            raise LoadError(reply["unwritable"], *hint)
        if "tally" in reply:
            return reply
        if progress:
            progress(group, reply["bytes"])
    status = process.wait()
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    raise KgqaError(
        f"A worker process that cleans the dump {how}.",
        "If the machine is short of memory, lower ",
        Option("workers"),
        "; then resume.",
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
        if existing := chunk_files(folder):
            raise LoadError(
                f"{folder} already contains chunk files ({existing[0].name} ...).", "Choose an empty folder."
            )
    tally = Tally()
    try:
        for _, counts in clean_groups(
            dump, cleaning, folder, lines_per_chunk=lines_per_chunk, workers=workers, progress=progress
        ):
            tally.add(counts)
    finally:
        for file in chunk_files(folder) if folder else ():
            if file.suffix == ".part" or not file.stat().st_size:
                file.unlink()
    return tally


def chunk_files(folder: Path) -> list[Path]:
    """Return all chunk files of a folder, including unfinished files."""
    return sorted(path for path in folder.glob("freebase-*.nt*") if path.name[9:15].isdigit())
