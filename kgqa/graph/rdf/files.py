"""RDF files of all supported formats, read as blocks of canonical lines.

N-Triples and N-Quads are streamed. Other formats are first converted to N-Quads in a staging file, because their
parsers stop at the first error and give anonymous nodes random numbers.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any

import pyoxigraph as ox
from msgspec import Meta

from kgqa.errors import LoadError
from kgqa.graph.rdf.limits import CheckedXml, ShallowJson
from kgqa.graph.rdf.lines import GENID, Block, LineReader, blocks, quad_line, rewind
from kgqa.graph.store import MalformedLine, OnError
from kgqa.schema import usable_prefixes
from kgqa.storage.loading import Count
from kgqa.text.hints import Command, Option

MAX_EXAMPLES = 20
STAGED_BETWEEN_REPORTS = 20_000

LINE_FORMATS = {".nt": ox.RdfFormat.N_TRIPLES, ".nq": ox.RdfFormat.N_QUADS}
STREAMED = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".trig": ox.RdfFormat.TRIG,
    ".n3": ox.RdfFormat.N3,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".owl": ox.RdfFormat.RDF_XML,
    ".xml": ox.RdfFormat.RDF_XML,
    ".jsonld": ox.RdfFormat.JSON_LD,
}
FORMATS = tuple(sorted([*LINE_FORMATS, *STREAMED]))
COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass
class FileJob:
    """One file of a load: its path and format, its size and hash when the load began, its progress, its prefixes."""

    path: Annotated[str, Meta(pattern=r"\A[^\0]{1,4096}\Z")]
    format: Annotated[str, Meta(pattern=r"\A\.[a-z0-9]{1,10}\Z")]
    size: Count
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    lines_done: Count = 0
    prefixes: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file, without its folder."""
        return Path(self.path).name


def file_job(path: Path, format: str | None = None) -> FileJob:
    """Describe a file before it is loaded: format (by the file name's extension unless given), size and hash.

    Raises:
        LoadError: the file is missing, unreadable, or of an unknown format.
    """
    inner = Path(path.stem) if path.suffix.lower() in COMPRESSED else path
    suffix = f".{format.lstrip('.')}".lower() if format else inner.suffix.lower()
    if suffix not in FORMATS:
        raise LoadError(
            f"{path}: unknown RDF format. Known endings: {', '.join(FORMATS)}, each also with {', '.join(COMPRESSED)}.",
            "Name the format: ",
            Option("format", "nt"),
        )
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise LoadError(
                f"{path} is not a regular file. Files are read more than once, so write its content to a file first."
            )
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileJob(str(path.resolve()), suffix, path.stat().st_size, digest)
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}.") from error


def check_unchanged(job: FileJob, restart: Command) -> None:
    """Check that a file has not changed since its load began.

    Args:
        restart: the command that starts the load from the beginning, for the message.

    Raises:
        LoadError: the file has changed.
    """
    if file_job(Path(job.path), job.format).sha256 != job.sha256:
        raise LoadError(f"{job.path} has changed since the interrupted load.", "Start the load again: ", restart)


