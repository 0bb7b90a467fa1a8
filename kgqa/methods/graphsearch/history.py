"""What was asked and answered for one question: sub-questions, their pieces and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.llm.replies.quoted_answers import QuotedAnswer
from kgqa.methods.graphsearch.channels import Found
from kgqa.methods.graphsearch.sub_queries import MAX_NAMES, GroundedQuery
from kgqa.methods.text.pieces import Quotes
from kgqa.model import Literal, Named
from kgqa.text.quotes import stand_in_quotes
from kgqa.trace import StepAnswered


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """The answer to a sub-question.

    Attributes:
        query: The sub-question as it was asked.
        found: The pieces that were shown.
        answers: The answers; empty if unknown. If some stand in verified quotes, only these.
        quotes: The checked quotes.
        disputed: Whether answers without a verified quote were left out, or several answers have none.
    """

    query: GroundedQuery
    found: Found
    answers: tuple[str, ...] = ()
    quotes: Quotes = field(default_factory=Quotes)
    disputed: bool = False


def settled(query: GroundedQuery, found: Found, read: QuotedAnswer, quotes: Quotes) -> StepAnswer:
    """Return the answer of a reply; where its answers disagree, those in verified quotes win."""
    named = [Named(Literal(text), "", text) for text in read.answers]
    proven = tuple(each.name for each in named if stand_in_quotes([each], quotes.evidence))
    answers = proven or read.answers
    return StepAnswer(query, found, answers, quotes, 0 < len(proven) < len(named) or (len(named) > 1 and not proven))


def answered_event(answer: StepAnswer, *, read: bool, round_: int) -> StepAnswered:
    """Return the event of an answered sub-question."""
    citations = answer.quotes.citations
    return StepAnswered(
        question=answer.query.text,
        answers=answer.answers[:20],
        read=read,
        quotes=len(citations),
        verified=sum(each.verified for each in citations),
        step=answer.query.number,
        round=round_,
    )


@dataclass
class History:
    """The answered sub-questions of one question, in the order in which they were asked."""

    steps: list[StepAnswer] = field(default_factory=list)

    def names(self) -> Mapping[int, Sequence[str]]:
        """Return the answers by the number of their sub-question, at most `MAX_NAMES` each."""
        found: dict[int, dict[str, None]] = {}
        for step in self.steps:
            found.setdefault(step.query.number, {}).update(dict.fromkeys(step.answers))
        return {number: tuple(names)[:MAX_NAMES] for number, names in found.items()}

    def texts(self) -> Mapping[int, str]:
        """Return the sub-questions by number, as they were asked; the first one where there are several."""
        return {step.query.number: step.query.text for step in reversed(self.steps)}

    def shown(self) -> list[dict[str, Any]]:
        """Return the sub-questions and their answers as values of a prompt."""
        return [
            {"number": step.query.number, "question": step.query.text, "answer": "; ".join(step.answers[:MAX_NAMES])}
            for step in sorted(self.steps, key=lambda step: step.query.number)
        ]

    def known(self) -> list[dict[str, Any]]:
        """Return the sub-questions with an answer, as values of a prompt."""
        return [each for each in self.shown() if each["answer"]]

    def retrieved(self) -> frozenset[str]:
        """Return the IRIs of all pieces that were shown."""
        return frozenset(piece.iri for step in self.steps for piece in step.found.pieces)

    def last(self) -> StepAnswer | None:
        """Return the last sub-question with an answer; None if there is none."""
        return next((step for step in reversed(self.steps) if step.answers), None)
