"""RDF files of any known format, read as blocks of canonical lines: what every load begins with.

Line formats are streamed; everything else is first written out as N-Quads, because its parsers cannot go on after an
error and number anonymous nodes at random.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyoxigraph as ox

from kgqa.errors import LoadError
from kgqa.graph.rdf.limits import Readable, ShallowJson, XmlWithFlatEntities, check_no_doctype
from kgqa.graph.rdf.lines import GENID, LineReader, blocks, quad_line
from kgqa.graph.store import MalformedLine, OnError

MAX_EXAMPLES = 20
MAX_IN_MEMORY_BYTES = 512 << 20
MAX_DECOMPRESSED_BYTES = 1 << 42
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
BY_RDFLIB = {".trix": "trix", ".hext": "hext"}
FORMATS = tuple(sorted([*LINE_FORMATS, *STREAMED, *BY_RDFLIB]))
COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass
class FileJob:
    """One file of a load: where it is, what it was when the load began, how far it is."""

    path: str
    format: str
    size: int
    sha256: str
    lines_done: int = 0
    done: bool = False

    @property
    def name(self) -> str:
        return Path(self.path).name


def file_job(path: Path, format: str | None = None) -> FileJob:
    """Look at a file before loading it: its format by name (or as told), its size and hash.

    Raises:
        LoadError: missing, unreadable, or of no known format.
    """
    suffix = f".{format.lower().lstrip('.')}" if format else _suffix(path)
    if suffix not in FORMATS:
        raise LoadError(
            f"{path}: the ending does not tell the RDF format. Known: {', '.join(FORMATS)}, each also as "
            f"{', '.join(COMPRESSED)}. Or say it: --format nt"
        )
    digest = hashlib.sha256()
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise LoadError(
                f"{path} is no ordinary file. A load reads its files more than once, to be able to go on after an "
                "interruption: write a pipe's content to a file first."
            )
        with open(path, "rb") as file:
            while data := file.read(1 << 20):
                digest.update(data)
        return FileJob(str(path.resolve()), suffix, path.stat().st_size, digest.hexdigest())
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}.") from error


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def check_unchanged(job: FileJob, again: str) -> None:
    """Raises LoadError where the file is another one than when its load began; `again` is the command to begin anew."""
    if file_job(Path(job.path), job.format).sha256 != job.sha256:
        raise LoadError(f"{job.path} has changed since the interrupted load. Begin again: {again}")


class MalformedLines:
    """The malformed lines of a load: counted, the first few kept; or an error at the first, by `on_error`."""

    def __init__(self, on_error: OnError) -> None:
        self.on_error = on_error
        self.count = 0
        self.examples: list[MalformedLine] = []

    def add(self, file: str, line: int, message: str) -> None:
        """Raises LoadError unless malformed lines are to be left out."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(MalformedLine(file, line, message))
        if self.on_error == "fail":
            raise LoadError(
                f"{file}, line {line}: {message}. Nothing of this load was kept. "
                "Mend the line, or leave such lines out: --on-error skip"
            )

    def mark(self) -> tuple[int, int]:
        """Where the count stands, for `back_to`."""
        return self.count, len(self.examples)

    def back_to(self, mark: tuple[int, int]) -> None:
        """Forget what was added since: those lines are judged again."""
        self.count = mark[0]
        del self.examples[mark[1] :]


@dataclass(frozen=True, slots=True)
class Block:
    """Canonical lines, each ending in ` .\\n`. They stand for the lines from `first` (counted from 0) to before
    `end` of their file, of which malformed and empty ones are left out. `raw` is what was read.
    """

    lines: list[bytes]
    first: int
    end: int
    raw: bytes


class LineSource:
    """The lines of one file, unpacked, and in N-Triples or N-Quads whatever the file's own format is."""

    def __init__(self, job: FileJob, on_disk: IO[bytes], stream: IO[bytes], format: ox.RdfFormat) -> None:
        self.job = job
        self.format = format
        self._on_disk = on_disk
        self._size = os.fstat(on_disk.fileno()).st_size
        self._stream = stream

    @property
    def bytes_done(self) -> int:
        """How far the file is read, in bytes of it as it lies on disk."""
        return self.job.size * min(self._on_disk.tell(), self._size) // max(1, self._size)

    def reader(self, malformed: Callable[[int, str], None], *, strict: bool = False) -> LineReader:
        """A reader of these lines; blank nodes are named by the file's content."""
        reader = LineReader(self.job.sha256[:16], self.format, malformed)
        reader.strict = strict
        return reader

    def blocks(self, malformed: Callable[[int, str], None], *, strict: bool = False) -> Iterator[Block]:
        """All lines from the first one on. Borders of blocks are the same every time.

        Args:
            malformed: is told of lines left out: their number from 1, and why.
            strict: have the engine's parser judge every single line.

        Raises:
            LoadError: the file is cut short, cannot be read, or unpacks to more than anybody can mean.
        """
        reader = self.reader(malformed, strict=strict)
        total = 0
        with _explained(self.job):
            self._stream.seek(0)
            for raw in blocks(self._stream):
                total += len(raw)
                if total > MAX_DECOMPRESSED_BYTES:
                    raise LoadError(f"{self.job.name} unpacks to more than {MAX_DECOMPRESSED_BYTES:,} bytes.")
                first = reader.line
                lines = reader.canonical(raw)
                yield Block(lines, first, reader.line, raw)


