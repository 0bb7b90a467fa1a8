"""A draft of the reasoning: what it is written from, its claims and their quotes, and what a verdict on it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.llm.replies.quoted_answers import QuotedAnswer
from kgqa.methods.graphsearch.channels import Found, distinct, interleaved
from kgqa.methods.graphsearch.history import History
from kgqa.methods.text.pieces import Quotes, shown_passages
from kgqa.methods.text.searching import within_tokens
from kgqa.model import Piece

DRAFT_TOKENS = 2500
"""About how many tokens the passages of a draft have."""
MAX_DRAFT_FACTS = 6


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft whose quotes were checked. `found`: the pieces that it was written from."""

    read: QuotedAnswer
    quotes: Quotes
    found: Found

    @property
    def sound(self) -> bool:
        """Whether there is an answer, and every claim has a verified quote."""
        citations = self.quotes.citations
        return bool(self.read.answers and citations and not self.read.unquoted) and all(c.verified for c in citations)

    @property
    def claims(self) -> list[tuple[str, bool]]:
        """The claims, each with whether its quote was verified; those without a quote come last."""
        quoted = [(each.claim or each.quote, each.verified) for each in self.quotes.citations]
        return [*quoted, *((text, False) for text in self.read.unquoted)]

    @property
    def answer(self) -> str:
        """The answers as prompts show them; "" if there are none."""
        return "; ".join(self.read.answers)

    def unverified(self) -> tuple[int, ...]:
        """Return the numbers of the claims without a verified quote, from 1."""
        return tuple(number for number, (_, verified) in enumerate(self.claims, 1) if not verified)


def draft_pieces(history: History, corpus: Corpus) -> Found:
    """Return the quoted passages, then those of all sub-questions, the best of each one first; the facts likewise."""
    steps = history.steps
    quoted = quoted_chunks((step.quotes for step in steps), corpus)
    passages = distinct([*quoted, *interleaved(step.found.passages for step in steps)])
    facts = distinct(interleaved(step.found.facts for step in steps))
    return Found(tuple(within_tokens(passages, DRAFT_TOKENS)), tuple(facts[:MAX_DRAFT_FACTS]))


def quoted_chunks(several: Iterable[Quotes], corpus: Corpus) -> list[Piece]:
    """Return the chunks in which verified quotes stand, each once."""
    table = corpus.index.pieces("chunk")
    spans = (each.span for quotes in several for each in quotes.citations if each.span is not None)
    chunks = dict.fromkeys(span.chunk for span in spans)
    return [piece for iri in chunks if (piece := table.get(iri)) is not None]


def votes_on(draft: Draft, votes: int, corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Yield what each vote on a sound draft reads, as values of a prompt: the passages, each time in another order."""
    cited = quoted_chunks([draft.quotes], corpus)
    for vote in range(votes):
        at = vote % len(cited)
        turned = [*cited[at:], *cited[:at]]
        numbers = {piece.iri: number for number, piece in enumerate(turned, 1)}
        claims = [
            {"claim": each.claim or each.quote, "passage": numbers[each.span.chunk], "quote": each.quote}
            for each in draft.quotes.citations
            if each.span is not None
        ]
        yield {"answer": draft.answer, "claims": claims, "passages": shown_passages(turned, corpus)}
