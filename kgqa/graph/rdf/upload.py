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
from kgqa.graph.rdf.lines import split_graph
from kgqa.graph.store import Progress
from kgqa.text.hints import Option
from kgqa.text.words import clean

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
        for number, job in enumerate(self.jobs):
            for block, bad in self._read(number, is_check=True):
                for line, message in bad:
                    self.malformed.add(job.name, line, message)
                self.lines += block.end - block.first
                self._report_progress(job, block.bytes_done, self.lines)

    def blocks(self, number: int) -> Iterator[UploadBlock]:
        """Yield the blocks of a file. Every call yields the same blocks. Call `check` first.

        Raises:
            LoadError: the file cannot be read any more.
        """
        for block, _ in self._read(number, is_check=False):
            yield block

    def find(self, wanted: Collection[bytes], numbers: Iterable[int]) -> dict[bytes, tuple[str, int]]:
        """Return the file name and line number (from 1) of each wanted line in the files with these numbers."""
        found: dict[bytes, tuple[str, int]] = {}
        for number in numbers:
            for block in self.blocks(number):
                if any(line in wanted for line in block.lines):
                    positions = zip(block.lines, block.numbers())
                    found.update({line: (self.jobs[number].name, at) for line, at in positions if line in wanted})
        return found

    def _read(self, number: int, *, is_check: bool) -> Iterator[tuple[UploadBlock, list[tuple[int, str]]]]:
        """Yield the blocks of a file, each with its malformed and unfit lines: their numbers and reasons."""
        job = self.jobs[number]
        bad: list[tuple[int, str]] = []

        def on_staging(bytes_done: int, lines: int) -> None:
            self._report_progress(job, bytes_done, self.lines + lines)

        with open_lines(job, self._staging, on_staging) as source:
            for raw_block in source.blocks(lambda line, message: bad.append((line, message))):
                block = raw_block
                if (is_check or number in self.doubtful) and not _is_valid(block.lines):
                    self.doubtful.add(number)
                    bad.clear()
                    block = _checked_singly(block, source, bad)
                unfit, lines = self._fit(block, source)
                numbers = partial(_numbers_without, block, source, {line for line, _ in unfit})
                yield UploadBlock(lines, block.first, block.end, source.bytes_done, numbers), sorted([*bad, *unfit])
                bad.clear()

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
                "Load the file into that graph (",
                Option("graph-iri", found),
                "), or remove the graph names from the file.",
            )
        return triple

    def _report_progress(self, job: FileJob, bytes_done: int, lines: int) -> None:
        self._progress(Progress(job.name, bytes_done, job.size, lines, "reading"))


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
    good = set(block.lines)
    reader = source.reader(lambda line, message: None)
    numbered = enumerate(block.raw.split(b"\n"), start=block.first + 1)
    return [number for number, raw in numbered if not good.isdisjoint(reader.canonical(raw + b"\n"))]
