"""Asks an extractor about chunks, and keeps each result as soon as it arrives, so that no chunk is paid for twice.

A result is kept under the hash of what the extractor reads, with positions relative to the chunk. It is found again if
the text has moved within its document, or stands in another document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kgqa.corpus.extraction.requests import ExtractionRequest, Extractor
from kgqa.corpus.extraction.results import ChunkResult, failed, result_from, result_text
from kgqa.corpus.items import Addition, ChunkItem, digest

GROUP = 64
"""How many chunks an extractor gets at a time."""
_ANYWHERE = ""


class Replies(Protocol):
    """Where results are kept, by the hash of a text and the key of an extractor."""

    def replies(self, digests: Sequence[str], key: str) -> dict[str, str]:
        """Return the results that are known, by hash."""
        ...

    def put_reply(self, text_digest: str, key: str, result: str) -> None:
        """Keep a result; it is on disk when the method returns."""
        ...


@dataclass
class CostLimit:
    """A limit on the cost of model calls.

    Attributes:
        limit: The most that calls may cost, in USD; None for no limit.
        spent: Returns what was spent.
        price: Returns the most that the calls for some requests may cost.
    """

    limit: float | None
    spent: Callable[[], float]
    price: Callable[[Sequence[ExtractionRequest]], float]

    def allowed(self, requests: Sequence[ExtractionRequest]) -> int:
        """Return how many of the requests, from the first, can be asked within the limit."""
        if self.limit is None:
            return len(requests)
        left = self.limit - self.spent()
        if self.price(requests) <= left:
            return len(requests)
        number = 0
        while number < len(requests) and (left := left - self.price(requests[number : number + 1])) >= 0:
            number += 1
        return number


class Extraction:
    """The results of an extractor for chunks: known ones, and new ones.

    Attributes:
        extracted: Number of chunks that the extractor was given.
        reused: Number of chunks whose result was known.
        exhausted: Whether the limit on costs was reached.
    """

    def __init__(self, extractor: Extractor, replies: Replies, limit: CostLimit | None = None) -> None:
        self._extractor = extractor
        self._replies = replies
        self._limit = limit
        self._failures: dict[str, str] = {}
        self.extracted = 0
        self.reused = 0
        self.exhausted = False

    def ask(self, requests: Sequence[ExtractionRequest]) -> Iterator[int]:
        """Ask about the chunks whose result is not known; yield the number of results after each of them."""
        by_digest: dict[str, ExtractionRequest] = {request_digest(each): each for each in requests}
        known = self._replies.replies(list(by_digest), self._extractor.key)
        self.reused += sum(request_digest(each) in known for each in requests)
        missing = [(name, each) for name, each in by_digest.items() if name not in known]
        yield len(requests) - len(missing)
        while missing and not self.exhausted:
            group = [each for _, each in missing[:GROUP]]
            number = len(group) if self._limit is None else self._limit.allowed(group)
            self.exhausted = number < len(group)
            names = {each.chunk.chunk: name for name, each in missing[:number]}
            chunks = {each.chunk.chunk: each.chunk for each in group}
            missing = missing[number:]
            for result in self._extractor.extract(group[:number]) if number else ():
                self.extracted += 1
                name = names[result.chunk]
                if result.status == "done":
                    kept = relative(result, chunks[result.chunk])
                    self._replies.put_reply(name, self._extractor.key, result_text(kept))
                else:
                    self._failures[name] = result.reason
                yield 1

    def results(self, requests: Sequence[ExtractionRequest]) -> list[ChunkResult]:
        """Return the results for chunks; those that are not known are failures, with the reason."""
        names = [request_digest(each) for each in requests]
        known = self._replies.replies(names, self._extractor.key)
        return [
            placed(result_from(known[name]), request.chunk)
            if name in known
            else failed(request.chunk.chunk, self._failures.get(name, ""))
            for name, request in zip(names, requests)
        ]


def request_digest(request: ExtractionRequest) -> str:
    """Return a hash of what an extractor reads: the title of the document, the text of the chunk, its images."""
    images = [digest(each.caption, each.data.hex()) for each in request.images]
    return digest(request.document.title, request.chunk.text, *images, length=32)


def relative(result: ChunkResult, chunk: ChunkItem) -> ChunkResult:
    """Return a result whose positions count from the chunk, and that names no document and no chunk."""
    additions = tuple(replace(_moved(each, -chunk.begin), document="", chunk="") for each in result.additions)
    return replace(result, chunk=_ANYWHERE, additions=additions)


def placed(result: ChunkResult, chunk: ChunkItem) -> ChunkResult:
    """Return the result of `relative` for a chunk, with positions in its document."""
    additions = tuple(
        replace(_moved(each, chunk.begin), document=chunk.document, chunk=chunk.chunk) for each in result.additions
    )
    return replace(result, chunk=chunk.chunk, additions=additions)


def _moved(addition: Addition, offset: int) -> Addition:
    if not addition.end:  # the position is unknown
        return addition
    return replace(addition, begin=addition.begin + offset, end=addition.end + offset)
