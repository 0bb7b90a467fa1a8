"""Writes the lines of RDF files as chunk files for the server's loader, and records where each chunk ends."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kgqa.errors import ServerError
from kgqa.graph.rdf.upload import UploadFiles
from kgqa.virtuoso.instance.server_log import free_space


@dataclass(frozen=True, slots=True)
class LinePosition:
    """The end of a line in one of the files of a load.

    Attributes:
        file: number of the file, from 0.
        line: number of lines of this file before the position.
        bytes_done: number of bytes of this file before the position.
        all_lines: number of lines of all files before the position.
    """

    file: int
    line: int
    bytes_done: int
    all_lines: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A file of canonical N-Triples in the import folder.

    `positions` has the end of the last line in the chunk from each file with lines in this chunk.
    """

    number: int
    path: Path
    positions: tuple[LinePosition, ...]


def write_chunks(source: UploadFiles, *, number: int, lines: int, folder: Path, name: str) -> Iterator[Chunk]:
    """Write the lines that `source.jobs` does not mark as done, one chunk for each step of the iterator.

    Args:
        number: number of the first chunk; the number is part of the file name.
        lines: number of lines of a chunk, rounded up to the end of a block.
        name: prefix of the file names of the chunks.

    Raises:
        ServerError: the disk is full or cannot be written.
        LoadError: a file can no longer be read.
    """
    writer = _Writer(folder, name, number)
    positions: dict[int, LinePosition] = {}
    before = 0
    for file, job in enumerate(source.jobs):
        # the caller updates the job while this generator runs
        done_before, last = job.lines_done, 0
        if job.done:
            before += done_before
            continue
        for block in source.blocks(file):
            last = block.end
            if last <= done_before:
                continue
            writer.write(block.lines)
            positions[file] = LinePosition(file, last, block.bytes_done, before + last)
            if writer.lines >= lines:
                yield writer.finish(tuple(positions.values()))
                positions = {}
        before += last
    if positions:
        yield writer.finish(tuple(positions.values()))


class _Writer:
    """Writes each chunk under a temporary name first, because the server may still read a chunk of the same name."""

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
                self._file = open(self._part, "wb")  # noqa: SIM115  (closed by `finish`)
            self._file.writelines(lines)
        except OSError as error:
            raise self._write_error(error) from error

    def finish(self, positions: tuple[LinePosition, ...]) -> Chunk:
        chunk = Chunk(self._number, self._folder / f"{self._name}-{self._number:06}.nt", positions)
        assert self._file is not None
        try:
            self._file.close()
            self._part.replace(chunk.path)
        except OSError as error:
            raise self._write_error(error) from error
        self._file, self.lines = None, 0
        self._number += 1
        return chunk

    def _write_error(self, error: OSError) -> ServerError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ServerError(
                f"The disk is full: {free_space(self._folder)} are free at {self._folder}, where kgqa writes files for "
                "the server.",
                "Free some space on this disk.",
            )
        return ServerError(
            f"{self._folder} cannot be written ({error.strerror}).",
            "Make the folder writable for the user who runs kgqa.",
        )
