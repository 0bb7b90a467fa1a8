"""Splits the lines of files into chunk files for the server's loader and records where each ends."""

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
    """A position in a file.

    Attributes:
        file: number of the file, from 0.
        line: lines of the file before it.
        bytes_done: bytes of the file before it.
        all_lines: lines of all files before it.
    """

    file: int
    line: int
    bytes_done: int
    all_lines: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A file of canonical N-Triples in the import folder.

    `positions` has one entry for each file with lines in the chunk: where these lines end.
    """

    number: int
    path: Path
    positions: tuple[LinePosition, ...]


def write_chunks(source: UploadFiles, *, number: int, lines: int, folder: Path, name: str) -> Iterator[Chunk]:
    """Write the lines that are not done in `source.jobs` as chunks, each when the iterator is advanced.

    Args:
        number: the number of the first chunk; the same numbers give the same files.
        lines: lines of a chunk, rounded up to the end of a block.
        name: prefix of the names of the chunks.

    Raises:
        ServerError: the disk is full or cannot be written.
        LoadError: a file cannot be read any more.
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
    """Writes chunks under a temporary name, so that a server can still read the chunk of an interrupted load."""

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
                f"The disk is full: {free_space(self._folder)} are free at {self._folder}, where chunks for the server "
                "are written. Free some space there."
            )
        return ServerError(f"{self._folder} cannot be written ({error.strerror}). Grant the permission.")