@dataclass
class MalformedLines:
    """Counts the malformed lines of a load and keeps the first few.

    If `on_error` is `fail`, the first malformed line raises LoadError instead.
    """

    on_error: OnError
    count: int = 0
    examples: list[MalformedLine] = field(default_factory=list)

    def add(self, file: str, line: int, message: str) -> None:
        """Add a malformed line. Raises LoadError unless malformed lines are skipped."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(MalformedLine(file, line, message))
        if self.on_error == "fail":
            raise LoadError(
                f"{file}, line {line}: {message}. The load was discarded.",
                "Fix the line, or skip malformed lines: ",
                Option("on-error", "skip"),
            )


def read_blocks(
    job: FileJob, staging: Path, malformed: Callable[[int, str], None], on_staging: Callable[[int, int], None]
) -> Iterator[tuple[Block, int]]:
    """Yield the lines of a file of any supported format in blocks, each with the number of bytes read so far.

    Every call yields the same blocks. The bytes are those of the file on the disk, which may be compressed.

    Args:
        staging: folder for the N-Quads file to which a file of a different format is converted; see `staged_file`. A
            converted file that exists already is used. The caller removes the converted file.
        malformed: called for each malformed line, with its number (from 1) and the reason.
        on_staging: called regularly during the conversion, with the numbers of bytes read and of lines written.

    Raises:
        LoadError: the file is cut short, not valid, or cannot be read.
    """
    with _file_errors(job), ExitStack() as stack:
        on_disk: IO[bytes] = stack.enter_context(open(job.path, "rb"))
        stream = stack.enter_context(COMPRESSED.get(Path(job.path).suffix.lower(), nullcontext)(on_disk))
        format = LINE_FORMATS.get(job.format)
        if format is None:
            staged, format = staged_file(job, staging), ox.RdfFormat.N_QUADS
            if not staged.exists():
                _stage(job, on_disk, stream, staged, on_staging)
            on_disk = stream = stack.enter_context(open(staged, "rb"))
        size = os.fstat(on_disk.fileno()).st_size
        # the IRIs of blank nodes are derived from the file's content
        reader = LineReader(job.sha256[:16], format, malformed)
        for lines in blocks(rewind(stream)):
            yield reader.read(lines), job.size * min(on_disk.tell(), size) // max(1, size)


def staged_file(job: FileJob, staging: Path) -> Path:
    """Return the path of the N-Quads file to which a file of a different format is converted."""
    # the path is included because relative IRIs depend on it
    digest = hashlib.sha256(f"{job.path}\0{job.format}\0{job.sha256}".encode("utf-8", "surrogateescape"))
    return staging / f"staged-{digest.hexdigest()[:16]}.nq"


@contextmanager
def _file_errors(job: FileJob) -> Iterator[None]:
    """Convert errors from reading a file to LoadError."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise LoadError(
            f"{job.name} is truncated or damaged: its compressed data is incomplete ({error}). The load was discarded.",
            "Download the file again.",
        ) from error
    except OSError as error:
        raise LoadError(f"{job.name} cannot be read or converted: {error.strerror or error}.") from error


def _stage(
    job: FileJob, raw: IO[bytes], stream: IO[bytes], staged: Path, on_staging: Callable[[int, int], None]
) -> None:
    """Convert a file of another format to canonical N-Quads. Anonymous nodes are numbered in order of appearance."""
    numbers: dict[str, int] = {}
    tag = job.sha256[:16]
    unfinished = staged.with_name(staged.name + ".part")

    def genid(node: ox.BlankNode) -> str:
        return f"{GENID}{tag}:{numbers.setdefault(node.value, len(numbers) + 1)}"

    written = 0
    with open(unfinished, "wb") as out:
        try:
            for quad in _parse(rewind(stream), job):
                if job.format == ".n3" and not isinstance(quad.graph_name, ox.DefaultGraph):
                    raise ValueError("N3 formulas and rules are not supported, only triples")
                out.write(quad_line(quad, genid))
                written += 1
                if written % STAGED_BETWEEN_REPORTS == 0:
                    on_staging(min(raw.tell(), job.size), written)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            where = f", line {line}" if line else ""
            raise LoadError(
                f"{job.name}{where}: {getattr(error, 'msg', None) or error}. The load was discarded.",
                "Fix the file (",
                Option("on-error", "skip"),
                f" works only for N-Triples and N-Quads, not for {job.format}).",
            ) from error
    unfinished.replace(staged)


def _parse(stream: Any, job: FileJob) -> Iterator[ox.Quad]:
    """Yield the quads of a file, and keep the prefixes that it declares in its job."""
    format = STREAMED[job.format]
    if format == ox.RdfFormat.RDF_XML:
        stream = CheckedXml(stream)
    elif format == ox.RdfFormat.JSON_LD:
        stream = ShallowJson(stream)
    quads = ox.parse(
        stream,
        format=format,
        base_iri=Path(job.path).as_uri(),
        rename_blank_nodes=False,
    )
    yield from quads
    job.prefixes = usable_prefixes(quads.prefixes)
