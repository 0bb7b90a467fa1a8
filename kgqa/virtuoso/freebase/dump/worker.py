"""A process that cleans its share of a dump: `python -m kgqa.virtuoso.freebase.dump.worker`. Spoken to in lines of JSON.

It reads the dump itself, and passes over what is the share of others: unpacking costs a fifth of judging, and less than
sending every line from one process to another and back.

The first request says what to do: `dump`, `cleaning`, `lines_per_chunk`, `worker` of `workers`, `group` to begin with,
`place` to read from. Each request after it is {"group": n, "folder": path or null} and has a result: the counts, and the
`place` its next block can be read from, null if there is none. The process ends when its stdin does.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgqa.errors import LoadError
from kgqa.virtuoso.freebase.dump.layout import Layout, chunk_file, file_of, files_of_worker
from kgqa.virtuoso.freebase.dump.lines import BlockJudge
from kgqa.virtuoso.freebase.dump.reader import Block, Place, read_blocks
from kgqa.virtuoso.freebase.dump.rules import Cleaning
from kgqa.virtuoso.freebase.dump.tally import Tally

WRITE_BYTES = 1 << 20


class Share:
    """What one process does of a dump.

    Args:
        task: the first request.
    """

    def __init__(self, task: dict[str, Any]) -> None:
        self._layout = Layout(task["lines_per_chunk"])
        self._files = frozenset(files_of_worker(task["worker"], task["workers"]))
        self._judge = BlockJudge(Cleaning.from_json(task["cleaning"]))
        self._first_part = task["group"] * self._layout.parts_per_group
        self._blocks: Iterator[Block] = read_blocks(
            Path(task["dump"]),
            lines_per_part=self._layout.lines_per_part,
            wanted=self._wants,
            place=Place(**task["place"]),
        )
        self._next = next(self._blocks, None)

    def _wants(self, part: int) -> bool:
        return part >= self._first_part and file_of(part) in self._files

    def clean(self, group: int, folder: Path | None) -> Iterator[dict[str, Any]]:
        """Clean the share of one group; groups come in their order.

        Args:
            folder: where its files are written, each appearing when it is whole; None to count only.

        Yields:
            {"lines", "bytes"} now and then: lines judged, and how far the dump is read; at last the result.
        """
        tally, block = Tally(), self._next
        with contextlib.ExitStack() as stack:
            writers = {}
            for file in self._files if folder else ():
                part = chunk_file(folder, group, file).with_suffix(".nt.part")  # type: ignore[arg-type]
                writers[file] = stack.enter_context(part.open("wb", buffering=WRITE_BYTES))
            part_before = None
            while block is not None and self._layout.group_of(block.part) == group:
                if block.part != part_before:
                    part_before = block.part
                    yield {"lines": tally.lines, "bytes": block.bytes_read}
                kept, counts = self._judge.block(block.data, block.first_line)
                tally.add(counts)
                if folder:
                    writers[file_of(block.part)].write(kept)
                block = self._next = next(self._blocks, None)
        if folder:
            for file in self._files:
                done = chunk_file(folder, group, file)
                done.with_suffix(".nt.part").replace(done)
        place = {"byte": block.place.byte, "line": block.place.line} if block else None
        yield {"tally": tally.as_json(), "place": place}


def main() -> None:
    # Ctrl-C goes to the whole group of processes; what is to end then, the parent decides
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # lists of lines die with their block: searching them for cycles finds nothing
    gc.disable()
    with contextlib.suppress(BrokenPipeError):
        try:
            share = Share(json.loads(sys.stdin.readline()))
            for line in sys.stdin:
                request = json.loads(line)
                for message in share.clean(request["group"], Path(request["folder"]) if request["folder"] else None):
                    _tell(message)
        except LoadError as error:
            _tell({"error": str(error)})
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            _tell({"error": error.strerror or str(error), "full": full})


def _tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
