"""RDF files for upload into one graph of a server, checked completely before anything is sent.

A server cannot undo an upload. All files are therefore read completely before the upload starts. Malformed lines,
truncated files and lines of other graphs are found while the server's graph is still unchanged.
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
"""Maximum length of an IRI. Virtuoso silently cuts longer IRIs (after 1,870 bytes of the last part); two different
IRIs could then become equal."""

LineCheck = Callable[[bytes], str | None]
"""Returns the reason why a canonical line cannot be sent to a server, or None if the line can be sent."""


@dataclass(frozen=True, slots=True)
class UploadBlock:
    """A block of lines of a file as canonical N-Triples.

    The block begins at line `first` of the file (counted from 0) and ends before line `end`. `numbers` returns the line
    number (from 1) of each of its lines, and works only while the file is open. `bytes_done` is the number of bytes of
    the file read so far.
    """

    lines: list[bytes]
    first: int
    end: int
    bytes_done: int
    numbers: Callable[[], list[int]]


class UploadFiles:
    """Reads and checks the RDF files that are loaded into one graph of a server.

    Args:
        jobs: the files.
        graph: IRI of the graph to write to.
        staging: folder for files converted to N-Quads; the caller removes the folder.
        malformed: collects the malformed lines.
        unfit: returns why the server would not store a line unchanged, or None. A line with a reason counts as
            malformed.
        progress: called regularly with the progress of the load.
    """

    def __init__(
        self,
        jobs: Sequence[FileJob],
        graph: str,
        *,
        staging: Path,
        malformed: MalformedLines,
        unfit: LineCheck,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.jobs = jobs
        self.malformed = malformed
        self.lines = 0
        """The number of lines checked so far."""
        self.doubtful: set[int] = set()
        """The numbers of files in which the engine's parser found errors that the quick check missed."""
        self._graph = graph.encode()
        self._staging = staging
        self._unfit = unfit
        self._progress = progress or (lambda progress: None)

    def check(self) -> None:
        """Check every line of every file.

        Raises:
            LoadError: a line is malformed (unless malformed lines are skipped), a line belongs to another graph, or a
                file is damaged.
        """
        for number in range(len(self.jobs)):
            self._check_file(number)

    def blocks(self, number: int) -> Iterator[UploadBlock]:
        """Yield the blocks of a file. Every call yields the same blocks. Call `check` first.

        Raises:
            LoadError: the file cannot be read any more.
        """
        job = self.jobs[number]
        with open_lines(job, self._staging, self._on_staging(job)) as source:
            for raw_block in source.blocks(lambda line, message: None):
                block = raw_block
                if number in self.doubtful and not _is_valid(block.lines):
                    block = _checked_singly(block, source, [])
                unfit, lines = self._fit(block, source)
                numbers = partial(_numbers_without, block, source, {line for line, _ in unfit})
                yield UploadBlock(lines, block.first, block.end, source.bytes_done, numbers)

    def find(self, wanted: Collection[bytes], numbers: Iterable[int]) -> dict[bytes, tuple[str, int]]:
        """Return the file name and line number (from 1) of each wanted line in the files with these numbers."""
        found: dict[bytes, tuple[str, int]] = {}
        for number in numbers:
            for block in self.blocks(number):
                if any(line in wanted for line in block.lines):
                    positions = zip(block.lines, block.numbers())
                    found.update({line: (self.jobs[number].name, at) for line, at in positions if line in wanted})
        return found

    def _check_file(self, number: int) -> None:
        job = self.jobs[number]
        bad: list[tuple[int, str]] = []
        with open_lines(job, self._staging, self._on_staging(job)) as source:
            for raw_block in source.blocks(lambda line, message: bad.append((line, message))):
                block = raw_block
                if not _is_valid(block.lines):
                    self.doubtful.add(number)
                    bad.clear()
                    block = _checked_singly(block, source, bad)
                unfit, _ = self._fit(block, source)
                for line, message in sorted([*bad, *unfit]):
                    self.malformed.add(job.name, line, message)
                bad.clear()
                self.lines += block.end - block.first
                self._report_progress(job, source.bytes_done, self.lines)

    def _fit(self, block: Block, source: LineSource) -> tuple[list[tuple[int, str]], list[bytes]]:
        """Return the unfit lines of a block with their reasons, and the remaining lines as N-Triples."""
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
            number = _line_numbers(block, source)[index]
            raise LoadError(
                f"{source.job.name}, line {number}: this triple belongs to the graph <{found}>, "
                f"but the load is for <{self._graph.decode()}>. Nothing was sent.",
                f"Load the file into that graph (--graph-iri {found}), or remove the graph names from the file.",
            )
        return triple

    def _on_staging(self, job: FileJob) -> Callable[[int, int], None]:
        return lambda bytes_done, lines: self._report_progress(job, bytes_done, self.lines + lines)

    def _report_progress(self, job: FileJob, bytes_done: int, lines: int) -> None:
        self._progress(Progress(job.name, bytes_done, job.size, lines, "reading"))


def split_graph(line: bytes) -> tuple[bytes, bytes | None]:
    """Split a canonical N-Quads line into the line of its triple and the IRI of its graph (None: default graph)."""
    start = line.index(b" ", line.index(b" ") + 1) + 1
    # IRIs and language tags contain no quotes: the last quote ends the literal
    after = line.rindex(b'"') if line[start : start + 1] == b'"' else start
    end = line.index(b" ", after)
    if line[end:] == b" .\n":
        return line, None
    return line[:end] + b" .\n", line[end + 2 : -4]


_NUL = re.compile(rb"\0|(?<!\\)(?:\\\\)*+\\(?:u0000|U00000000)").search


def upload_problem(line: bytes) -> str | None:
    """Return why a line cannot be sent to a server (an IRI that is too long, or a NUL character), or None."""
    if _NUL(line):
        return "the character NUL, which servers read as the end of the text"
    if len(line) <= LONGEST_IRI_BYTES:
        return None
    subject, predicate, rest = line.split(b" ", 2)
    longest = max(len(subject), len(predicate), rest.index(b" ") if rest[:1] == b"<" else 0) - 2
    if longest <= LONGEST_IRI_BYTES:
        return None
    return f"an IRI of {longest:,} bytes, more than servers store ({LONGEST_IRI_BYTES:,})"


def _is_valid(lines: list[bytes]) -> bool:
    """Return whether the engine's parser accepts all these lines. The quick check tests only the form of a line."""
    try:
        for _ in ox.parse(b"".join(lines), format=ox.RdfFormat.N_QUADS):
            pass
    except SyntaxError:
        return False
    return True


def _checked_singly(block: Block, source: LineSource, bad: list[tuple[int, str]]) -> Block:
    """Return the block with every line checked by the engine's parser; refused lines are added to `bad`."""
    reader = source.reader(lambda line, message: bad.append((line, message)), strict=True)
    reader.line = block.first
    return Block(reader.canonical(block.raw), block.first, block.end, block.raw)


def _numbers_without(block: Block, source: LineSource, unfit: set[int]) -> list[int]:
    return [number for number in _line_numbers(block, source) if number not in unfit]


def _line_numbers(block: Block, source: LineSource) -> list[int]:
    """Return the line number (from 1) in the file of each canonical line of the block."""
    if len(block.lines) == block.end - block.first:
        return list(range(block.first + 1, block.end + 1))
    numbers: list[int] = []
    good = set(block.lines)
    reader = source.reader(lambda line, message: None)
    for number, raw in enumerate(block.raw.split(b"\n"), start=block.first + 1):
        if any(line in good for line in reader.canonical(raw + b"\n")):
            numbers.append(number)
    return numbers
