"""Cuts the lines of files into chunks that the server loads, and says where each one ends."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kgqa.errors import ServerError
from kgqa.graph.rdf.server_lines import ServerFiles
from kgqa.virtuoso.instance.server_log import free_space


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: its number, the lines up to there, how many of its bytes they are, and the lines of all files
    up to there.
    """

    file: int
    line: int
    bytes_done: int
    all_lines: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A file of canonical N-Triples in the import folder. `reached` are the places it goes up to, one in each file that
    has lines in it; the last one is where the chunk ends.
    """

    number: int
    path: Path
    reached: tuple[Place, ...]


def write_chunks(source: ServerFiles, *, number: int, lines: int, folder: Path, name: str) -> Iterator[Chunk]:
    """Write one chunk after another, each when it is asked for, of the lines that are not done by `source.jobs`.

    Args:
        number: the number of the first chunk; chunks of the same numbers are the same files.
        lines: after how many lines a chunk ends, at the next border of a block.
        name: what the chunks' names begin with.

    Raises:
        ServerError: the disk is full or cannot be written. LoadError: a file cannot be read any more.
    """
    writer = _Writer(folder, name, number)
    reached: dict[int, Place] = {}
    before = 0
    for place, job in enumerate(source.jobs):
        # the caller moves these on while this runs
        done_before, last = job.lines_done, 0
        if job.done:
            before += done_before
            continue
        for block in source.blocks(place):
            last = block.end
            if last <= done_before:
                continue
            writer.write(block.lines)
            reached[place] = Place(place, last, block.bytes_done, before + last)
            if writer.lines >= lines:
                yield writer.finish(tuple(reached.values()))
                reached = {}
        before += last
    if reached:
        yield writer.finish(tuple(reached.values()))


class _Writer:
    """Writes chunks under a name of their own until they are whole: a server that still reads the chunk of an
    interrupted load keeps the file it has open.
    """

    def __init__(self, folder: Path, name: str, number: int) -> None:
        self.lines = 0
        self._folder = folder
        self._name = name
        self._number = number
        self._file: IO[bytes] | None = None

    @property
    def _part(self) -> Path:
        return self._folder / f"{self._name}.part"

    def write(self, lines: list[bytes]) -> None:
        self.lines += len(lines)
        try:
            if self._file is None:
                self._file = open(self._part, "wb")
            self._file.writelines(lines)
        except OSError as error:
            raise self._explained(error) from error

    def finish(self, reached: tuple[Place, ...]) -> Chunk:
        chunk = Chunk(self._number, self._folder / f"{self._name}-{self._number:06}.nt", reached)
        try:
            self._file.close()
            self._part.replace(chunk.path)
        except OSError as error:
            raise self._explained(error) from error
        self._file, self.lines = None, 0
        self._number += 1
        return chunk

    def _explained(self, error: OSError) -> ServerError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ServerError(
                f"The disk is full: {free_space(self._folder)} are free at {self._folder}, where the lines wait for "
                "the server. Make room there."
            )
        return ServerError(f"{self._folder} cannot be written ({error.strerror}). Give kgqa the permission.")
