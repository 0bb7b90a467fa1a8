"""Asks an extractor about chunks, and keeps each result as soon as it arrives, so that no chunk is paid for twice.

A result is kept under the hash of what the extractor reads, with positions relative to the chunk. It is found again if
the text has moved within its document, or stands in another document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kgqa.corpus.extraction.requests import ExtractionRequest, Extractor
from kgqa.corpus.extraction.results import ChunkResult, failed, result_from, result_text
from kgqa.corpus.items import Addition, ChunkItem, digest
from kgqa.corpus.storage.build_tables import BuildTables

_ANYWHERE = ""


class Extraction:
    """The results of an extractor for chunks: known ones, and new ones.

    Args:
        extractor: The extractor.
        known: Where results are kept, by the key of the extractor and the hash of what it reads.

    Attributes:
        extracted: Number of chunks that the extractor was given.
        reused: Number of chunks whose result was known.
    """

    def __init__(self, extractor: Extractor, known: BuildTables) -> None:
        self._extractor = extractor
        self._known = known
        self._failed: dict[str, ChunkResult] = {}
        self.extracted = 0
        self.reused = 0

    def ask(self, batches: Iterable[Sequence[ExtractionRequest]]) -> Iterator[int]:
        """Ask about the chunks whose result is not known. Yield the number of results that there are, as they arrive.

        Args:
            batches: The chunks. They are taken as the extractor needs them, so it always has enough to do.
        """
        asked: dict[str, tuple[str, ChunkItem]] = {}
        for result in self._extractor.extract(self._missing(batches, asked)):
            self.extracted += 1
            name, chunk = asked.pop(result.chunk)
            kept = relative(result, chunk)
            if result.status == "done":
                self._known.put_replies(self._extractor.key, {name: result_text(kept)})
            else:
                self._failed[name] = kept
            yield self.extracted + self.reused

    def _missing(
        self, batches: Iterable[Sequence[ExtractionRequest]], asked: dict[str, tuple[str, ChunkItem]]
    ) -> Iterator[ExtractionRequest]:
        seen: set[str] = set()
        for requests in batches:
            names = {each.chunk.chunk: request_digest(each) for each in requests}
            known = self._known.replies(self._extractor.key, set(names.values()))
            for each in requests:
                name = names[each.chunk.chunk]
                if name in known or name in seen:
                    self.reused += 1
                else:
                    seen.add(name)
                    asked[each.chunk.chunk] = (name, each.chunk)
                    yield each

    def results(self, requests: Sequence[ExtractionRequest]) -> list[ChunkResult]:
        """Return the results for chunks. One that is not known is a failure."""
        names = [request_digest(each) for each in requests]
        known = self._known.replies(self._extractor.key, set(names))
        return [
            placed(result_from(known[name]) if name in known else self._failed.get(name, _MISSING), request.chunk)
            for name, request in zip(names, requests)
        ]


_MISSING = failed(_ANYWHERE, "the file was changed while it was read")


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
