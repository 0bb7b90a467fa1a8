"""What both readings of ToG-3 share: the state of a question, its prompts, and the final answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kgqa.llm.client import Prompt, Stage
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.quoted_answers import QuotedAnswer, read_quoted_answer
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import Tog3Settings
from kgqa.methods.text.pieces import LIKELY, with_likely
from kgqa.methods.tog3.evidence import Shown, claims_of
from kgqa.methods.tog3.outcome import UNJUDGED, UNQUOTED_FINAL, UNREAD_FINAL, Outcome, Reply
from kgqa.methods.tog3.replies import Reflection, distinct_questions, read_questions
from kgqa.methods.tog3.retrieval import EvidenceSearch
from kgqa.methods.tog3.subgraph import Subgraph
from kgqa.trace import Planned, Stopped, SubQuestion, SufficiencyJudged
from kgqa.trace.trace import Trace

NOTHING_FOUND = "The corpus contains no text about this question."
STAGES: dict[str, Stage] = {
    "keywords": "plan",
    "evolve": "plan",
    "reflect": "plan",
    "sufficient": "decide",
    "answer": "decide",
    "plain_answer": "decide",
    "turn": "decide",
    "final": "decide",
}
"""The stage of each prompt, except that of `refine`."""


@dataclass
class Exploration:
    """The search for one question.

    Args:
        question: The text of the question.
        resources: The resources of the run.
        trace: The trace of the question.

    Attributes:
        subgraph: The evidence so far.
        supported: The last answer with a verified quote.
    """

    question: str
    resources: Resources
    trace: Trace
    supported: Reply | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._settings = self.resources.settings
        self._own = self._settings.of(Tog3Settings)
        self._kinds = [each.strip() for each in self._own.kinds.split(",")]
        self._search = EvidenceSearch(self.resources, self.trace, self._kinds)
        self._corpus = self._search.text.corpus
        self.subgraph = Subgraph(self._corpus, self._search.text.graph)
        self._asked: list[str] = []
        self._fruitless: set[str] = set()
        self._claims: dict[str, None] = {}
        self._attempts: list[str] = []

    @property
    def _evolving(self) -> bool:
        return self._own.evolve_query == "on"

    @property
    def _refining(self) -> bool:
        return self._own.evolve_graph == "on"

    def _stopped(self, number: int, why: str) -> None:
        self.trace.record(Stopped(round=number, why=why))

    def _reworded(self) -> list[str]:
        """Ask for other words, because nothing was found for the question; empty if none can help."""
        if not self._evolving or not self._search.searchable:
            return []
        return distinct_questions(self._evolved(Shown()).questions, [self.question])

    def _recorded(self, number: int, read: QuotedAnswer | None, shown: Shown) -> Reply:
        """Check the quotes of an answer, and keep what they verify."""
        reply = Reply.checked(read, shown, self._corpus)
        if reply.supported:
            self.supported = reply
        for each in reply.quotes.evidence:
            self.subgraph.cited[each.span.chunk] = None
        self._claims.update(dict.fromkeys(claims_of(reply.quotes)))
        self._attempts.append(f"Round {number}: {reply.words}")
        self.trace.record(reply.event(self.question, number, read is not None))
        return reply

    def _judged(self, number: int, verdict: str, reflection: Reflection) -> None:
        self.trace.record(
            SufficiencyJudged(round=number, verdict=verdict, missing=reflection.missing, accepted=reflection.sufficient)
        )

    def _evolved(self, shown: Shown) -> Reflection:
        """Ask for sub-questions only."""
        most = self._own.subqueries
        (read,) = self._ask([self._prompt("evolve", shown, most=most)], partial(read_questions, most=most))
        return read or Reflection()

    def _planned(self, number: int, queries: Sequence[str]) -> list[int]:
        """Record sub-questions and return their numbers."""
        steps = list(range(len(self._asked) + 1, len(self._asked) + 1 + len(queries)))
        self._asked += queries
        self.trace.record(Planned(round=number, sub_questions=tuple(map(SubQuestion, steps, queries))))
        return steps

    def _final(self, number: int, why: str, shown: Shown, *, accepted: bool = False) -> Outcome:
        """Ask for the answer from everything that was found.

        If the reply can't be read, the last answer with a verified quote stands. An answer without a verified quote, or
        that the reply calls likely, is not accepted; it is left out if `ask.on_exhausted` is "none".

        Args:
            number: The round.
            why: Why the search ends.
            shown: The evidence.
            accepted: Whether an answer was accepted, so that only a report of it is wanted.
        """
        self._stopped(number, why)
        long = self._settings.ask.answer_form == "long"
        prompt = self._prompt("final", shown, attempts=self._attempts, long=long)
        supported = self.supported
        (read,) = self._ask([prompt], partial(read_quoted_answer, size=shown.size))
        reply = self._recorded(number, read, shown)
        if read is None:
            notes = (UNREAD_FINAL,) if supported else ()
            return Outcome(supported, reason="" if supported else UNREADABLE, notes=notes)
        if read.likely and self._settings.ask.on_exhausted == "best":
            return Outcome(replace(reply, read=with_likely(read)), notes=(LIKELY,), accepted=False)
        weak = bool(reply.read.answers) and not reply.supported
        if weak and self._settings.ask.on_exhausted == "none":
            return Outcome(reason=UNQUOTED_FINAL)
        notes = (UNJUDGED,) if reply.read.answers and not accepted else ()
        return Outcome(reply, notes=notes, accepted=not weak)

    def _prompt(self, name: str, shown: Shown, **values: Any) -> Prompt:
        asked = [f"{text} (nothing new was found)" if text in self._fruitless else text for text in self._asked]
        evidence = shown.values(self._corpus, asked, self._claims)
        return self.resources.prompts.prompt(f"tog3/{name}", STAGES[name], question=self.question, **evidence, **values)

    def _ask(self, prompts: Sequence[Prompt], reader: Callable[[str], Reading[Any]]) -> list[Any]:
        return self.resources.ask_model(prompts, [reader] * len(prompts), self.trace)
