"""A worker process that cleans its share of a dump: `python -m kgqa.virtuoso.freebase.worker TASK`.

Each worker reads the whole dump and skips the shares of the other workers. Decompressing the dump takes a fifth of the
time of cleaning, and less time than sending each line to another process and back.

    group 0                                          group 1
    part 0   part 1   part 2   part 3   part 4 ...   part p ...
    file 0   file 1   file 2   file 3   file 0 ...   file 0 of the next group

A group is cleaned, loaded and written to disk as a whole. The parts of a group are assigned to its files in turn, so
the files have similar sizes and do not depend on the number of workers, each of which writes its own files.

For each line of standard input, the worker cleans the next group and replies with lines of JSON: progress, then the
result, or an error as [message, hint]. The process ends when its standard input is closed.
"""

from __future__ import annotations

import gc
import gzip
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from kgqa.errors import LoadError
from kgqa.virtuoso.freebase.blocks import BlockJudge, Tally
from kgqa.virtuoso.freebase.judge import MAX_LINE_BYTES, Cleaning

FILES_PER_GROUP = 4
BLOCK_BYTES = 1 << 18
LINES_PER_PART = 1 << 16


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
    except EOFError as error:
        raise LoadError(
            f"{file} is truncated: its end is missing.", "Download it again and check it with: gzip -t"
        ) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise LoadError(f"{file} is damaged ({error}).", "Download it again and check it with: gzip -t") from error
    except OSError as error:
        raise LoadError(
            f"{file} cannot be read: {error.strerror}.", "Check the path, the permissions and the disk."
        ) from error


def chunk_file(folder: Path, group: int, file: int) -> Path:
    """Return the path of a chunk file; the numbers in file names start at 1."""
    return folder / f"freebase-{group * FILES_PER_GROUP + file + 1:06}.nt"


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
        _send({"unwritable": f"The chunk files cannot be written ({error.strerror})."})


def _send(reply: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
