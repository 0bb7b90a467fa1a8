"""Where documents come from: files, a file of triples that were extracted elsewhere, or documents that are given.

A feed has a name, under which the corpus remembers it, and yields passages: a document, and, if they are known already,
its chunk and what was extracted from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kgqa.corpus.documents.document import Document
from kgqa.corpus.documents.reading import read_source
from kgqa.corpus.documents.sources import Source, find_sources
from kgqa.corpus.extraction.openie import stream_openie
from kgqa.corpus.extraction.requests import with_placeholder
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.items import ChunkItem, digest
from kgqa.corpus.storage.ledger import FileEntry
from kgqa.errors import DocumentError

TRIPLES = "triples:"
"""Prefix of the root of a file of triples."""
Report = Callable[[str, str], None]
"""Called with the name of something that is left out, and the reason."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A document; and its only chunk and the result for it, if they are known. `malformed`: triples left out."""

    document: Document
    chunk: ChunkItem | None = None
    result: ChunkResult | None = None
    malformed: tuple[tuple[str, str], ...] = ()


class Feed(Protocol):
    """A place where documents come from.

    `root`: what the user gave. `path`: its file, if it is one. `extracted`: whether results come with it.
    """

    @property
    def name(self) -> str: ...

    @property
    def root(self) -> str: ...

    @property
    def path(self) -> Path | None: ...

    @property
    def extracted(self) -> bool: ...

    def digest(self) -> str:
        """Return a hash of the content. Raises DocumentError if it cannot be read."""
        ...

    def passages(self, report: Report) -> Iterator[Passage]:
        """Yield the passages. Raises DocumentError if the rest cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class FileFeed:
    """A file of documents."""

    source: Source
    root: str
    keys: bool = False
    extracted: bool = False

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def is_collection(self) -> bool:
        """Whether the file may contain many documents."""
        return self.source.file_type.format == "json_records"

    def digest(self) -> str:
        return self.source.digest()

    def passages(self, report: Report) -> Iterator[Passage]:
        documents = read_source(self.source, keys=self.keys, report=report)
        return (Passage(with_placeholder(document)) for document in documents)


@dataclass(frozen=True, slots=True)
class TriplesFeed:
    """A file of passages and triples in the format of HippoRAG."""

    path: Path
    extracted: bool = True

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def root(self) -> str:
        return f"{TRIPLES}{self.path.resolve()}"

    def digest(self) -> str:
        if not self.path.is_file():
            raise DocumentError("there is no such file", str(self.path))
        return Source(self.name, self.path, self.path.stat().st_size).digest()

    def passages(self, report: Report) -> Iterator[Passage]:
        for each in stream_openie(self.path):
            yield Passage(each.document, each.chunk, each.result, each.malformed)


@dataclass(frozen=True, slots=True)
class GivenFeed:
    """Documents that a program passes in. `name`: what they are called together, such as `musique:dev`."""

    name: str
    documents: Sequence[Document]
    path: None = None
    extracted: bool = False

    @property
    def root(self) -> str:
        return f"given:{self.name}"

    def digest(self) -> str:
        return digest(*(part for each in self.documents for part in (each.source, each.digest)), length=32)

    def passages(self, report: Report) -> Iterator[Passage]:
        return map(Passage, self.documents)


def path_of(entry: FileEntry) -> Path | None:
    """Return the path of a file that the corpus was read from; None if it was read from something else."""
    if entry.root.startswith(TRIPLES):
        return Path(entry.root.removeprefix(TRIPLES))
    return Path(entry.root).parent / entry.name if entry.root.startswith("/") else None


@dataclass(frozen=True, slots=True)
class Found:
    """The feeds of a build by root, and the files that were left out, by root."""

    feeds: dict[str, list[Feed]]
    skipped: dict[str, list[tuple[str, str]]]


def find_feeds(
    paths: Sequence[str | Path],
    *,
    triples: Path | None = None,
    given: Iterable[GivenFeed] = (),
    roots: Iterable[str] = (),
    ignore: Sequence[str] = (),
    hidden: bool = False,
    keys: bool = False,
) -> Found:
    """Find all documents.

    Args:
        paths: Files and folders. What lies in a folder of this or an earlier build has the name that it has there.
        roots: The files and folders of earlier builds.
        triples: A file of extracted triples.
        given: Documents of other origin.
        ignore: Patterns of files that are left out.
        hidden: Whether hidden files are read.
        keys: Whether files are read that look as if they contained keys or passwords.

    Raises:
        DocumentError: A path does not exist.
    """
    feeds: dict[str, list[Feed]] = {}
    skipped: dict[str, list[tuple[str, str]]] = defaultdict(list)
    read_before = (Path(root) for root in roots if Path(root).is_absolute())
    folders = sorted((*read_before, *(Path(path).resolve() for path in paths)), key=lambda root: len(root.parts))
    for path in map(Path, paths):
        real = path.resolve()
        # the largest folder of this or an earlier build that contains the path
        root = next((folder for folder in folders if folder in real.parents), real)
        found = find_sources([path], ignore=ignore, hidden=hidden, keys=keys, names_from=root.parent)
        feeds.setdefault(str(real), []).extend(FileFeed(source, str(root), keys) for source in found.sources)
        skipped[str(real)] += found.skipped
    if triples is not None:
        feed = TriplesFeed(Path(triples).resolve())
        feeds[feed.root] = [feed]
    for each in given:
        feeds[each.root] = [each]
    return Found(feeds, skipped)
