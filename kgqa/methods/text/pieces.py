"""Pieces of a corpus in prompts, and the quotes from them: passages with numbered sentences, quotes checked in code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.corpus.rdf.vocabulary import STATEMENT_VOCABULARY
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.quoted_answers import QuotedAnswer, Support
from kgqa.methods.grounding import with_evidence_query
from kgqa.model import Answer, Citation, Evidence, Grounding, Literal, Named, Piece, QuoteEvidence, Span
from kgqa.text.quotes import find_quote, stand_in_quotes
from kgqa.text.words import clean

UNQUOTED = "No verified quote contains the answer; the language model may have it from elsewhere."
INFERRED = "The answer does not stand in a quote; it follows from claims that are all quoted."
UNVERIFIED = "Quotes that were not found in the passages: {} of {}."
LIKELY = "The passages do not prove this answer; it is the one that fits best."
MAX_TITLE_CHARS = 200
"""Longest title in a prompt, where titles stand before the fence of their passage."""
COMPUTED = re.compile(r"(?:yes|no|true|false|[-+]?\d[\d.,]*\s?%?)\.?", re.IGNORECASE)
"""Answers that a model may infer from quotes: yes or no, a number."""


def shown_passages(pieces: Sequence[Piece], corpus: Corpus) -> list[dict[str, Any]]:
    """Return pieces as values of a prompt: the title of each one's document, and its sentences, nothing left out.

    A first line that is the title is shown as the title only; a title of more than `MAX_TITLE_CHARS` is cut.
    """
    return [_passage(piece, corpus) for piece in pieces]


def _passage(piece: Piece, corpus: Corpus) -> dict[str, Any]:
    record = corpus.reader.document(piece.spans[0].document) if piece.spans else None
    title = record.title.strip() if record else ""
    first, _, rest = piece.text.partition("\n")
    text = rest if title and rest.strip() and first.strip() == title else piece.text
    if len(title) > MAX_TITLE_CHARS:
        title = f"{title[: MAX_TITLE_CHARS - 1]}…"
    title = title.replace('"', "'")  # prompts put it in double quotes, which it must not end
    return {"title": title, "sentences": [text[begin:end] for begin, end in sentence_spans(text)]}


@dataclass(frozen=True, slots=True)
class Quotes:
    """The quotes of a reply after the check. `notes`: what the user should know."""

    citations: tuple[Citation, ...] = ()
    evidence: tuple[QuoteEvidence, ...] = ()
    notes: tuple[str, ...] = ()


def check_quotes(supports: Sequence[Support], pieces: Sequence[Piece], corpus: Corpus) -> Quotes:
    """Compare quotes with the chunks that the corpus contains now.

    A quote that stands in another shown passage than the one that was named is cited from there, in the spelling and
    with the blanks of the text.

    Args:
        supports: The claims and quotes; `passage` is a position in `pieces`.
        pieces: The passages that were shown.
        corpus: The corpus.
    """
    citations: list[Citation] = []
    evidence: dict[Span, QuoteEvidence] = {}
    for support in supports:
        named = pieces[support.passage]
        found = next(filter(None, (_found(support.quote, each, corpus) for each in (named, *pieces))), None)
        piece, span, quote = found or (named, None, support.quote)
        citations.append(Citation(support.claim, piece.iri, span, quote, span is not None))
        if span is not None:
            evidence.setdefault(span, QuoteEvidence(span, quote, True))
    wrong = sum(not each.verified for each in citations)
    notes = (UNVERIFIED.format(wrong, len(citations)),) if wrong else ()
    return Quotes(tuple(citations), tuple(evidence.values()), notes)


def _found(quote: str, piece: Piece, corpus: Corpus) -> tuple[Piece, Span, str] | None:
    """Return where a quote stands in a piece, and its words there; None if it does not, or the chunk is gone."""
    for span in piece.spans:
        chunk = corpus.chunk(span.chunk) if span.chunk else None
        if chunk is not None and (place := find_quote(chunk.text, quote)):
            record = corpus.reader.document(chunk.document)
            quoted = Span(chunk.document, chunk.iri, *place, source=record.source if record else "")
            return piece, quoted, clean(chunk.text[slice(*place)])
    return None


def quoted_answer(empty: Answer, read: QuotedAnswer, quotes: Quotes, more: Sequence[Evidence] = ()) -> Answer:
    """Build an answer from a reply and its checked quotes.

    Args:
        empty: An answer without results, which provides the question and the method.
        read: The reply.
        quotes: Its quotes.
        more: Further evidence.
    """
    answers = tuple(Named(Literal(text), "", text) for text in read.answers)
    grounding, notes = _grounding(answers, quotes, all_quoted=not read.unquoted)
    return replace(
        empty,
        status="answered" if answers else "no_answer",
        reason="" if answers else "The passages that were found do not contain the answer.",
        answers=answers,
        response=read.response,
        citations=quotes.citations,
        evidence=(*more, *quotes.evidence),
        grounding=grounding if answers else "none",
        notes=(*empty.notes, *quotes.notes, *(notes if answers else ())),
    )


def with_likely(read: QuotedAnswer) -> QuotedAnswer:
    """Return a reply without answers with what it calls likely as its answers; other replies unchanged."""
    return read if read.answers else replace(read, answers=read.likely, likely=())


def _grounding(answers: Sequence[Named], quotes: Quotes, *, all_quoted: bool) -> tuple[Grounding, tuple[str, ...]]:
    if stand_in_quotes(answers, quotes.evidence):
        return "text", ()
    left = [each for each in answers if not stand_in_quotes([each], quotes.evidence)]
    verified = all_quoted and bool(quotes.citations) and all(each.verified for each in quotes.citations)
    if verified and all(COMPUTED.fullmatch(each.name.strip()) for each in left):
        return "text", (INFERRED,)
    return "model", (UNQUOTED,)


def with_quote_query(answer: Answer, graph: KnowledgeGraph, corpus: Corpus) -> Answer:
    """Add the query that returns the statements and chunks in the evidence, if the graph is that of the corpus.

    Raises:
        StoreError: The graph failed.
    """
    iris = [iri for name in ("statements", "text") for iri in corpus.views.get(name, ())]
    if not iris or not answer.evidence:
        return answer
    return with_evidence_query(graph.view_of(*iris), answer, STATEMENT_VOCABULARY)
