"""What a prompt of ToG-3 shows of the evidence graph, and the check of quotes against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.llm.replies.quoted_answers import QuotedAnswer, Support
from kgqa.methods.text.pieces import Quotes, check_quotes, shown_passages
from kgqa.methods.text.searching import BYTES_PER_TOKEN, within_tokens
from kgqa.methods.tog3.subgraph import Fact, Subgraph
from kgqa.model import Piece
from kgqa.text.quotes import find_quote
from kgqa.text.words import normalise
from kgqa.trace import LocalFact

MAX_FACTS = 40
"""Most facts in a prompt."""
MAX_STEPS = 12
"""Most claims of earlier answers in a prompt."""
MAX_SOURCE_CHARS = 400
"""Longest words of a document that stand for a fact as its quote."""


@dataclass(frozen=True)
class Shown:
    """The evidence in a prompt.

    Attributes:
        passages: The chunks, numbered from 1.
        facts: The facts; their numbers follow those of the passages.
        summaries: Summaries of communities, without numbers.
        same: Pairs of names that mean the same, without numbers.
    """

    passages: tuple[Piece, ...] = ()
    facts: tuple[Fact, ...] = ()
    summaries: tuple[Piece, ...] = ()
    same: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """The number of passages and facts."""
        return len(self.passages) + len(self.facts)

    def turned(self, vote: int) -> Shown:
        """Return the evidence with the passages in the order of a vote: as they are, reversed, halves exchanged."""
        half = len(self.passages) // 2
        orders = (self.passages, self.passages[::-1], self.passages[half:] + self.passages[:half])
        return replace(self, passages=orders[vote % len(orders)])

    def values(self, corpus: Corpus, asked: Iterable[str] = (), steps: Iterable[str] = ()) -> Mapping[str, Any]:
        """Return the values of the prompt.

        Args:
            corpus: The corpus.
            asked: The sub-questions so far.
            steps: Claims of earlier answers that were verified.
        """
        numbers = {piece.iri: number for number, piece in enumerate(self.passages, 1)}
        return {
            "passages": shown_passages(self.passages, corpus),
            "facts": [fact_line(fact, numbers) for fact in self.facts],
            "same": [f"{first} is also called {second}" for first, second in self.same],
            "summaries": [piece.text for piece in self.summaries],
            "asked": list(asked),
            "steps": list(steps)[-MAX_STEPS:],
        }

    def check(self, read: QuotedAnswer, corpus: Corpus) -> Quotes:
        """Compare the quotes of a reply with the corpus; a fact is cited by the words that it was read from."""
        chunks = corpus.index.pieces("chunk")
        pieces: list[Piece] = list(self.passages)
        for fact in self.facts:
            piece = chunks.get(fact.chunk) if isinstance(fact, LocalFact) else fact
            assert piece is not None
            pieces.append(piece)
        return check_quotes([self._with_source(each, corpus) for each in read.supports], pieces, corpus)

    def _with_source(self, support: Support, corpus: Corpus) -> Support:
        """Return a support whose quote is the shown words of a fact with those of the document as its quote."""
        if support.passage < len(self.passages):
            return support
        fact = self.facts[support.passage - len(self.passages)]
        if not _says(support.quote, fact):
            return support
        if isinstance(fact, LocalFact):
            chunk = corpus.chunk(fact.chunk)
            stands = chunk is not None and find_quote(chunk.text, support.quote)
            return support if stands or not fact.quote else replace(support, quote=fact.quote)
        for span in fact.spans:
            chunk = corpus.chunk(span.chunk)
            if chunk is None:
                continue
            if find_quote(chunk.text, support.quote):
                return support
            if span.end - span.begin <= MAX_SOURCE_CHARS:
                return replace(support, quote=chunk.text[span.begin : span.end])
        return support


def shown_evidence(subgraph: Subgraph, *, tokens: int, passages: bool = True, facts: bool = True) -> Shown:
    """Choose what a prompt shows of an evidence graph: the best passages that fit, and their facts.

    Args:
        subgraph: The evidence graph.
        tokens: About how many tokens all of it may have.
        passages: Whether passages are shown.
        facts: Whether facts are shown.
    """
    local: list[Fact] = list(reversed(subgraph.local)) if facts else []
    # a path of one step says the same as its fact
    stored: list[Fact] = list({normalise(each.text): each for each in reversed(subgraph.facts.values())}.values())
    listed = [*local, *(reversed(stored) if facts else ())][:MAX_FACTS]
    summaries = list(subgraph.summaries.values())
    used = sum(len(fact_line(each, {}).encode()) for each in listed) + sum(len(s.text.encode()) for s in summaries)
    chosen = within_tokens(subgraph.ordered(), tokens - used // BYTES_PER_TOKEN) if passages else []
    return Shown(tuple(chosen), tuple(listed), tuple(summaries), tuple(subgraph.same) if facts else ())


def fact_line(fact: Fact, numbers: Mapping[str, int]) -> str:
    """Return a fact in words, with the number of the passage that it was read from, if that is shown."""
    words = _fact_words(fact)
    chunks = [fact.chunk] if isinstance(fact, LocalFact) else [span.chunk for span in fact.spans]
    shown = sorted({numbers[chunk] for chunk in chunks if chunk in numbers})
    place = [f"passage {', '.join(map(str, shown))}"] if shown else []
    place += [f'"{fact.quote}"'] if isinstance(fact, LocalFact) and fact.quote else []
    return f"{words} ({': '.join(place)})" if place else words


def _says(quote: str, fact: Fact) -> bool:
    """Return whether a quote consists of words of a fact, or contains all of them."""
    words, given = f" {normalise(_fact_words(fact))} ", f" {normalise(quote)} "
    return bool(given.strip()) and (given in words or words in given)


def _fact_words(fact: Fact) -> str:
    return f"{fact.subject} | {fact.relation} | {fact.object}" if isinstance(fact, LocalFact) else fact.text


def claims_of(quotes: Quotes) -> Sequence[str]:
    """Return the verified claims of a reply, each with its quote."""
    return [f'{each.claim} "{each.quote}"' for each in quotes.citations if each.verified and each.claim]
