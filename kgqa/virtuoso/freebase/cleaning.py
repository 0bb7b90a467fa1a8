"""Cleans a dump with several worker processes and writes it as groups of chunk files.

    group 0                                          group 1
    part 0   part 1   part 2   part 3   part 4 ...   part p ...
    file 0   file 1   file 2   file 3   file 0 ...   file 0 of the next group

A group is cleaned, loaded and written to disk as a whole. The parts of a group are assigned to its files in turn, so
the files have similar sizes and do not depend on the number of workers, each of which writes its own files.

Each worker (`python -m kgqa.virtuoso.freebase.cleaning TASK`) reads the whole dump and skips the shares of the other
workers. Decompressing the dump takes a fifth of the time of cleaning, and less time than sending each line to another
process and back. For each line of standard input, a worker cleans the next group and replies with lines of JSON:
progress, then the result, or the message of an error. It ends when its standard input is closed.
"""

from __future__ import annotations

import gc
import gzip
import itertools
import json
import math
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from kgqa.errors import KgqaError, LoadError
from kgqa.text.hints import Option
from kgqa.virtuoso.freebase.blocks import BlockJudge, Tally
from kgqa.virtuoso.freebase.judge import MAX_LINE_BYTES, Cleaning

LINES_PER_CHUNK = 10_000_000
FILES_PER_GROUP = 4
BLOCK_BYTES = 1 << 18
LINES_PER_PART = 1 << 16


