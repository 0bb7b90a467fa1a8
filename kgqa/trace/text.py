"""Events of methods that answer from a text corpus."""

from __future__ import annotations

from msgspec import Struct

from kgqa.text.words import counted
from kgqa.trace.event import Event
from kgqa.trace.words import SHOWN, listed, shortened


class TextEvent(Event, frozen=True):
    """An event of a method that answers from a text corpus. Its words leave nothing out."""


def _asked(number: int) -> str:
    return f"sub-question {number}" if number else "question"


def _in_round(number: int, channel: str) -> str:
    return f"round {number}, {channel}" if channel else f"round {number}"


class Retrieved(TextEvent, frozen=True):
    """The pieces of a text corpus that were found for a query, best first, by their IRIs.

    `step`: number of the sub-question or round that the query belongs to; 0 for the question itself. `channel`: how
    they were found; empty if all channels were fused.
    """

    query: str
    pieces: tuple[str, ...]
    step: int = 0
    channel: str = ""

    def in_words(self) -> str:
        channel = f", {self.channel}" if self.channel else ""
        return f"{_asked(self.step)}{channel}: {counted(len(self.pieces), 'piece')} for “{self.query}”"


class SubQuestion(Struct, frozen=True):
    """A sub-question. `text`: may refer to answers of others, such as #1. `needs`: the numbers of these others."""

    number: int
    text: str
    needs: tuple[int, ...] = ()

    def in_words(self) -> str:
        """Return the number, the text, and the numbers of the others."""
        return f"{self.number}. {self.text}" + (f" (needs {listed(self.needs)})" if self.needs else "")


class Planned(TextEvent, frozen=True):
    """Sub-questions that were made of the question, or that ask for what is missing.

    `round`: 0 for the first ones. `number`: unique among all sub-questions of the question.
    """

    sub_questions: tuple[SubQuestion, ...]
    round: int = 0
    is_step = True

    def in_words(self) -> str:
        asked = "; ".join(each.in_words() for each in self.sub_questions)
        return f"round {self.round} asks: {asked or 'no sub-questions'}"


class Grounded(TextEvent, frozen=True):
    """References of a sub-question were replaced by answers of earlier ones.

    `filled`: whether all were; if not, `text` contains words of the sub-questions without an answer instead.
    """

    step: int
    text: str
    filled: bool = True

    def in_words(self) -> str:
        return f"{_asked(self.step)}: {self.text}{'' if self.filled else ' (an earlier answer is missing)'}"


class PiecesKept(TextEvent, frozen=True):
    """The pieces that the next prompt shows, best first, by their IRIs. `step`: as in `Retrieved`."""

    pieces: tuple[str, ...]
    step: int = 0

    def in_words(self) -> str:
        return f"{_asked(self.step)}: {counted(len(self.pieces), 'piece')}"


class StepAnswered(TextEvent, frozen=True):
    """A sub-question, or the question itself (step 0), was answered from pieces.

    `answers`: empty if the pieces do not contain the answer. `read`: whether the reply could be read. `quotes`,
    `verified`: number of quotes in the reply, and of those that stand in their pieces. `round`: round of the method.
    """

    question: str
    answers: tuple[str, ...]
    response: str = ""
    read: bool = True
    quotes: int = 0
    verified: int = 0
    step: int = 0
    round: int = 0
    is_step = True

    def in_words(self) -> str:
        quoted = (
            f" ({self.verified} of {counted(self.quotes, 'quote')} verified)" if self.answers and self.quotes else ""
        )
        answer = (listed(self.answers) or "not in the passages") if self.read else "the reply could not be read"
        asked = f"{_asked(self.step)}: {self.question}" if self.step else "the question"
        return f"{asked} → {answer}{quoted}"


class LocalFact(Struct, frozen=True):
    """A fact in the evidence graph of a question. `chunk`: IRI of the chunk that contains `quote`."""

    subject: str
    relation: str
    object: str
    chunk: str
    quote: str


class EvidenceEdited(TextEvent, frozen=True):
    """The evidence graph of the question was changed.

    `added`: new facts. `removed`: IRIs or texts of pieces and facts that were dropped. `merged`: pairs of names that
    mean the same. `refused`: number of proposed changes that did not pass the checks.
    """

    step: int
    added: tuple[LocalFact, ...] = ()
    removed: tuple[str, ...] = ()
    merged: tuple[tuple[str, str], ...] = ()
    refused: int = 0

    def in_words(self) -> str:
        changes = [f"+ {each.subject} — {each.relation} → {each.object}" for each in self.added[:SHOWN]]
        if len(self.added) > SHOWN:
            changes.append(f"+ {len(self.added) - SHOWN:,} more")
        changes += [f"{one} = {other}" for one, other in self.merged[:SHOWN]]
        counts = {"removed": len(self.removed), "refused": self.refused}
        changes += [f"{number:,} {what}" for what, number in counts.items() if number]
        return f"{_asked(self.step)}: {'; '.join(changes) or 'nothing'}"


class SufficiencyJudged(TextEvent, frozen=True):
    """The language model judged whether the evidence answers the question.

    `verdict`: yes, no or unparsed. `missing`: what is missing, in words. `accepted`: whether the answer was accepted;
    a yes without a verified quote is not.
    """

    round: int
    verdict: str
    missing: str = ""
    accepted: bool = False
    is_step = True

    def in_words(self) -> str:
        words = {"yes": "sufficient, but not accepted: no verified quote", "no": "insufficient"}
        verdict = "sufficient" if self.accepted else words.get(self.verdict, "verdict not readable, so insufficient")
        missing = f"; missing: {shortened(self.missing)}" if self.missing else ""
        return f"round {self.round}: {verdict}{missing}"


class DraftClaim(Struct, frozen=True):
    """A claim of a draft. `verified`: whether its quote stands in the piece that it names."""

    text: str
    verified: bool


class Drafted(TextEvent, frozen=True):
    """The chain of reasoning was drafted. `channel`: empty if the draft rests on all channels."""

    text: str
    claims: tuple[DraftClaim, ...] = ()
    round: int = 0
    channel: str = ""

    def in_words(self) -> str:
        verified = sum(each.verified for each in self.claims)
        quoted = f" ({verified} of {counted(len(self.claims), 'claim')} with a verified quote)" if self.claims else ""
        return f"{_in_round(self.round, self.channel)}: {self.text}{quoted}"


class DraftVerified(TextEvent, frozen=True):
    """A draft was verified. `verdict`: yes, no or unparsed. `failed`: numbers of claims that do not hold, from 1."""

    verdict: str
    failed: tuple[int, ...] = ()
    round: int = 0
    channel: str = ""
    is_step = True

    def in_words(self) -> str:
        words = {"yes": "draft accepted", "no": "draft rejected"}
        verdict = words.get(self.verdict, "verdict not readable, so the draft is rejected")
        failed = f"; claims that do not hold: {listed(self.failed)}" if self.failed else ""
        return f"{_in_round(self.round, self.channel)}: {verdict}{failed}"


class Stopped(TextEvent, frozen=True):
    """A method over text stopped. `round`: the last round. `why`: the reason in words."""

    round: int
    why: str
    is_step = True

    def in_words(self) -> str:
        return f"round {self.round} was the last: {self.why}"
