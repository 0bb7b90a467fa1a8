"""Files on their way to a server, into one graph there. Everything is judged before anything is sent.

A server cannot take back what it was sent, so all files are read once to the end first: a malformed line, a file cut
short, or a line that belongs to another graph shows while the server's graph is still as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyoxigraph as ox

from kgqa.errors import LoadError
from kgqa.graph.rdf.files import Block, FileJob, LineSource, MalformedLines, open_lines
from kgqa.graph.store import Progress
from kgqa.words import clean

LONGEST_IRI_BYTES = 1_800
"""Virtuoso cuts longer ones without a word (after 1,870 bytes of the last part), so that two could become one."""

Unfit = Callable[[bytes], str | None]
"""Why a canonical line cannot be sent to a server, None where it can."""


@dataclass(frozen=True, slots=True)
class UploadBlock:
    """Canonical N-Triples lines of a file, from its line `first` (counted from 0) to before `end`. `numbers` finds the
    number of each in the file, from 1, while the file is being read. `bytes_done` are read of it so far.
    """

    lines: list[bytes]
    first: int
    end: int
    bytes_done: int
    numbers: Callable[[], list[int]]


class UploadFiles:
    """Reads the files of a load into one graph of a server.

    Args:
        jobs: the files.
        graph: IRI of the only graph that is written to.
        staging: a folder for what has to be written out in between; the caller removes it.
        malformed: takes the malformed lines.
        unfit: tells which lines the server would not keep as they are; such lines count as malformed.
        progress: is called now and then.
    """

    def __init__(
        self,
        jobs: Sequence[FileJob],
        graph: str,
        *,
        staging: Path,
        malformed: MalformedLines,
        unfit: Unfit,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.jobs = jobs
        self.malformed = malformed
        self.lines = 0
        """Lines of all files, once they are checked."""
        self.doubtful: set[int] = set()
        """The files, by number, in which the engine's parser found what the quick check had let pass."""
        self._graph = graph.encode()
        self._staging = staging
        self._unfit = unfit
        self._progress = progress

    def check(self) -> None:
        """Judge every line of every file.

        Raises:
            LoadError: a malformed line, unless those are left out; a line in another graph; a damaged file.
        """
        for number in range(len(self.jobs)):
            self._check_file(number)

    def blocks(self, number: int) -> Iterator[UploadBlock]:
        """What may be sent of a file, from its first line on; the blocks are the same every time. Only after `check`.

        Raises:
            LoadError: the file cannot be read any more.
        """
        job = self.jobs[number]
        with open_lines(job, self._staging, self._reading(job)) as source:
            for block in source.blocks(lambda line, message: None):
                if number in self.doubtful and not _is_valid(block.lines):
                    block = _judged_singly(block, source, [])
                unfit, lines = self._fit(block, source)
                numbers = partial(_numbers_without, block, source, {line for line, _ in unfit})
                yield UploadBlock(lines, block.first, block.end, source.bytes_done, numbers)

    def find(self, wanted: Collection[bytes], numbers: Iterable[int]) -> dict[bytes, tuple[str, int]]:
        """Where canonical lines stand in the files of these numbers: file and line from 1. Reads the files anew."""
        found: dict[bytes, tuple[str, int]] = {}
        for number in numbers:
            for block in self.blocks(number):
                if any(line in wanted for line in block.lines):
                    places = zip(block.lines, block.numbers())
                    found.update({line: (self.jobs[number].name, at) for line, at in places if line in wanted})
        return found

    def _check_file(self, number: int) -> None:
        job = self.jobs[number]
        bad: list[tuple[int, str]] = []
        with open_lines(job, self._staging, self._reading(job)) as source:
            for block in source.blocks(lambda line, message: bad.append((line, message))):
                if not _is_valid(block.lines):
                    self.doubtful.add(number)
                    bad.clear()
                    block = _judged_singly(block, source, bad)
                unfit, _ = self._fit(block, source)
                for line, message in sorted([*bad, *unfit]):
                    self.malformed.add(job.name, line, message)
                bad.clear()
                self.lines += block.end - block.first
                self._tell(job, source.bytes_done, self.lines)

    def _fit(self, block: Block, source: LineSource) -> tuple[list[tuple[int, str]], list[bytes]]:
        """The unfit lines of a block with their reasons, and the others as N-Triples."""
        lines = block.lines
        if source.format == ox.RdfFormat.N_QUADS:
            lines = [self._in_graph(line, block, source, index) for index, line in enumerate(lines)]
        reasons = [self._unfit(line) for line in lines]
        if not any(reasons):
            return [], lines
        numbers = _line_numbers(block, source)
        unfit = [(numbers[index], reason) for index, reason in enumerate(reasons) if reason]
        return unfit, [line for line, reason in zip(lines, reasons) if not reason]

    def _in_graph(self, line: bytes, block: Block, source: LineSource, index: int) -> bytes:
        triple, graph = split_graph(line)
        if graph is not None and graph != self._graph:
            found = clean(graph.decode("utf-8", "replace"))[:300]
            raise LoadError(
                f"{source.job.name}, line {_line_numbers(block, source)[index]}: this triple belongs to the graph <{found}>, "
                f"but only <{self._graph.decode()}> is written to. Nothing was sent. Load it into its own graph "
                f"(--graph-iri {found}), or take the names of graphs out of the file."
            )
        return triple

    def _reading(self, job: FileJob) -> Callable[[int, int], None]:
        return lambda bytes_done, lines: self._tell(job, bytes_done, self.lines + lines)

    def _tell(self, job: FileJob, bytes_done: int, lines: int) -> None:
        if self._progress:
            self._progress(Progress(job.name, bytes_done, job.size, lines, "reading"))


