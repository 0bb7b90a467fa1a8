"""What prompts show, numbered, and the check of what replies cite of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.corpus.records import ChunkRecord
from kgqa.llm.replies.answers import CitedAnswer
from kgqa.llm.replies.quoted_answers import QuotedAnswer
from kgqa.model import Citation, Literal, Named, QuoteEvidence, Span
from kgqa.rank.lexical import bm25
from kgqa.text.quotes import find_name, find_quote, stand_in_quotes
from kgqa.text.words import clean, normalise

UNVERIFIED = "Quotes that were not found in the passages: {} of {}."
LIKELY = "The passages do not prove this answer; it is the one that fits best."
LOOKED_UP = "The answer cites no result; it was looked up in what the session has shown."
_Quoted = tuple[QuoteEvidence, str, tuple[str, int, int] | None]
MAX_TITLE_CHARS = 200
"""Longest title in a prompt, where titles stand before the fence of their passage."""
MAX_SOURCE_CHARS = 400
"""Longest words of a document that stand for a fact as its quote."""
MAX_QUOTE_CHARS = 600
"""Longest text of a result that stands for its quote if none was found."""


class Exhibit(Protocol):
    """A text that a prompt shows; a `Piece` is one.

    `spans`: the places of documents that it comes from; empty if it is not of the corpus.
    """

    @property
    def iri(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def spans(self) -> tuple[Span, ...]: ...


E = TypeVar("E", bound=Exhibit)


@dataclass(frozen=True)
class CheckedReply(Generic[E]):
    """What a language model answered, after the check of what it cites.

    Attributes:
        answers: The short answers; empty if the reply says that there is none.
        response: The answer as a text.
        citations: The claims with what they cite.
        quotes: The quotes that were verified.
        unquoted: Claims without a quote.
        likely: If there are no answers, what may be the answer although it is not proven.
        proven: Whether every claim has a verified quote.
        places: Where each answer stands in the text of a chunk (IRI, begin, end), if that is known of all of them.
        shown: What the prompt showed.
        notes: What the user should know.
    """

    answers: tuple[str, ...] = ()
    response: str = ""
    citations: tuple[Citation, ...] = ()
    quotes: tuple[QuoteEvidence, ...] = ()
    unquoted: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()
    proven: bool = False
    places: tuple[tuple[str, int, int], ...] = ()
    shown: tuple[E, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[Named, ...]:
        """The answers as values."""
        return tuple(Named(Literal(text), "", text) for text in self.answers)

    @property
    def words(self) -> str:
        """The answers as prompts show them; "" if there are none."""
        return "; ".join(self.answers)

    @property
    def verified(self) -> int:
        """The number of verified quotes."""
        return sum(each.verified for each in self.citations)

    @property
    def supported(self) -> bool:
        """Whether there are answers and a verified quote."""
        return bool(self.answers) and self.verified > 0

    @property
    def sound(self) -> bool:
        """Whether there are answers, and every claim has a verified quote."""
        return bool(self.answers) and self.proven

    @property
    def stated(self) -> tuple[str, ...]:
        """The answers that stand in verified quotes."""
        return tuple(each.name for each in self.named if stand_in_quotes([each], self.quotes))

    @property
    def cited(self) -> tuple[E, ...]:
        """What was shown and has a verified quote."""
        verified = {each.piece for each in self.citations if each.verified}
        return tuple(each for each in self.shown if each.iri in verified)

    @property
    def best(self) -> CheckedReply[E]:
        """The reply, with what it calls likely as its answers if it has none."""
        return self if self.answers or not self.likely else replace(self, answers=self.likely, likely=())


class Exhibits(Generic[E]):
    """What a prompt or a session shows, numbered from 1 in the order in which it was added.

    Args:
        corpus: The corpus with whose texts quotes are compared.
        shown: What is shown.
    """

    def __init__(self, corpus: Corpus, shown: Iterable[E] = ()) -> None:
        self.corpus = corpus
        self._shown: list[E] = []
        self._numbers: dict[str, int] = {}
        for each in shown:
            self.add(each)

    def __iter__(self) -> Iterator[E]:
        return iter(self._shown)

    def __len__(self) -> int:
        return len(self._shown)

    @property
    def passages(self) -> list[E]:
        """The chunks."""
        return [each for each in self if each.kind == "chunk"]

    @property
    def facts(self) -> list[E]:
        """What is not a chunk."""
        return [each for each in self if each.kind != "chunk"]

    def add(self, exhibit: E) -> int:
        """Add a text, and return its number."""
        self._shown.append(exhibit)
        self._numbers.setdefault(exhibit.iri, len(self._shown))
        return len(self._shown)

    def get(self, number: int) -> E | None:
        """Return what has a number; None if nothing has."""
        return self._shown[number - 1] if 0 < number <= len(self._shown) else None

    def number(self, iri: str) -> int:
        """Return the first number of an IRI; 0 if it was not shown."""
        return self._numbers.get(iri, 0)

    def places(self, shown: Exhibit) -> Iterator[tuple[Span, ChunkRecord]]:
        """Yield the places that a text comes from, with their chunks, if the corpus contains these."""
        for span in shown.spans:
            chunk = self.corpus.chunk(span.chunk) if span.chunk else None
            if chunk is not None:
                yield span, chunk

    def check(self, read: QuotedAnswer | None) -> CheckedReply[E]:
        """Compare the quotes of a reply with the chunks that the corpus contains now.

        A quote that stands in another shown text than the one that was named is cited from there, in the spelling and
        with the blanks of the chunk. A fact may be cited by its words; those of the document stand for them.

        Args:
            read: The reply; None if it could not be read, which is a reply without answers.
        """
        read = read or QuotedAnswer(())
        citations: list[Citation] = []
        quotes: dict[Span, QuoteEvidence] = {}
        for support in read.supports:
            named = self._shown[support.passage]
            wanted = self._source(support.quote, named)
            found = next(filter(None, (self._place(wanted, each) for each in (named, *self._shown))), None)
            iri, span, quote = found or (named.iri, None, wanted)
            citations.append(Citation(support.claim, iri, span, quote, span is not None))
            if span is not None:
                quotes.setdefault(span, QuoteEvidence(span, quote, True))
        wrong = sum(not each.verified for each in citations)
        return CheckedReply(
            read.answers,
            read.response,
            tuple(citations),
            tuple(quotes.values()),
            read.unquoted,
            read.likely,
            proven=bool(citations) and not wrong and not read.unquoted,
            shown=tuple(self),
            notes=(UNVERIFIED.format(wrong, len(citations)),) if wrong else (),
        )

    def _source(self, quote: str, shown: E) -> str:
        """Return the words of the document from which a fact was read, if a quote consists of words of the fact."""
        words, given = f" {normalise(shown.text)} ", f" {normalise(quote)} "
        if shown.kind == "chunk" or not given.strip() or not (given in words or words in given):
            return quote
        for span, chunk in self.places(shown):
            if find_quote(chunk.text, quote):
                return quote
            if 0 < span.end - span.begin <= MAX_SOURCE_CHARS:
                return chunk.text[span.begin : span.end]
        return quote

    def _place(self, quote: str, shown: E) -> tuple[str, Span, str] | None:
        """Return where a quote stands in the chunks of a text, and its words there; None if in none."""
        for _, chunk in self.places(shown):
            if place := find_quote(chunk.text, quote):
                return shown.iri, self._span(chunk, *place), clean(chunk.text[slice(*place)])
        return None

    def _span(self, chunk: ChunkRecord, begin: int, end: int) -> Span:
        record = self.corpus.reader.document(chunk.document)
        return Span(chunk.document, chunk.iri, begin, end, record.source if record else "")

    def look_up(self, cited: Sequence[CitedAnswer], question: str, live: Collection[str]) -> CheckedReply[E]:
        """Find short answers in what they cite; one that cites nothing, in the first text that contains it.

        Args:
            cited: The answers.
            question: The question; of a chunk without the answer, the sentence closest to it is quoted.
            live: The IRIs of what may be quoted.
        """
        citations: dict[Citation, None] = {}
        quotes: dict[QuoteEvidence, None] = {}
        names, places, proven, notes = [], [], True, []
        for each in cited:
            named = [shown for number in each.numbers if (shown := self.get(number)) is not None]
            results = named or [shown for shown in self if shown.iri in live and find_name(shown.text, each.name)][:1]
            found = [self._quoted(shown, each.name, question) if shown.iri in live else None for shown in results]
            for shown, quoted in zip(results, found):
                words = quoted[0].words if quoted else shown.text[:MAX_QUOTE_CHARS]
                citations[Citation(each.name, shown.iri, quoted and quoted[0].span, words, quoted is not None)] = None
                quotes |= {quoted[0]: None} if quoted else {}
            stated = next((quoted for quoted in found if quoted and quoted[2]), None)
            names.append(stated[1] if stated else each.name)
            places += [stated[2]] if stated and stated[2] else []
            notes += [LOOKED_UP] if stated and not named else []
            proven = proven and (stated is not None or (bool(found) and None not in found))
        return CheckedReply(
            tuple(dict.fromkeys(names)),
            citations=tuple(citations),
            quotes=tuple(quotes),
            proven=proven,
            places=tuple(places) if len(places) == len(cited) else (),
            shown=tuple(self),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _quoted(self, shown: E, name: str, question: str) -> _Quoted | None:
        """Return the words of a chunk that a text shows around a name, the name there, and its place.

        If no chunk contains the name, the first one's sentence that is closest to a question; None without words.
        """
        found: list[tuple[QuoteEvidence, str, None]] = []
        for span, chunk in self.places(shown):
            part = find_quote(chunk.text, shown.text) if shown.kind == "hyperedge" else None
            begin, end = part or (max(0, span.begin), min(len(chunk.text), span.end))
            place = find_name(chunk.text, name, begin, end)
            first, last = _sentence(chunk.text, begin, end, place, question)
            if words := clean(chunk.text[first:last]):
                quote = QuoteEvidence(self._span(chunk, first, last), words, True)
                if place is not None:
                    return quote, chunk.text[slice(*place)], (chunk.iri, *place)
                found.append((quote, "", None))
        return found[0] if found else None


def _sentence(text: str, begin: int, end: int, place: tuple[int, int] | None, question: str) -> tuple[int, int]:
    """Return the sentences around a place, or the sentence that is closest to a question."""
    part = [(first + begin, last + begin) for first, last in sentence_spans(text[begin:end])]
    if place is not None:
        around = [each for each in part if each[0] < place[1] and place[0] < each[1]] or [place]
        return around[0][0], around[-1][1]
    if not part:
        return begin, begin
    scores = bm25(question, [text[first:last] for first, last in part]).tolist()
    return part[max(range(len(part)), key=lambda at: (scores[at], -at))]


def shown_passages(pieces: Iterable[Exhibit], corpus: Corpus) -> list[dict[str, Any]]:
    """Return chunks as values of a prompt: the title of each one's document, and its sentences, nothing left out.

    A first line that is the title is shown as the title only; a title of more than `MAX_TITLE_CHARS` is cut.
    """
    return [_passage(piece, corpus) for piece in pieces]


def title_of(piece: Exhibit, corpus: Corpus) -> str:
    """Return the title of the document from which a text comes; "" if it has none."""
    record = corpus.reader.document(piece.spans[0].document) if piece.spans else None
    return record.title.strip() if record else ""


def _passage(piece: Exhibit, corpus: Corpus) -> dict[str, Any]:
    title = title_of(piece, corpus)
    first, _, rest = piece.text.partition("\n")
    text = rest if title and rest.strip() and first.strip() == title else piece.text
    if len(title) > MAX_TITLE_CHARS:
        title = f"{title[: MAX_TITLE_CHARS - 1]}…"
    title = title.replace('"', "'")  # prompts put it in double quotes, which it must not end
    return {"title": title, "sentences": [text[begin:end] for begin, end in sentence_spans(text)]}
