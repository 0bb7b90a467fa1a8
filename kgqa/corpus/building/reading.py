"""Reads and chunks documents, in this process or on a cluster, and extracts what needs no language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kgqa.cluster import Cluster, PlainLoop
from kgqa.corpus.building.feeds import Feed, FileFeed, Passage
from kgqa.corpus.documents.chunks import ChunkSize, CountTokens, split_documents
from kgqa.corpus.documents.document import Document
from kgqa.corpus.extraction.requests import Extractor, extraction_requests
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.items import ChunkItem
from kgqa.errors import DocumentError

DOCUMENTS_AT_ONCE = 200
"""How many documents of a file, or of an origin in memory, are chunked together."""
FILES_AT_ONCE = 16
BYTES_AT_ONCE = 8 << 20
"""How many files are read together, and how many bytes of them."""


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document with its chunks. `results`: what was extracted; None if a language model has to be asked."""

    document: Document
    chunks: list[ChunkItem]
    results: list[ChunkResult] | None = None
    malformed: tuple[tuple[str, str], ...] = ()


@dataclass
class ReadFile:
    """What was read of a file, or of a part of it.

    `unchanged`: IRIs of documents that the corpus has already. `error`: why the rest cannot be read. `last`: whether it
    is all.
    """

    documents: list[ChunkedDocument] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    error: str = ""
    last: bool = True


@dataclass(frozen=True, slots=True)
class _Work:
    """What one call of `ReadTask` does: read files, or take documents that were read already."""

    files: tuple[FileFeed, ...] = ()
    passages: tuple[Passage, ...] = ()


@dataclass
class ReadTask:
    """Reads and chunks files or documents. It can be sent to other machines.

    Args:
        size: The size of chunks.
        extractor: The extractor, if it needs no language model.
        counter: Opens what counts tokens, at the first call; None if chunks are measured in characters.
    """

    size: ChunkSize
    extractor: Extractor | None
    counter: Callable[[], CountTokens] | None

    def __call__(self, work: _Work) -> list[ReadFile]:
        """Return what was read: a `ReadFile` for each file, or one for all documents."""
        if work.passages:
            return [ReadFile(self._chunked(work.passages), last=False)]
        return [self._file(feed) for feed in work.files]

    def _file(self, feed: FileFeed) -> ReadFile:
        found = ReadFile()
        try:
            passages = list(feed.passages(lambda name, reason: found.skipped.append((name, reason))))
        except DocumentError as error:
            found.error = error.reason
            return found
        found.documents = self._chunked(passages)
        return found

    def _chunked(self, passages: Sequence[Passage]) -> list[ChunkedDocument]:
        unknown = [each.document for each in passages if each.chunk is None]
        split = split_documents(unknown, self.size, count_tokens=self.counter() if self.counter else None)
        found = []
        for each in passages:
            chunks = next(split) if each.chunk is None else [each.chunk]
            results = None if each.result is None else [each.result]
            if results is None and self.extractor is not None:
                results = list(self.extractor.extract(extraction_requests(each.document, chunks)))
            found.append(ChunkedDocument(each.document, chunks, results, each.malformed))
        return found


class DocumentReader:
    """Reads the documents of feeds in their order.

    Args:
        task: What is done with files and documents.
        cluster: Where it is done.
        known: Returns the digests of the documents of a feed that the corpus has already, by IRI.
    """

    def __init__(
        self, task: ReadTask, cluster: Cluster, known: Callable[[Feed], Mapping[str, str]] = lambda feed: {}
    ) -> None:
        self._task = task
        self._cluster = cluster
        self._known = known

    def read(self, feeds: Sequence[Feed]) -> Iterator[tuple[Feed, ReadFile]]:
        """Yield what is read of each feed; the last part of a feed has `last` set."""
        whole = [each for each in feeds if isinstance(each, FileFeed) and not each.is_collection]
        yield from self._whole(whole)
        for feed in feeds:
            if not isinstance(feed, FileFeed) or feed.is_collection:
                yield from self._parts(feed)

    def _whole(self, feeds: Sequence[FileFeed]) -> Iterator[tuple[Feed, ReadFile]]:
        """Read small files, several in a call."""
        groups = list(_groups(feeds))
        works = (_Work(files=tuple(group)) for group in groups)
        for group, found in zip(groups, self._cluster.map(self._task, works)):
            for feed, read in zip(group, found):
                # another machine may not have the file
                failed = read.error and not isinstance(self._cluster, PlainLoop)
                yield feed, self._task(_Work(files=(feed,)))[0] if failed else read

    def _parts(self, feed: Feed) -> Iterator[tuple[Feed, ReadFile]]:
        """Read a file with many documents here, and have those that are new chunked."""
        end = ReadFile()
        known = self._known(feed)

        def new(passages: Iterator[Passage]) -> Iterator[Passage]:
            for each in passages:
                if known.get(each.document.iri) == each.document.digest:
                    end.unchanged.append(each.document.iri)
                else:
                    yield each

        def works() -> Iterator[_Work]:
            passages = new(feed.passages(lambda name, reason: end.skipped.append((name, reason))))
            try:
                while batch := tuple(islice(passages, DOCUMENTS_AT_ONCE)):
                    yield _Work(passages=batch)
            except DocumentError as error:
                end.error = error.reason

        for found in self._cluster.map(self._task, works()):
            for read in found:
                yield feed, read
        yield feed, end


def _groups(feeds: Iterable[FileFeed]) -> Iterator[list[FileFeed]]:
    group: list[FileFeed] = []
    size = 0
    for feed in feeds:
        group.append(feed)
        size += feed.source.size
        if len(group) >= FILES_AT_ONCE or size >= BYTES_AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group
