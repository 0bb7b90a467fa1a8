"""The rounds of ToG-3 in our reading: answer, reflect, search by sub-questions, refine the evidence graph.

A round asks for an answer with quotes, which code checks, and then for a verdict and sub-questions in one prompt. What
the sub-questions find is refined by one prompt for each of them, all in one batch. Calls, without those that are asked
again, if s prompts refine the graph: 2r + s if an answer is accepted in round r, one less in the last round, whose only
prompt is the final one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kgqa.corpus.index.entries import INDEXED
from kgqa.events import PiecesKept, Planned, Stopped, SubQuestion, SufficiencyJudged
from kgqa.llm.client import Prompt, Stage
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.quoted_answers import QuotedAnswer, read_quoted_answer
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.resources import Resources
from kgqa.methods.text.pieces import shown_passages
from kgqa.methods.tog3.evidence import Shown, claims_of, shown_evidence
from kgqa.methods.tog3.outcome import REPEATED, UNJUDGED, UNREAD_FINAL, Outcome, Reply
from kgqa.methods.tog3.replies import (
    Refinement,
    Reflection,
    distinct_questions,
    read_questions,
    read_refinement,
    read_reflection,
    read_turn,
    read_verdict,
)
from kgqa.methods.tog3.retrieval import EvidenceSearch, Found
from kgqa.methods.tog3.subgraph import Subgraph
from kgqa.trace import Trace

NOTHING_FOUND = "The corpus contains no text about this question."
STAGES: dict[str, Stage] = {
    "evolve": "plan",
    "reflect": "plan",
    "sufficient": "decide",
    "answer": "decide",
    "turn": "decide",
    "final": "decide",
}


@dataclass
class Rounds:
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
    supported: Reply | None = None
    _asked: list[str] = field(default_factory=list)
    _claims: dict[str, None] = field(default_factory=dict)
    _attempts: list[str] = field(default_factory=list)
    _refined_passages: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._settings = self.resources.settings
        self._kinds = self._settings["tog3.kinds"].split(",")
        self._search = EvidenceSearch(self.resources, self.trace, self._kinds)
        self._corpus = self._search.text.corpus
        self.subgraph = Subgraph(self._corpus, self._search.text.graph)

    def run(self) -> Outcome:
        """Ask in rounds until an answer is accepted or nothing new is found; then for a final answer."""
        most: int = self._settings["tog3.rounds"]
        if not any(self._retrieved([self.question], [0])) and not self._reworded():
            self.trace.record(Stopped(round=1, why="nothing was found"))
            return Outcome(reason=NOTHING_FOUND)
        for number in range(1, most):
            before = self.supported
            reply, reflection = self._answered(number)
            if reply.supported and reply.agrees(before):
                self.trace.record(Stopped(round=number, why="the same answer with verified quotes again"))
                return Outcome(reply, notes=(REPEATED,))
            if reflection is None:
                reflection = self._reflected(number, reply)
            if reflection.sufficient:
                self.trace.record(Stopped(round=number, why="the answer was judged sufficient"))
                return Outcome(reply)
            if why := self._extended(number, reflection):
                return self._final(number, why)
        return self._final(most, "the last round")

    def _answered(self, number: int) -> tuple[Reply, Reflection | None]:
        """Ask for an answer; with `tog3.judge=with-answer`, the reply contains the verdict and sub-questions, too."""
        shown, read, reflection = self._shown(), None, None
        if self._settings["tog3.judge"] == "with-answer":
            most = self._settings["tog3.subqueries"]
            prompt = self._prompt("turn", shown, most=most)
            (turn,) = self._ask([prompt], partial(read_turn, size=shown.size, most=most))
            read, reflection = (turn.answer, turn.reflection) if turn else (None, Reflection())
        else:
            (read,) = self._ask([self._prompt("answer", shown)], partial(read_quoted_answer, size=shown.size))
        reply = self._recorded(number, read, shown)
        if reflection is not None:
            verdict = "unparsed" if read is None else "yes" if reflection.sufficient else "no"
            reflection = replace(reflection, sufficient=reflection.sufficient and reply.supported)
            self._judged(number, verdict, reflection)
        return reply, reflection

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

    def _reflected(self, number: int, reply: Reply) -> Reflection:
        """Ask whether the answer holds and what is missing; an answer without a verified quote is not judged."""
        shown, most = self._shown(), self._settings["tog3.subqueries"]
        evolving = self._settings["tog3.evolve_query"] == "on"
        if not reply.supported:
            return self._evolved(shown) if evolving else Reflection()
        orders = [shown.turned(vote) for vote in range(self._settings["tog3.votes"])]
        answer = reply.read.response or reply.words
        answer = f"{reply.words} ({answer})" if answer != reply.words else answer
        read: list[Reflection | None]
        if evolving:
            prompts = [self._prompt("reflect", each, answer=answer, most=most) for each in orders]
            read = self._ask(prompts, partial(read_reflection, most=most))
        else:
            prompts = [self._prompt("sufficient", each, answer=answer) for each in orders]
            verdicts = self._ask(prompts, read_verdict)
            read = [None if each is None else Reflection(each) for each in verdicts]
        sufficient = 2 * sum(each is not None and each.sufficient for each in read) > len(read)
        against = next((each for each in read if each is not None and not each.sufficient), Reflection())
        reflection = Reflection(True) if sufficient else against
        self._judged(number, "yes" if sufficient else "no" if any(read) else "unparsed", reflection)
        return reflection

    def _judged(self, number: int, verdict: str, reflection: Reflection) -> None:
        self.trace.record(
            SufficiencyJudged(round=number, verdict=verdict, missing=reflection.missing, accepted=reflection.sufficient)
        )

    def _evolved(self, shown: Shown) -> Reflection:
        """Ask for sub-questions only."""
        most = self._settings["tog3.subqueries"]
        (read,) = self._ask([self._prompt("evolve", shown, most=most)], partial(read_questions, most=most))
        return read or Reflection()

    def _extended(self, number: int, reflection: Reflection) -> str:
        """Search by the sub-questions and refine what they find; return why the search ends, "" if it goes on."""
        if self._settings["tog3.evolve_query"] == "off":
            queries = [self.question]
        else:
            queries = distinct_questions(reflection.questions, [self.question, *self._asked])
        if not queries:
            return "all sub-questions were asked before" if reflection.questions else "there was no sub-question"
        steps = self._planned(number, queries)
        found = self._retrieved(queries, steps)
        edited = self._settings["tog3.evolve_graph"] == "on" and self._refined(queries, steps, found)
        return "" if edited or any(each.new for each in found) else "nothing new was found"

    def _planned(self, number: int, queries: Sequence[str]) -> list[int]:
        """Record sub-questions and return their numbers."""
        steps = list(range(len(self._asked) + 1, len(self._asked) + 1 + len(queries)))
        self._asked += queries
        self.trace.record(Planned(round=number, sub_questions=tuple(map(SubQuestion, steps, queries))))
        return steps

    def _retrieved(self, queries: Sequence[str], steps: Sequence[int]) -> list[Found]:
        """Search for queries, and keep what is best."""
        found = []
        for step, each in zip(steps, self._search.search(queries, steps)):
            self.trace.record(PiecesKept(step=step, pieces=tuple(piece.iri for piece in each.passages)))
            new = self.subgraph.add(step, each.passages, each.facts, each.summaries)
            found.append(replace(each, new=bool(new)))
        return found

    def _reworded(self) -> bool:
        """Ask once for other words, if nothing was found for the question; return whether they find anything."""
        if self._settings["tog3.evolve_query"] == "off" or not any(map(self._search.text.count, INDEXED)):
            return False
        queries = distinct_questions(self._evolved(self._shown()).questions, [self.question])
        return bool(queries) and any(self._retrieved(queries, self._planned(0, queries)))

    def _refined(self, queries: Sequence[str], steps: Sequence[int], found: Sequence[Found]) -> bool:
        """Ask for edits of the evidence graph, one prompt for each sub-question with passages that none has shown."""
        asked = []
        for query, step, each in zip(queries, steps, found):
            passages = [piece for piece in each.passages if piece.iri not in self._refined_passages]
            self._refined_passages.update(piece.iri for piece in passages)
            if passages:
                asked.append((query, step, [fact for fact in each.facts if fact.iri in self.subgraph.facts], passages))
        prompts, readers = [], []
        for query, step, facts, passages in asked:
            values: dict[str, Any] = {
                "passages": shown_passages(passages, self._corpus),
                "facts": [fact.text for fact in facts],
            }
            values |= {"question": self.question, "sub_question": query, "number": step, "quoted": True}
            prompts.append(self.resources.prompts.prompt("tog3/refine", "refine", **values))
            readers.append(partial(read_refinement, facts=len(facts), passages=len(passages)))
        read = self.resources.ask_model(prompts, readers, self.trace) if prompts else []
        edits = [
            self.subgraph.edit(step, refinement or Refinement(), facts, passages)
            for (_, step, facts, passages), refinement in zip(asked, read)
        ]
        for edit in edits:
            self.trace.record(edit)
        return any(edit.added or edit.merged for edit in edits)

    def _final(self, number: int, why: str) -> Outcome:
        """Ask for the answer from everything that was found."""
        self.trace.record(Stopped(round=number, why=why))
        shown = self._shown()
        long = self._settings["ask.answer_form"] == "long"
        prompt = self._prompt("final", shown, attempts=self._attempts, long=long)
        supported = self.supported
        (read,) = self._ask([prompt], partial(read_quoted_answer, size=shown.size))
        reply = self._recorded(number, read, shown)
        if read is None:
            notes = (UNREAD_FINAL,) if supported else ()
            return Outcome(supported, reason="" if supported else UNREADABLE, notes=notes)
        return Outcome(reply, notes=(UNJUDGED,) if reply.read.answers else ())

    def _shown(self) -> Shown:
        chunks = "chunk" in self._kinds
        return shown_evidence(self.subgraph, tokens=self._settings["tog3.context"], passages=chunks)

    def _prompt(self, name: str, shown: Shown, **values: Any) -> Prompt:
        evidence = shown.values(self._corpus, self._asked, self._claims)
        return self.resources.prompts.prompt(f"tog3/{name}", STAGES[name], question=self.question, **evidence, **values)

    def _ask(self, prompts: Sequence[Prompt], reader: Callable[[str], Reading[Any]]) -> list[Any]:
        return self.resources.ask_model(prompts, [reader] * len(prompts), self.trace)
