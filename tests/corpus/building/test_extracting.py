"""Results of extraction are kept as they arrive, and found again wherever the same text stands."""

from __future__ import annotations

import pytest

from kgqa.corpus.building.extracting import Extraction
from kgqa.corpus.documents.document import Document
from kgqa.corpus.extraction.requests import ExtractionRequest
from kgqa.corpus.extraction.results import ChunkResult, failed
from kgqa.corpus.items import Addition, ChunkItem, Party, StatementItem
from kgqa.corpus.storage.database import Database

FACT = "Ann knows Bob."


class FakeExtractor:
    """Finds `Ann knows Bob.`; fails for texts with `bad`, and ends after `most` texts like a killed process."""

    name, key, needs_model = "fake", "k1", True

    def __init__(self, most: int = 100) -> None:
        self.asked: list[str] = []
        self._most = most

    def extract(self, requests):
        for request in requests:
            if len(self.asked) == self._most:
                raise KeyboardInterrupt
            chunk = request.chunk
            self.asked.append(chunk.text)
            if "bad" in chunk.text:
                yield failed(chunk.chunk, "it is bad")
                continue
            begin = chunk.begin + chunk.text.index(FACT)
            item = StatementItem(Party("Ann"), "knows", Party("Bob"))
            places = [(begin, begin + len(FACT)), (0, 0)]
            additions = tuple(Addition(item, chunk.document, chunk.chunk, *place) for place in places)
            yield ChunkResult(chunk.chunk, additions)


def request(text: str, *, source: str = "a.txt", begin: int = 0) -> ExtractionRequest:
    document = Document(source, "A title", "text/plain", "d", " " * begin + text)
    return ExtractionRequest(document, ChunkItem(document.iri, begin, begin + len(text), text))


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "corpus.sqlite", writable=True) as opened:
        yield opened


def test_results_follow_their_text(database):
    extractor = FakeExtractor()
    extraction = Extraction(extractor, database.build)
    first, moved = request(f"1 {FACT}"), request(f"1 {FACT}", source="b.txt", begin=7)
    assert list(extraction.ask([[first]])) == [1]
    assert not list(extraction.ask([[moved], [first]])) and (extraction.extracted, extraction.reused) == (1, 2)
    (result,) = extraction.results([moved])
    known, unknown = result.additions
    assert (known.document, known.chunk, result.chunk) == (moved.document.iri, moved.chunk.chunk, moved.chunk.chunk)
    assert moved.document.text[known.begin : known.end] == FACT and (unknown.begin, unknown.end) == (0, 0)
    # another extractor, or another title, is asked again
    extractor.key = "k2"
    assert list(extraction.ask([[first]])) and len(extractor.asked) == 2


def test_interruption_and_failure(database):
    requests = [[request(f"{number} {FACT}") for number in range(3)], [request("bad"), request(f"3 {FACT}")]]
    extraction = Extraction(FakeExtractor(most=2), database.build)
    with pytest.raises(KeyboardInterrupt):
        list(extraction.ask(requests))
    extractor = FakeExtractor()
    extraction = Extraction(extractor, database.build)
    assert list(extraction.ask(requests))[-1] == 5
    assert extractor.asked == [f"2 {FACT}", "bad", f"3 {FACT}"]
    results = extraction.results([each for batch in requests for each in batch])
    assert [each.status for each in results] == ["done", "done", "done", "failed", "done"]
    assert results[3].reason == "it is bad"
    # a failure is not kept
    again = FakeExtractor()
    list(Extraction(again, database.build).ask(requests))
    assert again.asked == ["bad"]


def test_equal_texts_are_asked_about_once(database):
    extractor = FakeExtractor()
    extraction = Extraction(extractor, database.build)
    list(extraction.ask([[request(FACT), request(FACT, source="b.txt")], [request(FACT, source="c.txt")]]))
    assert extractor.asked == [FACT] and extraction.reused == 2
