"""From what is read to what is written: the items of each document, and what was left out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgqa.corpus.building.extracting import Extraction
from kgqa.corpus.building.feeds import Feed
from kgqa.corpus.building.plan import key_of
from kgqa.corpus.building.reading import ChunkedDocument, DocumentReader
from kgqa.corpus.extraction.requests import ExtractionRequest, extraction_requests
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.items import Addition, DocumentItem
from kgqa.corpus.storage.ledger import DocumentEntry, Problem, ProblemKind
from kgqa.trace.trace import EXHAUSTED


@dataclass(frozen=True, slots=True)
class DerivedDocument:
    """A document and everything that is written about it. `entry.edit` is filled in when it is written."""

    entry: DocumentEntry
    text: str
    additions: tuple[Addition, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class EndOfFeed:
    """The end of a feed: what was left out of it, and why the rest cannot be read.

    `unchanged`: IRIs of its documents that the corpus has already.
    """

    skipped: tuple[tuple[str, str], ...] = ()
    unchanged: tuple[str, ...] = ()
    error: str = ""


@dataclass
class DocumentSteps:
    """The steps from feeds to what is written.

    Attributes:
        reader: Reads and chunks documents.
        extraction: The results of an extractor that asks a language model; None without one.
        key: Hash of what results depend on, beside the documents.
    """

    reader: DocumentReader
    extraction: Extraction | None
    key: str

    def requests(self, feeds: Sequence[Feed]) -> Iterator[list[ExtractionRequest]]:
        """Yield requests for the chunks about which a language model may be asked, some at a time."""
        for _, read in self.reader.read(feeds):
            yield [request for each in read.documents if each.results is None for request in _requests(each)]

    def derive(self, feeds: Sequence[Feed]) -> Iterator[tuple[Feed, DerivedDocument | EndOfFeed]]:
        """Yield each document of the feeds with everything that is written about it, and the end of each feed."""
        skipped: list[tuple[str, str]] = []
        for feed, read in self.reader.read(feeds):
            asked = [request for each in read.documents if each.results is None for request in _requests(each)]
            known = {each.chunk: each for each in self.extraction.results(asked)} if self.extraction else {}
            for each in read.documents:
                results = each.results
                if results is None:
                    results = [known[chunk.chunk] for chunk in each.chunks if chunk.chunk in known]
                yield feed, _derived(feed, each, results, key_of(feed, self.key))
            skipped += read.skipped
            if read.last:
                yield feed, EndOfFeed(tuple(skipped), tuple(read.unchanged), read.error)
                skipped = []


def _requests(document: ChunkedDocument) -> list[ExtractionRequest]:
    return extraction_requests(document.document, document.chunks)


def _derived(feed: Feed, read: ChunkedDocument, results: Sequence[ChunkResult], key: str) -> DerivedDocument:
    document, chunks = read.document, read.chunks
    iri = document.iri
    item = DocumentItem(document.source, document.title, document.media_type, document.digest)
    additions = [Addition(item, iri)]
    additions += [Addition(chunk, iri, chunk.chunk, chunk.begin, chunk.end) for chunk in chunks]
    numbers = {chunk.chunk: number for number, chunk in enumerate(chunks, 1)}
    problems = [Problem("malformed", feed.name, place, reason, iri) for place, reason in read.malformed]
    for result in results:
        place = f"{document.source}, chunk {numbers.get(result.chunk, 0)} of {len(chunks)}"
        additions += result.additions
        if result.status == "failed":
            kind: ProblemKind = "waiting" if result.reason.startswith(EXHAUSTED) else "failed"
            problems.append(Problem(kind, feed.name, place, result.reason, iri))
        if not read.malformed:
            problems += [Problem("rejected", feed.name, place, each, iri) for each in result.rejected]
    entry = DocumentEntry(iri, document.source, feed.name, document.digest, key, "", len(chunks))
    return DerivedDocument(entry, document.text, tuple(dict.fromkeys(additions)), tuple(problems))
