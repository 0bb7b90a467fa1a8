"""RDF files for upload into one graph of a server, checked completely before anything is sent.

A server cannot undo an upload. All files are therefore read completely before the upload starts. Malformed lines,
truncated files and lines of other graphs are found while the server's graph is still unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path

from kgqa.errors import LoadError
from kgqa.graph.rdf.files import FileJob, MalformedLines, read_blocks
from kgqa.graph.rdf.lines import Block, split_graph
from kgqa.graph.store import Progress
from kgqa.text.hints import Option
from kgqa.text.words import clean

LONGEST_IRI_BYTES = 1_800
"""Maximum length of an IRI. Virtuoso silently cuts longer IRIs (after 1,870 bytes of the last part); two different
IRIs could then become equal."""

LineCheck = Callable[[bytes], str | None]
"""Returns the reason why a canonical line cannot be sent to a server, or None if the line can be sent."""


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
        for job in self.jobs:
            for block, bad, bytes_done in self._read(job):
                for line, message in bad:
                    self.malformed.add(job.name, line, message)
                self.lines += block.end - block.first
                self._progress(Progress(job.name, bytes_done, job.size, self.lines, "reading"))

    def blocks(self, job: FileJob) -> Iterator[tuple[Block, int]]:
        """Yield the blocks of a file as N-Triples, and the number of its bytes read so far. Call `check` first.

        Raises:
            LoadError: the file cannot be read any more.
        """
        return ((block, bytes_done) for block, _, bytes_done in self._read(job))

    def _read(self, job: FileJob) -> Iterator[tuple[Block, list[tuple[int, str]], int]]:
        """Yield the blocks of a file, each with its malformed and unfit lines: their numbers and reasons."""
        bad: list[tuple[int, str]] = []

        def on_staging(bytes_done: int, lines: int) -> None:
            self._progress(Progress(job.name, bytes_done, job.size, self.lines + lines, "reading"))

        def on_malformed(number: int, message: str) -> None:
            bad.append((number, message))

        for block, bytes_done in read_blocks(job, self._staging, on_malformed, on_staging):
            lines = block.lines
            if job.format != ".nt":
                lines = [self._in_graph(line, job, number) for line, number in zip(lines, block.numbers)]
            reasons = [self._unfit(line) for line in lines]
            bad.extend((number, reason) for number, reason in zip(block.numbers, reasons) if reason)
            fit = [not reason for reason in reasons]
            numbers = block.numbers if all(fit) else list(compress(block.numbers, fit))
            yield Block(list(compress(lines, fit)), numbers, block.first, block.end), sorted(bad), bytes_done
            bad.clear()

    def _in_graph(self, line: bytes, job: FileJob, number: int) -> bytes:
        triple, graph = split_graph(line)
        if graph is not None and graph != self._graph:
            found = clean(graph.decode("utf-8", "replace"))[:300]
            raise LoadError(
                f"{job.name}, line {number}: this triple belongs to the graph <{found}>, "
                f"but the load is for <{self._graph.decode()}>. Nothing was sent.",
                "Load the file into that graph (",
                Option("graph-iri", found),
                "), or remove the graph names from the file.",
            )
        return triple


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
