"""From passages to what is written: the items of each document, and what was left out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kgqa.corpus.building.extracting import Extraction
from kgqa.corpus.building.feeds import Feed, Passage
from kgqa.corpus.building.ledger import DocumentEntry, Problem, ProblemKind
from kgqa.corpus.documents.chunks import ChunkSize, CountTokens, split_documents
from kgqa.corpus.extraction.requests import ExtractionRequest, Extractor, extraction_requests
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.items import Addition, ChunkItem, DocumentItem
from kgqa.trace import EXHAUSTED

DOCUMENTS_AT_ONCE = 200
"""How many documents are in memory at a time."""


@dataclass(frozen=True, slots=True)
class DerivedDocument:
    """A document and everything that is written about it. `entry.edit` is filled in when it is written."""

    entry: DocumentEntry
    text: str
    additions: tuple[Addition, ...]
    problems: tuple[Problem, ...] = ()


@dataclass
class DocumentSteps:
    """The steps from a feed to derived documents.

    Attributes:
        size: The size of chunks.
        count_tokens: Counts tokens, if chunks are measured in tokens.
        extractor: Finds facts; None for none.
        extraction: The kept results of an extractor that asks a model; None for an extractor that is asked at once.
        key: Hash of what results depend on, beside the documents.
        report: Called with the name of something that is left out of a feed, and the reason.
    """

    size: ChunkSize
    count_tokens: CountTokens | None
    extractor: Extractor | None
    extraction: Extraction | None
    key: str
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def requests(self, feed: Feed) -> Iterator[list[ExtractionRequest]]:
        """Yield requests for the chunks of a feed, those of some documents at a time; none if results come with it."""
        for passages, chunks in self._batches(feed):
            yield [
                request
                for passage, of_document in zip(passages, chunks)
                if passage.result is None
                for request in extraction_requests(passage.document, of_document)
            ]

    def derive(self, feed: Feed) -> Iterator[DerivedDocument]:
        """Yield the documents of a feed with everything that is written about them.

        Raises:
            DocumentError: The rest of the feed cannot be read.
        """
        for passages, chunks in self._batches(feed):
            asked = [
                extraction_requests(passage.document, of_document) if passage.result is None else []
                for passage, of_document in zip(passages, chunks)
            ]
            results = self._results([request for each in asked for request in each])
            for passage, of_document, requests in zip(passages, chunks, asked):
                own = [results[each.chunk.chunk] for each in requests if each.chunk.chunk in results]
                own += [passage.result] if passage.result is not None else []
                yield _derived(feed, passage, of_document, own, self.key)

    def _batches(self, feed: Feed) -> Iterator[tuple[list[Passage], list[list[ChunkItem]]]]:
        """Yield passages and the chunks of each."""
        rest = feed.passages(lambda name, reason: self.skipped.append((name, reason)))
        while batch := list(islice(rest, DOCUMENTS_AT_ONCE)):
            split = split_documents(
                [each.document for each in batch if each.chunk is None], self.size, count_tokens=self.count_tokens
            )
            yield batch, [next(split) if each.chunk is None else [each.chunk] for each in batch]

    def _results(self, requests: Sequence[ExtractionRequest]) -> dict[str, ChunkResult]:
        if self.extractor is None or not requests:
            return {}
        if self.extraction is not None:
            found = self.extraction.results(requests)
        else:
            found = list(self.extractor.extract(requests))
        return {each.chunk: each for each in found}


def _derived(
    feed: Feed, passage: Passage, chunks: Sequence[ChunkItem], results: Sequence[ChunkResult], key: str
) -> DerivedDocument:
    document = passage.document
    iri = document.iri
    item = DocumentItem(document.source, document.title, document.media_type, document.digest)
    additions = [Addition(item, iri)]
    additions += [Addition(chunk, iri, chunk.chunk, chunk.begin, chunk.end) for chunk in chunks]
    numbers = {chunk.chunk: number for number, chunk in enumerate(chunks, 1)}
    problems = [Problem("malformed", feed.name, place, reason) for place, reason in passage.malformed]
    for result in results:
        place = f"{document.source}, chunk {numbers.get(result.chunk, 0)} of {len(chunks)}"
        additions += result.additions
        if result.status == "failed":
            kind: ProblemKind = "waiting" if result.reason.startswith(EXHAUSTED) else "failed"
            problems.append(Problem(kind, feed.name, place, result.reason, result.chunk))
        if not passage.malformed:
            problems += [Problem("rejected", feed.name, place, each, result.chunk) for each in result.rejected]
    entry = DocumentEntry(iri, document.source, feed.name, document.digest, key, "", len(chunks))
    return DerivedDocument(entry, document.text, tuple(dict.fromkeys(additions)), tuple(problems))
