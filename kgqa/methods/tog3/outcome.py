"""Replies to ToG-3's prompts with their checked quotes, and the result of the rounds."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.corpus.corpus import Corpus
from kgqa.llm.replies.quoted_answers import QuotedAnswer
from kgqa.methods.text.pieces import Quotes
from kgqa.methods.tog3.evidence import Shown
from kgqa.text.words import normalise
from kgqa.trace import StepAnswered

UNJUDGED = "No answer was judged sufficient; this one is from all evidence of the search."
REPEATED = "The answer was given twice with verified quotes; no further evidence was searched for."
UNREAD_FINAL = "The final reply of the language model could not be read; this is the last answer with verified quotes."
UNQUOTED_FINAL = "No answer was judged sufficient, and no quote of the last one was found in the passages."
UNCHANGED = "The report does not answer the question; this is the answer that was accepted before."
INTERRUPTED = "The search was not finished. This is the last answer with verified quotes."


@dataclass(frozen=True)
class Reply:
    """An answer that was read, with its quotes and the evidence that the prompt showed."""

    read: QuotedAnswer
    quotes: Quotes
    shown: Shown

    @classmethod
    def checked(cls, read: QuotedAnswer | None, shown: Shown, corpus: Corpus) -> Reply:
        """Check the quotes of a reply; one that could not be read is an answer without results."""
        known = read or QuotedAnswer(())
        return cls(known, shown.check(known, corpus), shown)

    @property
    def verified(self) -> int:
        """The number of verified quotes."""
        return sum(each.verified for each in self.quotes.citations)

    @property
    def supported(self) -> bool:
        """Whether there are answers and a verified quote."""
        return bool(self.read.answers) and self.verified > 0

    @property
    def words(self) -> str:
        """The answers in words."""
        return "; ".join(self.read.answers) or "Unknown"

    def event(self, question: str, number: int, read: bool) -> StepAnswered:
        """Return the event of this answer in a round."""
        return StepAnswered(
            question=question,
            answers=self.read.answers,
            response=self.read.response,
            read=read,
            quotes=len(self.quotes.citations),
            verified=self.verified,
            round=number,
        )

    def agrees(self, other: Reply | None) -> bool:
        """Return whether another reply has the same answers, apart from case, accents and punctuation."""
        return other is not None and self._key() == other._key()

    def _key(self) -> frozenset[str]:
        return frozenset(map(normalise, self.read.answers))


@dataclass(frozen=True)
class Outcome:
    """The result of the rounds.

    Attributes:
        reply: The answer; None if no model was asked for one, or none could be read.
        reason: If there is no reply, why.
        notes: What the user should know about the answer.
        accepted: Whether the answer counts as one, and not only as the one that fits best.
    """

    reply: Reply | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    accepted: bool = True
