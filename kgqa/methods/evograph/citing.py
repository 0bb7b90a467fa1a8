"""Where the answers of a session stand in the segments that they cite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.llm.replies.cited_answers import CitedAnswer
from kgqa.methods.evograph.results import Result, ShownResults
from kgqa.model import Citation, Span
from kgqa.rank.lexical import bm25
from kgqa.text.quotes import find_name, find_quote
from kgqa.text.words import clean

MAX_QUOTE_CHARS = 600


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words of a chunk that a result shows.

    Attributes:
        result: The result.
        span: The words, in the text of the chunk.
        words: The words as one line.
        name: Where the answer stands in the text of the chunk; None if it does not.
        text: The answer as it stands there.
    """

    result: Result
    span: Span
    words: str
    name: tuple[int, int] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class CitedPlaces:
    """An answer, the results that it cites, and where these stand in the corpus.

    `looked_up`: whether the answer cites nothing, and all results were searched for it.
    """

    name: str
    results: tuple[Result, ...]
    quotes: tuple[Quoted, ...]
    looked_up: bool = False

    @property
    def stated(self) -> Quoted | None:
        """The first quote that contains the answer."""
        return next((each for each in self.quotes if each.name is not None), None)

    @property
    def verified(self) -> bool:
        """Whether all that is cited stands in the corpus."""
        return bool(self.quotes) and len(self.quotes) == len(self.results)

    @property
    def citations(self) -> Iterator[Citation]:
        """A citation for each result."""
        quoted = {each.result.iri: each for each in self.quotes}
        for result in self.results:
            if found := quoted.get(result.iri):
                yield Citation(self.name, result.iri, found.span, found.words, True)
            else:
                yield Citation(self.name, result.iri, None, result.text[:MAX_QUOTE_CHARS], False)


def cited_places(
    cited: CitedAnswer, shown: ShownResults, live: Sequence[str], corpus: Corpus, question: str
) -> CitedPlaces:
    """Find an answer in the results that it cites; if it cites none, in the first result that contains it.

    Args:
        cited: The answer.
        shown: What the session has shown.
        live: The IRIs of pieces that the corpus contains and the question did not remove.
        corpus: The corpus.
        question: The question; of a chunk that does not contain the answer, the sentence closest to it is quoted.
    """
    results = [result for number in cited.numbers if (result := shown.get(number)) is not None]
    looked_up = not results
    if looked_up:
        containing = (result for result in shown if find_name(result.text, cited.name))
        results = [result for result in containing if result.iri in live][:1]
    quotes = (_quoted(result, cited.name, corpus, question) for result in results if result.iri in live)
    return CitedPlaces(cited.name, tuple(results), tuple(filter(None, quotes)), looked_up)


def _quoted(result: Result, name: str, corpus: Corpus, question: str) -> Quoted | None:
    """Return the words of a chunk that a result shows, around the answer if it contains it."""
    fallback: Quoted | None = None
    for span in result.piece.spans if result.piece else ():
        chunk = corpus.chunk(span.chunk) if span.chunk else None
        if chunk is None:
            continue
        record = corpus.reader.document(chunk.document)
        source = record.source if record else ""
        begin, end = _part(result, span, chunk.text)
        place = find_name(chunk.text, name, begin, end)
        first, last = _sentence(chunk.text, begin, end, place, question)
        words = clean(chunk.text[first:last])
        if not words:
            continue
        text = "" if place is None else chunk.text[slice(*place)]
        quoted = Quoted(result, Span(chunk.document, chunk.iri, first, last, source), words, place, text)
        if place is not None:
            return quoted
        fallback = fallback or quoted
    return fallback


def _part(result: Result, span: Span, text: str) -> tuple[int, int]:
    """Return the part of a chunk that states a result: its own words, or else the place that was noted."""
    if result.kind == "hyperedge" and result.piece is not None and (place := find_quote(text, result.piece.text)):
        return place
    return max(0, span.begin), min(len(text), span.end)


def _sentence(text: str, begin: int, end: int, place: tuple[int, int] | None, question: str) -> tuple[int, int]:
    """Return the sentences around an answer, or the sentence that is closest to the question."""
    part = [(first + begin, last + begin) for first, last in sentence_spans(text[begin:end])]
    if place is not None:
        around = [each for each in part if each[0] < place[1] and place[0] < each[1]] or [place]
        return around[0][0], around[-1][1]
    if not part:
        return begin, begin
    scores = bm25(question, [text[first:last] for first, last in part]).tolist()
    return part[max(range(len(part)), key=lambda at: (scores[at], -at))]