@contextmanager
def open_lines(job: FileJob, staging: Path, reading: Callable[[int, int], None]) -> Iterator[LineSource]:
    """Open a file of any known format as lines.

    Args:
        staging: folder where a file that is not made of lines is written out as N-Quads, to the file `staged_file`
            names; one that is there already is used as it is. The caller removes it.
        reading: is told now and then, while that is done: bytes read and lines written.

    Raises:
        LoadError: the file is cut short, not valid, or cannot be read.
    """
    with ExitStack() as stack:
        with _explained(job):
            on_disk = stack.enter_context(open(job.path, "rb"))
            stream, format = stack.enter_context(_decompressed(on_disk, job.path)), LINE_FORMATS.get(job.format)
            if format is None:
                staged = staged_file(job, staging)
                if not staged.exists():
                    _stage(job, on_disk, stream, staged, reading)
                on_disk = stream = stack.enter_context(open(staged, "rb"))
        yield LineSource(job, on_disk, stream, format or ox.RdfFormat.N_QUADS)


def staged_file(job: FileJob, staging: Path) -> Path:
    """Where a file that is not made of lines is written out as N-Quads."""
    # relative IRIs depend on the place of the file, too
    named = hashlib.sha256(f"{job.path}\0{job.format}\0{job.sha256}".encode("utf-8", "surrogateescape"))
    return staging / f"staged-{named.hexdigest()[:16]}.nq"


@contextmanager
def _explained(job: FileJob) -> Iterator[None]:
    """Turns what goes wrong with a file into LoadError."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise LoadError(
            f"{job.name} is cut short or damaged: its compressed data ends in the middle ({error}). "
            "Fetch the file again; nothing of this load was kept."
        ) from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise LoadError(
                f"There is no space left to write {job.name} out as lines. Make room and load it again; "
                "nothing of this load was kept."
            ) from error
        raise LoadError(f"{job.name} cannot be read: {error.strerror or error}.") from error


def _decompressed(raw: IO[bytes], path: str) -> IO[bytes]:
    opener = COMPRESSED.get(Path(path).suffix.lower())
    return opener(raw, "rb") if opener else raw


def _stage(job: FileJob, raw: IO[bytes], stream: IO[bytes], staged: Path, reading: Callable[[int, int], None]) -> None:
    """Write a file of any other format as canonical N-Quads. Anonymous nodes are numbered as they appear."""
    numbers: dict[str, int] = {}
    tag = job.sha256[:16]
    unfinished = staged.with_name(staged.name + ".part")

    def genid(node: ox.BlankNode) -> str:
        return f"{GENID}{tag}:{numbers.setdefault(node.value, len(numbers) + 1)}"

    written = 0
    with open(unfinished, "wb") as out:
        try:
            for quad in _parse(stream, job.format, Path(job.path)):
                if job.format == ".n3" and not isinstance(quad.graph_name, ox.DefaultGraph):
                    raise ValueError("formulas and rules are not supported, only the facts of N3")
                out.write(quad_line(quad, genid))
                written += 1
                if written % STAGED_BETWEEN_REPORTS == 0:
                    reading(min(raw.tell(), job.size), written)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            where = f", line {line}" if line else ""
            raise LoadError(
                f"{job.name}{where}: {getattr(error, 'msg', None) or error}. Nothing of this load was kept. "
                f"A {job.format} file cannot be read on after an error, so --on-error does not help: mend it."
            ) from error
    unfinished.replace(staged)


def _parse(stream: IO[bytes], format: str, path: Path) -> Iterator[ox.Quad]:
    if format in STREAMED:
        base = path.as_uri()
        source: Readable = stream
        if STREAMED[format] == ox.RdfFormat.RDF_XML:
            source = XmlWithFlatEntities(stream)
        elif STREAMED[format] == ox.RdfFormat.JSON_LD:
            source = ShallowJson(stream)
        yield from ox.parse(source, format=STREAMED[format], base_iri=base, rename_blank_nodes=False)
        return
    data = stream.read(MAX_IN_MEMORY_BYTES + 1)
    if len(data) > MAX_IN_MEMORY_BYTES:
        raise ValueError(
            f"larger than {MAX_IN_MEMORY_BYTES:,} bytes, which this format cannot be; convert it to N-Quads"
        )
    if format == ".trix":
        check_no_doctype(data)
    yield from _parse_by_rdflib(data, BY_RDFLIB[format])


def _parse_by_rdflib(data: bytes, format: str) -> Iterator[ox.Quad]:
    import rdflib

    dataset = rdflib.Dataset()
    try:
        dataset.parse(data=data, format=format)
    except Exception as error:  # rdflib's parsers raise whatever their XML or JSON reader raises
        raise ValueError(f"not valid {format}: {error}") from error
    text = dataset.serialize(format="nquads", encoding="utf-8")
    found = ox.Dataset()
    for quad in ox.parse(text, format=ox.RdfFormat.N_QUADS, rename_blank_nodes=False):
        # rdflib names a graph that has no name by a blank node
        named = isinstance(quad.graph_name, ox.NamedNode) and quad.graph_name.value != "urn:x-rdflib:default"
        found.add(quad if named else ox.Quad(quad.subject, quad.predicate, quad.object))
    # rdflib gives blank nodes new names every time; canonical ones are the same every time
    found.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    yield from sorted(found, key=str)
