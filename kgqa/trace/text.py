"""Events of methods that answer from a text corpus."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.trace.event import Event


@dataclass(frozen=True, kw_only=True)
class Retrieved(Event):
    """The pieces of a text corpus that were found for a query, best first, by their IRIs.

    `step`: number of the sub-question or round that the query belongs to; 0 for the question itself. `channel`: how
    they were found; empty if all channels were fused.
    """

    query: str
    pieces: tuple[str, ...]
    step: int = 0
    channel: str = ""


@dataclass(frozen=True)
class SubQuestion:
    """A sub-question. `text`: may refer to answers of others, such as #1. `needs`: the numbers of these others."""

    number: int
    text: str
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Planned(Event):
    """Sub-questions that were made of the question, or that ask for what is missing.

    `round`: 0 for the first ones. `number`: unique among all sub-questions of the question.
    """

    sub_questions: tuple[SubQuestion, ...]
    round: int = 0


@dataclass(frozen=True, kw_only=True)
class Grounded(Event):
    """References of a sub-question were replaced by answers of earlier ones.

    `filled`: whether all were; if not, `text` contains words of the sub-questions without an answer instead.
    """

    step: int
    text: str
    filled: bool = True


@dataclass(frozen=True, kw_only=True)
class PiecesKept(Event):
    """The pieces that the next prompt shows, best first, by their IRIs. `step`: as in `Retrieved`."""

    pieces: tuple[str, ...]
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class StepAnswered(Event):
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


@dataclass(frozen=True)
class LocalFact:
    """A fact in the evidence graph of a question. `chunk`: IRI of the chunk that contains `quote`."""

    subject: str
    relation: str
    object: str
    chunk: str
    quote: str


@dataclass(frozen=True, kw_only=True)
class EvidenceEdited(Event):
    """The evidence graph of the question was changed.

    `added`: new facts. `removed`: IRIs or texts of pieces and facts that were dropped. `merged`: pairs of names that
    mean the same. `refused`: number of proposed changes that did not pass the checks.
    """

    step: int
    added: tuple[LocalFact, ...] = ()
    removed: tuple[str, ...] = ()
    merged: tuple[tuple[str, str], ...] = ()
    refused: int = 0


@dataclass(frozen=True, kw_only=True)
class SufficiencyJudged(Event):
    """The language model judged whether the evidence answers the question.

    `verdict`: yes, no or unparsed. `missing`: what is missing, in words. `accepted`: whether the answer was accepted;
    a yes without a verified quote is not.
    """

    round: int
    verdict: str
    missing: str = ""
    accepted: bool = False


@dataclass(frozen=True)
class DraftClaim:
    """A claim of a draft. `verified`: whether its quote stands in the piece that it names."""

    text: str
    verified: bool


@dataclass(frozen=True, kw_only=True)
class Drafted(Event):
    """The chain of reasoning was drafted. `channel`: empty if the draft rests on all channels."""

    text: str
    claims: tuple[DraftClaim, ...] = ()
    round: int = 0
    channel: str = ""


@dataclass(frozen=True, kw_only=True)
class DraftVerified(Event):
    """A draft was verified. `verdict`: yes, no or unparsed. `failed`: numbers of claims that do not hold, from 1."""

    verdict: str
    failed: tuple[int, ...] = ()
    round: int = 0
    channel: str = ""


@dataclass(frozen=True, kw_only=True)
class Stopped(Event):
    """A method over text stopped. `round`: the last round. `why`: the reason in words."""

    round: int
    why: str
