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
import json
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa.errors import LoadError
from kgqa.virtuoso.freebase.blocks import BlockJudge
from kgqa.virtuoso.freebase.reader import START, DumpPosition, read_blocks
from kgqa.virtuoso.freebase.rules import Cleaning
from kgqa.virtuoso.freebase.tally import Tally

FILES_PER_GROUP = 4
LINES_PER_PART = 1 << 16
WRITE_BYTES = 1 << 20


@dataclass(frozen=True)
class Task:
    """What the workers of a dump clean; `place` is a position before `first_group`. All values are those of JSON.

    Attributes:
        folder: folder for the chunk files; None to count the lines without writing files.
        lines_per_chunk: lines of the dump per chunk file, before cleaning. A file may have slightly fewer lines,
            because all parts have the same size.
        workers: number of workers.
        worker: number of this worker, from 0.
    """

    dump: str
    folder: str | None
    languages: tuple[str, ...]
    keep_noise: bool
    lines_per_chunk: int
    first_group: int = 0
    place: DumpPosition = START
    workers: int = 1
    worker: int = 0


def chunk_file(folder: Path, group: int, file: int) -> Path:
    """Return the path of a chunk file; the numbers in file names start at 1."""
    return folder / f"freebase-{group * FILES_PER_GROUP + file + 1:06}.nt"


def clean_share(task: Task) -> Iterator[dict[str, Any]]:
    """Clean a worker's share of the groups of a dump, in order.

    Yields:
        For each group, the first worker reports its progress as {"bytes"}: the number of bytes read from the dump. Then
        comes the result: {"tally", "place"}, where `place` is the position of the next group, or None at the end of the
        dump. The files are renamed when they are complete.
    """
    judge = BlockJudge(Cleaning(tuple(task.languages), task.keep_noise))
    own_files = range(task.worker, FILES_PER_GROUP, task.workers)
    parts_per_file = math.ceil(task.lines_per_chunk / LINES_PER_PART)
    parts_per_group = parts_per_file * FILES_PER_GROUP
    blocks = read_blocks(
        Path(task.dump),
        lines_per_part=task.lines_per_chunk // parts_per_file,
        wanted=lambda part: part >= task.first_group * parts_per_group and part % FILES_PER_GROUP in own_files,
        place=DumpPosition(*task.place),
    )
    block, group = next(blocks, None), task.first_group
    while True:
        tally, part = Tally(), None
        files = {file: chunk_file(Path(task.folder), group, file) for file in own_files} if task.folder else {}
        unfinished = {path.with_suffix(".nt.part"): path for path in files.values()}
        with ExitStack() as opened:
            writers = [opened.enter_context(path.open("wb", buffering=WRITE_BYTES)) for path in unfinished]
            while block is not None and block.part // parts_per_group == group:
                if block.part != part and task.worker == 0:
                    part = block.part
                    yield {"bytes": block.bytes_read}
                cleaned, counts = judge.block(block.data, block.first_line)
                tally.add(counts)
                if writers:
                    writers[own_files.index(block.part % FILES_PER_GROUP)].write(cleaned)
                block = next(blocks, None)
        for path, done in unfinished.items():
            path.replace(done)
        yield {"tally": tally.as_json(), "place": block.place if block else None}
        group += 1


def main() -> None:
    """Clean a group for each line of standard input."""
    # the lists of lines have no reference cycles, so the garbage collector would only cost time
    gc.disable()
    task = Task(**json.loads(sys.argv[1]))
    replies = clean_share(task)
    try:
        for _ in sys.stdin:
            for reply in replies:
                print(json.dumps(reply), flush=True)
                if "tally" in reply:
                    break
    except BrokenPipeError:
        pass  # kgqa has ended
    except LoadError as error:
        print(json.dumps({"error": [str(error)]}), flush=True)
    except OSError as error:
        problem = f"The chunk files cannot be written to {task.folder} ({error.strerror})."
        print(json.dumps({"error": [problem, "Free some space, or lower --lines-per-chunk; then resume."]}), flush=True)


if __name__ == "__main__":
    main()
