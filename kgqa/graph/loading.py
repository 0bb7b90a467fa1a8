"""Bulk loading: RDF files in, a finished generation out. Runs inside a worker process.

A load is one transaction over all its files, kept in a journal. Line formats are streamed; everything else
is first written out as N-Quads, because its parsers cannot go on after an error and number anonymous nodes
at random. The engine is fed in segments, after each of which the journal notes how far the file is, so that
an interrupted load can be resumed.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyoxigraph as ox

from kgqa.errors import LoadError
from kgqa.graph.folder import GraphFolder, write_json
from kgqa.graph.rdf_lines import GENID, LineReader, blocks, hashes, quad_line

SEGMENT_LINES = 2_000_000
MAX_EXAMPLES = 20
MAX_IN_MEMORY_BYTES = 512 << 20
MAX_DECOMPRESSED_BYTES = 1 << 42

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


@dataclass
class Journal:
    """The state of a load, in loading.json."""

    generation: int
    base: int | None
    on_error: str
    files: list[FileJob] = field(default_factory=list)
    schema: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def save(self, folder: GraphFolder) -> None:
        write_json(folder.journal_file, asdict(self))

    @classmethod
    def read(cls, folder: GraphFolder) -> Journal:
        """Raises LoadError when there is none, or it is damaged."""
        try:
            data = json.loads(folder.journal_file.read_text(encoding="utf-8"))
            files = [FileJob(**item) for item in data.pop("files")]
            return cls(**data, files=files)
        except FileNotFoundError:
            raise LoadError(f"No interrupted load at {folder.path}: there is nothing to resume.") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LoadError(
                f"{folder.journal_file} is damaged ({error}). Begin again: kgqa graph load FILE --restart --into {folder.path}"
            ) from error


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


def run_load(
    folder: GraphFolder,
    journal: Journal,
    report: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Carry out the load in the journal, up to a finished but unpublished generation.

    Args:
        report: called now and then with the fields of `store.Progress`.

    Returns:
        lines, malformed, examples, added and triples of this load, and the fingerprint's hashes saved beside it.

    Raises:
        LoadError: the load cannot go on. The caller discards the generation.
    """
    store = ox.Store(str(folder.store_dir(journal.generation)))
    all_hashes: list[np.ndarray] = []
    counted = {"lines": 0, "malformed": 0}
    examples: list[dict[str, Any]] = []
    for job in journal.files:
        loader = _FileLoader(store, folder, journal, job, report, all_hashes, counted, examples)
        loader.load()
    report({"file": "", "bytes_done": 0, "bytes_total": 0, "lines": counted["lines"], "stage": "finishing"})
    store.flush()
    store.optimize()
    old = folder.load_hashes(journal.base) if journal.base is not None else np.empty(0, dtype="<u8")
    merged = np.unique(np.concatenate([old, *all_hashes]))
    folder.save_hashes(journal.generation, merged)
    return {
        **counted,
        "examples": examples,
        "added": int(merged.size - old.size),
        "triples": int(merged.size),
    }