def clean_dump(
    dump: Path,
    cleaning: Cleaning,
    folder: Path | None,
    *,
    lines_per_chunk: int = LINES_PER_CHUNK,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda group, bytes_read: None,
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


def clean_groups(
    dump: Path,
    cleaning: Cleaning,
    folder: Path | None,
    *,
    lines_per_chunk: int = LINES_PER_CHUNK,
    workers: int | None = None,
    first_group: int = 0,
    progress: Callable[[int, int], None] = lambda group, bytes_read: None,
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
        [sys.executable, "-P", "-m", "kgqa.virtuoso.freebase.cleaning", json.dumps(task)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        bufsize=0,
        start_new_session=True,
    )


def _result(process: subprocess.Popen[bytes], group: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Wait for a worker's result for this group."""
    assert process.stdout
    for line in process.stdout:
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise LoadError(reply["error"])
        if "tally" in reply:
            return reply
        progress(group, reply["bytes"])
    status = process.wait()
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    raise KgqaError(
        f"A worker process that cleans the dump {how}.",
        "If the machine is short of memory, lower ",
        Option("workers"),
        "; then resume.",
    )


# ---- the worker ----


def clean_share(
    dump: str,
    folder: str | None,
    *,
    languages: Iterable[str],
    keep_noise: bool,
    lines_per_chunk: int,
    first_group: int,
    workers: int,
    worker: int,
) -> Iterator[dict[str, Any]]:
    """Clean a worker's share of the groups of a dump, in order.

    Args:
        folder: folder for the chunk files; None to count the lines without writing files.
        lines_per_chunk: lines of the dump per chunk file, before cleaning. A file may have slightly fewer lines,
            because all parts have the same size.
        worker: number of this worker, from 0, of `workers`.

    Yields:
        For each group, the first worker reports its progress as {"bytes"}: the number of bytes read from the dump. Then
        comes the result, {"tally", "last"}, where `last` tells whether this is the end of the dump. The files are
        renamed when they are complete.
    """
    judge = BlockJudge(Cleaning(tuple(languages), keep_noise))
    own_files = range(worker, FILES_PER_GROUP, workers)
    parts_per_file = math.ceil(lines_per_chunk / LINES_PER_PART)
    parts_per_group = parts_per_file * FILES_PER_GROUP
    blocks = read_blocks(
        Path(dump),
        lines_per_part=lines_per_chunk // parts_per_file,
        wanted=lambda part: part >= first_group * parts_per_group and part % FILES_PER_GROUP in own_files,
    )
    block, group = next(blocks, None), first_group
    while True:
        tally, part = Tally(), None
        files = [chunk_file(Path(folder), group, file) for file in own_files] if folder else []
        unfinished = {path.with_suffix(".nt.part"): path for path in files}
        with ExitStack() as opened:
            writers = [opened.enter_context(path.open("wb", buffering=1 << 20)) for path in unfinished]
            while block is not None and block.part // parts_per_group == group:
                if block.part != part and worker == 0:
                    part = block.part
                    yield {"bytes": block.bytes_read}
                cleaned, counts = judge.block(block.data, block.first_line)
                tally.add(counts)
                if writers:
                    writers[own_files.index(block.part % FILES_PER_GROUP)].write(cleaned)
                block = next(blocks, None)
        for path, done in unfinished.items():
            path.replace(done)
        yield {"tally": tally.as_json(), "last": block is None}
        group += 1


class Block(NamedTuple):
    """A block of whole lines, each with a newline at its end.

    Attributes:
        first_line: number of the first line, from 1.
        part: number of the part that contains the lines, from 0.
        bytes_read: number of bytes of the file that have been read.
    """

    data: bytes
    first_line: int
    part: int
    bytes_read: int


def read_blocks(
    file: Path, *, lines_per_part: int, wanted: Callable[[int], bool] = lambda part: True
) -> Iterator[Block]:
    """Yield the lines of a dump in blocks; its first bytes tell whether the dump is text or gzip.

    A line longer than MAX_LINE_BYTES is cut to MAX_LINE_BYTES + 1 bytes. If the last line has no newline, it gets one.

    Args:
        lines_per_part: number of lines of a part; no block crosses the end of a part.
        wanted: tells whether to yield a part; skipping a part takes a third of the time of reading it.

    Raises:
        LoadError: the file cannot be read, is damaged, or is truncated.
    """
    # `rest` is the beginning of an incomplete line, or empty in an unwanted part; `number` counts the lines before it
    number, rest = 0, b""
    try:
        with file.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if compressed else raw
            while data := stream.read(BLOCK_BYTES):
                lines, (part, in_part) = data.count(b"\n"), divmod(number, lines_per_part)
                if in_part + lines < lines_per_part and not wanted(part):
                    number, rest = number + lines, b""
                    continue
                data = rest + data
                while lines:
                    take, end = min(lines, lines_per_part - number % lines_per_part), data.rfind(b"\n") + 1
                    if take < lines:
                        end = 0
                        for _ in range(take):
                            end = data.index(b"\n", end) + 1
                    if wanted(number // lines_per_part):
                        yield Block(data[:end], number + 1, number // lines_per_part, raw.tell())
                    data, lines, number = data[end:], lines - take, number + take
                rest = data[: MAX_LINE_BYTES + 1]  # one line could fill the memory
        if rest and wanted(number // lines_per_part):
            yield Block(rest + b"\n", number + 1, number // lines_per_part, file.stat().st_size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LoadError(
            f"{file} is truncated or damaged ({error}).", "Download it again and check it with: gzip -t"
        ) from error
    except OSError as error:
        raise LoadError(
            f"{file} cannot be read: {error.strerror}.", "Check the path, the permissions and the disk."
        ) from error


def chunk_file(folder: Path, group: int, file: int) -> Path:
    """Return the path of a chunk file; the numbers in file names start at 1."""
    return folder / f"freebase-{group * FILES_PER_GROUP + file + 1:06}.nt"


def chunk_files(folder: Path) -> list[Path]:
    """Return all chunk files of a folder, including unfinished files."""
    return sorted(path for path in folder.glob("freebase-*.nt*") if path.name[9:15].isdigit())


def main() -> None:
    """Clean a group for each line of standard input."""
    # the lists of lines have no reference cycles, so the garbage collector would only cost time
    gc.disable()
    replies = clean_share(**json.loads(sys.argv[1]))
    try:
        for _ in sys.stdin:
            for reply in replies:
                _send(reply)
                if "tally" in reply:
                    break
    except BrokenPipeError:
        pass  # kgqa has ended
    except LoadError as error:
        _send({"error": str(error)})
    except OSError as error:
        _send({"error": f"The chunk files cannot be written ({error.strerror}). Free some space, then resume."})


def _send(reply: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