def split_graph(line: bytes) -> tuple[bytes, bytes | None]:
    """A canonical N-Quads line as its triple, a line again, and the IRI of its graph; None for the default graph."""
    start = line.index(b" ", line.index(b" ") + 1) + 1
    # no quote stands in an IRI or a language tag: the last one ends the literal
    after = line.rindex(b'"') if line[start : start + 1] == b'"' else start
    end = line.index(b" ", after)
    if line[end:] == b" .\n":
        return line, None
    return line[:end] + b" .\n", line[end + 2 : -4]


_NUL = re.compile(rb"\0|(?<!\\)(?:\\\\)*+\\(?:u0000|U00000000)").search


def upload_problem(line: bytes) -> str | None:
    """Why a line cannot be sent: an IRI of it is longer than servers keep, or a character of it ends texts there."""
    if _NUL(line):
        return "the character NUL, which servers take for the end of the text"
    if len(line) <= LONGEST_IRI_BYTES:
        return None
    subject, predicate, rest = line.split(b" ", 2)
    longest = max(len(subject), len(predicate), rest.index(b" ") if rest[:1] == b"<" else 0) - 2
    if longest <= LONGEST_IRI_BYTES:
        return None
    return f"an IRI of {longest:,} bytes, longer than servers keep ({LONGEST_IRI_BYTES:,})"


def _is_valid(lines: list[bytes]) -> bool:
    """Whether the engine's parser takes all of these lines: the quick check knows no more than their form."""
    try:
        for _ in ox.parse(b"".join(lines), format=ox.RdfFormat.N_QUADS):
            pass
    except SyntaxError:
        return False
    return True


def _judged_singly(block: Block, source: LineSource, bad: list[tuple[int, str]]) -> Block:
    """The block with every line judged by the engine's parser; `bad` takes what it refuses."""
    reader = source.reader(lambda line, message: bad.append((line, message)), strict=True)
    reader.line = block.first
    return Block(reader.canonical(block.raw), block.first, block.end, block.raw)


def _numbers_without(block: Block, source: LineSource, unfit: set[int]) -> list[int]:
    return [number for number in _line_numbers(block, source) if number not in unfit]


def _line_numbers(block: Block, source: LineSource) -> list[int]:
    """The number in the file, from 1, of each of the block's canonical lines."""
    if len(block.lines) == block.end - block.first:
        return list(range(block.first + 1, block.end + 1))
    numbers: list[int] = []
    good = set(block.lines)
    reader = source.reader(lambda line, message: None)
    for number, raw in enumerate(block.raw.split(b"\n"), start=block.first + 1):
        if any(line in good for line in reader.canonical(raw + b"\n")):
            numbers.append(number)
    return numbers