class _FileLoader:
    """Loads one file: checks its lines, hashes them, and feeds the engine segment by segment."""

    def __init__(self, store, folder, journal, job, report, all_hashes, counted, examples) -> None:
        self.store: ox.Store = store
        self.folder: GraphFolder = folder
        self.journal: Journal = journal
        self.job: FileJob = job
        self.report = report
        self.all_hashes: list[np.ndarray] = all_hashes
        self.counted: dict[str, int] = counted
        self.examples: list[dict[str, Any]] = examples
        self.name = Path(job.path).name

    def load(self) -> None:
        try:
            with open(self.job.path, "rb") as raw:
                self.raw = raw
                with _decompressed(raw, self.job.path) as stream:
                    if self.job.format in LINE_FORMATS:
                        self._load_lines(stream, LINE_FORMATS[self.job.format])
                    else:
                        staged = self.folder.path / f"gen-{self.journal.generation}" / "staged.nq"
                        self._stage(stream, staged)
                        with open(staged, "rb") as lines:
                            self._load_lines(lines, ox.RdfFormat.N_QUADS)
                        staged.unlink()
        except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
            raise LoadError(
                f"{self.name} is cut short or damaged: its compressed data ends in the middle ({error}). "
                "Fetch the file again; nothing of this load was kept."
            ) from error
        except OSError as error:
            raise LoadError(f"{self.name} cannot be read: {error.strerror or error}.") from error
        self.job.done = True
        self.journal.save(self.folder)

    def _malformed(self, line: int, message: str) -> None:
        self.counted["malformed"] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append({"file": self.name, "line": line, "message": message})
        if self.journal.on_error == "fail":
            raise LoadError(
                f"{self.name}, line {line}: {message}. Nothing of this load was kept. "
                "Mend the line, or leave such lines out: --on-error skip"
            )

    def _load_lines(self, stream: IO[bytes], format: ox.RdfFormat) -> None:
        before = dict(self.counted), len(self.examples), len(self.all_hashes)
        try:
            self._feed(stream, format, strict=False)
        except SyntaxError:
            # the engine is stricter than the quick check: let its own parser judge each line, from the start
            self.counted.update(before[0])
            del self.examples[before[1] :], self.all_hashes[before[2] :]
            stream.seek(0)
            self.job.lines_done = 0
            self._feed(stream, format, strict=True)

    def _feed(self, stream: IO[bytes], format: ox.RdfFormat, *, strict: bool) -> None:
        reader = LineReader(self.job.sha256[:16], format, self._malformed)
        reader.strict = strict
        source = self._canonical_blocks(stream, reader)
        segment = _Segment(source)
        while segment.more():
            self.store.bulk_load(segment, format=ox.RdfFormat.N_QUADS)
            self.job.lines_done = max(self.job.lines_done, reader.line)
            self.journal.save(self.folder)

    def _canonical_blocks(self, stream: IO[bytes], reader: LineReader) -> Iterator[tuple[bytes, int]]:
        """Canonical blocks that the engine has not had yet, with their line counts; hashes all of them."""
        done_before = self.job.lines_done
        total = 0
        for block in blocks(stream):
            total += len(block)
            if total > MAX_DECOMPRESSED_BYTES:
                raise LoadError(f"{self.name} unpacks to more than {MAX_DECOMPRESSED_BYTES:,} bytes.")
            first = reader.line
            lines = reader.canonical(block)
            self.all_hashes.append(np.frombuffer(hashes(lines), dtype="<u8"))
            self.counted["lines"] += reader.line - first
            self.report(
                {
                    "file": self.name,
                    "bytes_done": min(self.raw.tell(), self.job.size),
                    "bytes_total": self.job.size,
                    "lines": self.counted["lines"],
                    "stage": "loading",
                }
            )
            # a segment ends with a block, so a block was loaded whole or not at all
            if lines and reader.line > done_before:
                yield b"".join(lines), reader.line - first

    def _stage(self, stream: IO[bytes], staged: Path) -> None:
        """Write a file of any other format as canonical N-Quads. Anonymous nodes are numbered as they appear."""
        numbers: dict[str, int] = {}
        tag = self.job.sha256[:16]

        def genid(node: ox.BlankNode) -> str:
            return f"{GENID}{tag}:{numbers.setdefault(node.value, len(numbers) + 1)}"

        written = 0
        with open(staged, "wb") as out:
            try:
                for quad in _parse(stream, self.job.format, Path(self.job.path)):
                    if self.job.format == ".n3" and not isinstance(quad.graph_name, ox.DefaultGraph):
                        raise ValueError("formulas and rules are not supported, only the facts of N3")
                    out.write(quad_line(quad, genid))
                    written += 1
                    if written % 20_000 == 0:
                        self.report(
                            {
                                "file": self.name,
                                "bytes_done": min(self.raw.tell(), self.job.size),
                                "bytes_total": self.job.size,
                                "lines": self.counted["lines"] + written,
                                "stage": "reading",
                            }
                        )
            except (SyntaxError, ValueError) as error:
                line = getattr(error, "lineno", None)
                where = f", line {line}" if line else ""
                raise LoadError(
                    f"{self.name}{where}: {getattr(error, 'msg', None) or error}. Nothing of this load was kept. "
                    f"A {self.job.format} file cannot be read on after an error, so --on-error does not help: mend it."
                ) from error


class _Segment(io.RawIOBase):
    """A file for the engine made of at most SEGMENT_LINES lines from an iterator of blocks."""

    def __init__(self, source: Iterator[tuple[bytes, int]]) -> None:
        self._source = source
        self._pending: tuple[bytes, int] | None = None
        self._buffer = memoryview(b"")
        self._left = 0
        self._error: Exception | None = None

    def more(self) -> bool:
        """Start the next segment; False when everything has been read."""
        self._left = SEGMENT_LINES
        if self._pending is None:
            self._pending = next(self._source, None)
        return self._pending is not None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._buffer and self._left > 0:
            block = self._pending or next(self._source, None)
            self._pending = None
            if block is None:
                self._left = 0
            else:
                self._buffer = memoryview(block[0])
                self._left -= block[1]
        if size < 0:
            size = len(self._buffer)
        piece, self._buffer = self._buffer[:size], self._buffer[size:]
        return bytes(piece)


def _decompressed(raw: IO[bytes], path: str) -> IO[bytes]:
    opener = COMPRESSED.get(Path(path).suffix.lower())
    return opener(raw, "rb") if opener else raw


def _parse(stream: IO[bytes], format: str, path: Path) -> Iterator[ox.Quad]:
    if format in STREAMED:
        base = path.as_uri()
        yield from ox.parse(stream, format=STREAMED[format], base_iri=base, rename_blank_nodes=False)
        return
    data = stream.read(MAX_IN_MEMORY_BYTES + 1)
    if len(data) > MAX_IN_MEMORY_BYTES:
        raise ValueError(
            f"larger than {MAX_IN_MEMORY_BYTES:,} bytes, which this format cannot be; convert it to N-Quads"
        )
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
