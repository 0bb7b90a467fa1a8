"""The rounds of ToG-3 in our reading: answer, reflect, search by sub-questions, refine the evidence graph.

A round asks for an answer with quotes, which code checks, and then for a verdict and sub-questions in one prompt. What
the sub-questions find is refined by one prompt for each of them, all in one batch. Calls, without those that are asked
again, if s prompts refine the graph: 2r + s if an answer is accepted in round r, one less in the last round, whose only
prompt is the final one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kgqa.llm.replies.quoted_answers import read_quoted_answer
from kgqa.methods.text.pieces import shown_passages
from kgqa.methods.tog3.evidence import Shown, shown_evidence
from kgqa.methods.tog3.exploration import NOTHING_FOUND, Exploration
from kgqa.methods.tog3.outcome import REPEATED, UNCHANGED, Outcome, Reply
from kgqa.methods.tog3.replies import (
    Refinement,
    Reflection,
    distinct_questions,
    read_refinement,
    read_reflection,
    read_turn,
    read_verdict,
)
from kgqa.methods.tog3.retrieval import Found
from kgqa.text.words import normalise
from kgqa.trace import PiecesKept


class Rounds(Exploration):
    """The rounds of one question in our reading."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refined_passages: set[str] = set()

    def run(self) -> Outcome:
        """Ask in rounds until an answer is accepted or nothing new is found; then for a final answer."""
        most = self._own.rounds
        if not any(self._retrieved([self.question], [0])):
            queries = self._reworded()
            if not queries or not any(self._retrieved(queries, self._planned(0, queries))):
                self._stopped(1, "nothing was found")
                return Outcome(reason=NOTHING_FOUND)
        for number in range(1, most):
            before = self.supported
            reply, reflection = self._answered(number)
            if reply.supported and reply.agrees(before):
                return self._accepted(number, "the same answer with verified quotes again", reply, REPEATED)
            if reflection is None:
                reflection = self._reflected(number, reply)
            if reflection.missing and not reflection.sufficient:
                self._attempts[-1] += f" (not accepted: {reflection.missing})"
            if reflection.sufficient:
                return self._accepted(number, "the answer was judged sufficient", reply)
            if why := self._extended(number, reflection):
                return self._final(number, why, self._shown())
        return self._final(most, "the last round", self._shown())

    def _accepted(self, number: int, why: str, reply: Reply, *notes: str) -> Outcome:
        """Return an accepted answer; if a report is wanted, ask for it, and take its answer if that is proven."""
        if self._settings.ask.answer_form == "long":
            final = self._final(number, why, self._shown(), accepted=True)
            proven = final.reply is not None and final.reply.supported and final.accepted
            return final if proven else Outcome(reply, notes=(*notes, UNCHANGED))
        self._stopped(number, why)
        return Outcome(reply, notes=notes)

    def _answered(self, number: int) -> tuple[Reply, Reflection | None]:
        """Ask for an answer; with `tog3.judge=with-answer`, the reply contains the verdict and sub-questions, too."""
        shown, read, reflection = self._shown(), None, None
        if self._own.judge == "with-answer":
            most = self._own.subqueries
            prompt = self._prompt("turn", shown, most=most)
            (turn,) = self._ask([prompt], partial(read_turn, size=shown.size, most=most))
            read, reflection = (turn.answer, turn.reflection) if turn else (None, Reflection())
        else:
            (read,) = self._ask(
                [self._prompt("answer", shown, attempts=self._attempts)], partial(read_quoted_answer, size=shown.size)
            )
        reply = self._recorded(number, read, shown)
        if reflection is not None:
            verdict = "unparsed" if read is None else "yes" if reflection.sufficient else "no"
            reflection = replace(reflection, sufficient=reflection.sufficient and reply.supported)
            self._judged(number, verdict, reflection)
        return reply, reflection

    def _reflected(self, number: int, reply: Reply) -> Reflection:
        """Ask whether the answer holds and what is missing; an answer without a verified quote is not judged."""
        shown, most = self._shown(), self._own.subqueries
        if not reply.supported:
            return self._evolved(shown) if self._evolving else Reflection()
        orders = [shown.turned(vote) for vote in range(self._own.votes)]
        answer = reply.read.response or reply.words
        answer = f"{reply.words} ({answer})" if answer != reply.words else answer
        read: list[Reflection | None]
        if self._evolving:
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

    def _extended(self, number: int, reflection: Reflection) -> str:
        """Search by the sub-questions and refine what they find; return why the search ends, "" if it goes on."""
        if not self._evolving:
            queries = [self.question]
        else:
            queries = distinct_questions(reflection.questions, [self.question, *self._asked])
        if not queries:
            return "all sub-questions were asked before" if reflection.questions else "there was no sub-question"
        steps = self._planned(number, queries)
        found = self._retrieved(queries, steps)
        self._fruitless.update(query for query, each in zip(queries, found) if not each.new)
        edited = self._refining and self._refined(queries, steps, found)
        return "" if edited or any(each.new for each in found) else "nothing new was found"

    def _retrieved(self, queries: Sequence[str], steps: Sequence[int]) -> list[Found]:
        """Search for queries, and keep what is best."""
        found = []
        for step, each in zip(steps, self._search.search(queries, steps)):
            self.trace.record(PiecesKept(step=step, pieces=tuple(piece.iri for piece in each.passages)))
            new = self.subgraph.add(step, each.passages, each.facts, each.summaries)
            found.append(replace(each, new=bool(new)))
        return found

    def _refined(self, queries: Sequence[str], steps: Sequence[int], found: Sequence[Found]) -> bool:
        """Ask for edits of the evidence graph, one prompt for each sub-question with passages that none has shown."""
        asked = []
        for query, step, each in zip(queries, steps, found):
            passages = [piece for piece in each.passages if piece.iri not in self._refined_passages]
            self._refined_passages.update(piece.iri for piece in passages)
            if passages:
                held = {normalise(fact.text): fact for fact in each.facts if fact.iri in self.subgraph.facts}
                asked.append((query, step, list(held.values()), passages))
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

    def _shown(self) -> Shown:
        chunks = "chunk" in self._kinds
        return shown_evidence(self.subgraph, tokens=self._own.context, passages=chunks)
