"""A worker process that cleans its share of a dump: `python -m kgqa.virtuoso.freebase.dump.worker`.

Each worker reads the whole dump and skips the shares of the other workers. Decompressing the dump takes a fifth of the
time of cleaning, and less time than sending each line to another process and back.

Requests and replies are lines of JSON. The first request is the task, with the keys `dump`, `cleaning`,
`lines_per_chunk`, `worker` (the number of this worker, from 0), `workers` (how many workers there are), `group` (the
first group) and `place` (the position in the dump to read from). Each later request is
{"group": n, "folder": path or null}. The reply has the counts and the `place` of the next block; at the end of the
dump, `place` is null. The process ends when its standard input is closed.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kgqa.errors import LoadError
from kgqa.virtuoso.freebase.dump.layout import Layout, chunk_file, file_of, files_of_worker
from kgqa.virtuoso.freebase.dump.lines import BlockJudge
from kgqa.virtuoso.freebase.dump.reader import Block, DumpPosition, read_blocks
from kgqa.virtuoso.freebase.dump.rules import Cleaning, Rule
from kgqa.virtuoso.freebase.dump.tally import Tally

WRITE_BYTES = 1 << 20


class Share:
    """The share of a dump that one process cleans.

    Args:
        task: the first request.
    """

    def __init__(self, task: dict[str, Any]) -> None:
        self._layout = Layout(task["lines_per_chunk"])
        self._files = frozenset(files_of_worker(task["worker"], task["workers"]))
        cleaning = task["cleaning"]
        # not `from_json`, whose imports would delay each worker
        rules = (Rule(**{**rule, "prefixes": tuple(rule["prefixes"])}) for rule in cleaning["rules"])
        self._judge = BlockJudge(Cleaning(tuple(cleaning["languages"]), tuple(rules)))
        first_part = task["group"] * self._layout.parts_per_group
        self._blocks: Iterator[Block] = read_blocks(
            Path(task["dump"]),
            lines_per_part=self._layout.lines_per_part,
            wanted=lambda part: part >= first_part and file_of(part) in self._files,
            place=DumpPosition(**task["place"]),
        )
        self._next = next(self._blocks, None)

    def clean(self, group: int, folder: Path | None) -> Iterator[dict[str, Any]]:
        """Clean this worker's share of one group; call this method for the groups in order.

        Args:
            group: number of the group.
            folder: folder for the files, which are renamed when complete; None to count without writing files.

        Yields:
            Progress reports {"bytes"} with the number of bytes read from the dump. The last item is the result.
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
                    yield {"bytes": block.bytes_read}
                kept, counts = self._judge.block(block.data, block.first_line)
                tally.add(counts)
                if folder:
                    writers[file_of(block.part)].write(kept)
                block = self._next = next(self._blocks, None)
        if folder:
            for file in self._files:
                done = chunk_file(folder, group, file)
                done.with_suffix(".nt.part").replace(done)
        yield {"tally": tally.as_json(), "place": asdict(block.place) if block else None}


def main() -> None:
    """Handle requests from standard input until it is closed."""
    # Ctrl-C is sent to all processes of the terminal, but the parent decides when a worker ends
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # the lists of lines have no reference cycles, so the garbage collector would only cost time
    gc.disable()
    with contextlib.suppress(BrokenPipeError):
        try:
            share = Share(json.loads(sys.stdin.readline()))
            for line in sys.stdin:
                request = json.loads(line)
                for message in share.clean(request["group"], Path(request["folder"]) if request["folder"] else None):
                    _send(message)
        except LoadError as error:
            _send({"error": str(error)})
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            _send({"error": error.strerror or str(error), "full": full})


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
