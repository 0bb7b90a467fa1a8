"""The skeleton of methods that answer over text in rounds: plan, retrieve, answer, check, reflect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kgqa.llm.client import Stage, TypedPrompt
from kgqa.llm.replies.reply import Reply
from kgqa.methods.evidence import CheckedReply
from kgqa.methods.grounding import ground
from kgqa.methods.text.searching import TextSearch, within_budget
from kgqa.model import Answer, Piece, Question
from kgqa.text.words import normalise
from kgqa.trace import Planned, Stopped, SubQuestion
from kgqa.trace.trace import BudgetExhausted

T = TypeVar("T")
NOTHING_FOUND = "The corpus contains no text about this question."


@dataclass(frozen=True)
class RoundsOutcome:
    """The result of the rounds.

    Attributes:
        reply: The answer; None if no model was asked for one, or none could be read.
        used: The pieces that it rests on.
        others: Further pieces whose facts may lead to it.
        reason: If there is no reply, why.
        notes: What the user should know about the answer.
        accepted: Whether the answer counts as one, and not only as the one that fits best.
    """

    reply: CheckedReply[Piece] | None = None
    used: Sequence[Piece] = ()
    others: Sequence[Piece] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    accepted: bool = True


@dataclass
class Rounds(TextSearch):
    """The state of a question that is answered in rounds, with its retrievers."""

    asked: Question

    @property
    def question(self) -> str:
        """The text of the question."""
        return self.asked.text

    def prompt(self, name: str, stage: Stage, form: Reply[T], **values: Any) -> TypedPrompt[T]:
        """Return a prompt of the method, with the question if it shows it."""
        prompts = self.resources.prompts
        if "question" in prompts.get(name).values:
            values = {"question": self.question, **values}
        return prompts.prompt(name, stage, form, **values)

    def ask(self, prompts: Sequence[TypedPrompt[T]]) -> list[T | None]:
        """Return the replies to prompts of one stage; None for one that could not be read."""
        return self.resources.ask(prompts, self.trace) if prompts else []

    def reply(self, name: str, stage: Stage, form: Reply[T], **values: Any) -> T | None:
        """Return the reply to one prompt; arguments as in `prompt`."""
        return self.ask([self.prompt(name, stage, form, **values)])[0]

    def planned(self, sub_questions: Iterable[SubQuestion], number: int = 0) -> None:
        """Record the sub-questions of a round."""
        self.trace.record(Planned(round=number, sub_questions=tuple(sub_questions)))

    def stopped(self, number: int, why: str) -> str:
        """Record why the search ends, and return it."""
        self.trace.record(Stopped(round=number, why=why))
        return why


R = TypeVar("R", bound=Rounds)


def in_rounds(
    state: R,
    numbers: range,
    answer: Callable[[R, int], CheckedReply[Piece] | None],
    check: Callable[[R, int, CheckedReply[Piece]], Any],
    reflect: Callable[[R, int, Any], str],
) -> tuple[int, str]:
    """Answer, check, and search for what is missing, until an answer is accepted or nothing more helps.

    Args:
        state: The question.
        numbers: The numbers of the rounds.
        answer: Asks for an answer; None if the reply could not be read.
        check: Returns what the answer lacks; None if it is accepted, or nothing shall be searched for.
        reflect: Plans and retrieves what is missing; returns why the search ends, "" if it goes on.

    Returns:
        The round in which the search ended, and why; "" if `answer` or `check` ended it, or all rounds were used.
    """
    for number in numbers:
        reply = answer(state, number)
        missing = check(state, number, reply) if reply is not None else None
        if missing is None:
            return number, ""
        if why := reflect(state, number, missing):
            return number, why
    return numbers.stop, ""


def answer_in_rounds(
    method: str,
    state: R,
    run: Callable[[R], RoundsOutcome],
    best: Callable[[R], RoundsOutcome] = lambda state: RoundsOutcome(),
) -> Answer:
    """Return the grounded answer of the rounds; if the budget is spent, the best one so far.

    Args:
        method: The name of the method.
        state: The question.
        run: Runs the rounds.
        best: Returns the best answer so far.
    """
    empty = Answer(state.asked, "no_answer", method=method, notes=state.corpus.index.notes)

    def grounded(outcome: RoundsOutcome) -> Answer:
        found = replace(empty, reason=outcome.reason)
        if outcome.reply is not None:
            given: dict[str, Any] = {"used": outcome.used, "others": outcome.others}
            found = ground(outcome.reply, empty, state.graph, state.trace, state.corpus, **given)
        return replace(found, notes=(*found.notes, *outcome.notes), accepted=outcome.accepted)

    try:
        with within_budget(state.trace):
            outcome = run(state)
        return grounded(outcome)
    except BudgetExhausted as error:
        with state.trace.grace():
            return replace(grounded(best(state)), status="budget_exhausted", reason=error.reason)


def outcome(
    reply: CheckedReply[Piece], *notes: str, accepted: bool = True, shown: Iterable[Piece] = ()
) -> RoundsOutcome:
    """Return an answer as the result; facts that stand in the quoted chunks may lead to it.

    Args:
        reply: The answer.
        notes: Notes on it.
        accepted: Whether it counts as one.
        shown: What prompts have shown before.
    """
    quoted = {each.span.chunk for each in reply.quotes}
    others = [each for each in (*reply.shown, *shown) if each.spans and {span.chunk for span in each.spans} <= quoted]
    return RoundsOutcome(reply, reply.cited, others, notes=notes, accepted=accepted)


def unless_accepted(state: Rounds, found: RoundsOutcome, accepted: bool, note: str) -> RoundsOutcome:
    """Return a result that was not accepted as such, with a note; without answers if `ask.on_exhausted` is "none"."""
    if accepted or found.reply is None or not found.reply.answers:
        return found
    if state.resources.settings.ask.on_exhausted == "none":
        return RoundsOutcome(reason=note, notes=found.notes)
    return replace(found, accepted=False, notes=(*found.notes, note))


def new_questions(given: Iterable[str], asked: Iterable[str]) -> list[str]:
    """Return the questions with words that differ from those asked before in more than case and punctuation."""
    found: dict[str, str] = {}
    for each in given:
        found.setdefault(normalise(each), each)
    known = {"", *map(normalise, asked)}
    return [each for words, each in found.items() if words not in known]
