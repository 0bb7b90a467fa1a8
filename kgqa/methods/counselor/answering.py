"""Graph Counselor (Gao et al. 2025): trials in which a language model calls functions of a graph until it answers.

In each step it plans, says what is missing, and acts. A judge accepts the answer of a trial, or the model reflects on
it and tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kgqa.llm.client import Stage
from kgqa.llm.replies.action_lines import FORMS, MAX_DEPTH, Call, call_text
from kgqa.llm.replies.json_values import Reading
from kgqa.methods.counselor.counsel import Counsel, Memory, PromptTooLong, within
from kgqa.methods.counselor.finishing import grounded_answer
from kgqa.methods.counselor.functions import FAILURES
from kgqa.methods.counselor.observations import CallResult, ObservedCall
from kgqa.methods.counselor.replies import (
    Judgment,
    read_judgment,
    read_plan,
    read_reflection,
    read_sentences,
    read_turn,
)
from kgqa.methods.counselor.writing import safe
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import within_budget
from kgqa.methods.turns import Move, take_turns
from kgqa.model import Answer, Named, Question, Value
from kgqa.text.words import clean, normalise
from kgqa.trace import ActionRead, AnswerVerified, Called, Finished, GaveUp, Reflected, Seen, StepPlanned
from kgqa.trace.trace import BudgetExhausted, Trace

T = TypeVar("T")
Calls = Reading[tuple[Call, ...]]
METHOD = "counselor"
SHOWN_TO_JUDGE, SHOWN_TO_REFLECT = 6_000, 4_000
"""Tokens of the lines of a trial in a prompt."""
FACTS = 1_500
"""Tokens of the observations that later trials are shown."""
NAMES, JUDGED_NAMES = 20, 50
"""How many names of a result are recorded, and shown to the judge."""
NO_ANSWER = "No trial ended with an answer."
UNSEEN = "This answer is not accepted: parts of it were not found in the graph."
DOUBTS = {
    "yes": "",
    "no": "This answer is not accepted: the language model that judged it said no.",
    "unparsed": "This answer is not accepted: the verdict on it could not be read.",
    "": "This answer was not judged, because the budget was used up.",
}
EARLY = "Finish was ignored: it stood beside calls whose results had not been seen. Finish in a line of its own."
UNREADABLE = "(unreadable)"
"""What stands in a trial for actions that could not be read."""


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by Graph Counselor (algorithm 1); arguments and errors as in `top.answer`. Topics are ignored."""
    return take_trials(question, resources, trace, CounselorTrial)


def take_trials(question: Question, resources: Resources, trace: Trace, new_trial: type[CounselorTrial]) -> Answer:
    """Return the answer of the first trial that is accepted, else that of the best one, or why there is none."""
    empty = Answer(question, "no_answer", method=METHOD)
    trials: list[CounselorTrial] = []
    try:
        with within_budget(trace):
            counsel, memory = Counsel(empty, resources, trace, new_trial.depth, ids_only=new_trial.ids_only), Memory()
            for number in range(counsel.settings.reflections + 1):
                trials.append(trial := new_trial(counsel, memory, number))
                trial.play()
                trial.judge()
                if trial.verdict == "yes":
                    return trial.result
                if number < counsel.settings.reflections:
                    memory = trial.remember()
    except BudgetExhausted as error:
        grounded = (each.result for each in reversed(trials) if each.answer and each.answer.grounding == "graph")
        return replace(next(grounded, empty), status="budget_exhausted", reason=error.reason)
    best = new_trial.best(trials)
    if best is None:
        return replace(empty, reason=" ".join(filter(None, [NO_ANSWER, trials[-1].ended])))
    if resources.settings.ask.on_exhausted == "none":
        return replace(empty, reason=best.doubt)
    return best.result


class CounselorTrial:
    """A trial, which is the `Agent` of its steps.

    Attributes:
        number: From 0.
        lines: The lines of its steps.
        text: The text of `Finish`; empty if the trial ended without.
        answer: The answer that the text gives.
        ended: Why the trial ended without an answer, or why its answer is refused without asking.
        verdict: yes, no or unparsed; empty before it is judged.
        judged: What the judge wrote.
    """

    depth, ids_only = MAX_DEPTH, False
    """Most calls inside each other, and whether nodes are shown by their ids only."""

    def __init__(self, counsel: Counsel, memory: Memory, number: int) -> None:
        self.counsel, self.memory, self.number = counsel, memory, number
        self.lines: list[str] = []
        self.text = self.ended = self.judged = self.verdict = ""
        self.answer: Answer | None = None
        self._notes: list[str] = []
        self._told: set[Value] = set()

    @staticmethod
    def best(trials: Sequence[CounselorTrial]) -> CounselorTrial | None:
        """Return the latest trial with a grounded answer, else the latest with an answer."""
        answered = [trial for trial in reversed(trials) if trial.answer is not None]
        return max(
            answered, key=lambda trial: trial.answer is not None and trial.answer.grounding == "graph", default=None
        )

    @property
    def doubt(self) -> str:
        """Why the answer is not accepted; "" if it is."""
        return UNSEEN if self.ended else DOUBTS[self.verdict]

    @property
    def result(self) -> Answer:
        """The answer, with the text of `Finish` if it says more than the names of the answers."""
        assert self.answer is not None
        names = normalise(
            " ".join(dict.fromkeys(each.name for each in self.answer.answers))
        )  # a date may be there twice
        response = "" if normalise(self.text) == names else clean(self.text)
        notes = (*self.answer.notes, *filter(None, [self.doubt]))
        return replace(self.answer, response=response, accepted=not self.doubt, notes=notes)

    def play(self) -> None:
        """Take steps until the model finishes, or the trial ends otherwise."""
        counsel = self.counsel
        step, move = take_turns(self, counsel.settings.steps, counsel.trace, at_end="end")
        if move.answer is None:
            why = f"because {move.ends}" if move.ends else f"without an answer after {step} steps"
            self.ended = f"The trial ended {why}."
            return
        self.text = "".join(map(str, move.answer.arguments))
        try:
            self.answer = grounded_answer(self.text, counsel.functions, counsel.empty, counsel.trace)
            self.ended = self.refusal() if self.answer else "The answer is empty, or says that there is none."
        except FAILURES as error:
            counsel.trace.record(GaveUp(error=str(error)))
            self.ended = f"The graph could not check the answer: {safe(str(error))}"
        counsel.trace.record(
            Finished(
                text=self.text,
                answers=tuple(each.name for each in self.answer.answers[:NAMES]) if self.answer else (),
                grounded=self.answer is not None and self.answer.grounding == "graph",
                why=self.ended,
                trial=self.number,
                step=step,
            )
        )

    def refusal(self) -> str:
        """Return why the answer is refused without asking the judge; "" if it is to be judged."""
        if self.answer is None or self.answer.grounding == "graph":
            return ""
        unseen = "; ".join(map(safe, self.counsel.functions.seen.chosen(self.text).unseen))
        return f"These parts of the answer were not seen: {unseen}" if unseen else ""

    def reply(self, step: int, *, last: bool) -> Move[Call, Call]:
        """Ask for the lines of a step; return the calls, or `Finish`."""
        try:
            reading = self.step(step)
        except PromptTooLong as error:
            return Move(ends=str(error))
        calls = reading.value or ()
        if calls and calls[-1].name == "Finish" and (len(calls) == 1 or last):
            return Move(calls[-1])
        self._notes = [] if calls else [f"The action could not be read. {reading.problem}"]
        self._notes += [EARLY] if any(call.name == "Finish" for call in calls) else []
        return Move(calls={call_text(call): call for call in calls if call.name != "Finish"})

    def step(self, step: int) -> Calls:
        """Ask for the plan, the missing fact and the actions."""
        if self.counsel.settings.agents == "merged":
            return plan_think_act(self, step)
        planned = plan(self, step) if self.counsel.settings.plan == "on" else None
        if planned is not None:
            return planned
        think(self, step)
        return act(self, step)

    def ask(self, name: str, stage: Stage, read: Callable[[str], Reading[T]], step: int) -> Reading[T]:
        """Send the prompt for a line of a step."""
        steps = self.counsel.settings.steps
        return self.counsel.ask(name, stage, read, self.lines, self.memory, step=step, steps=steps)

    def run(self, call: Call, turns: Sequence[int]) -> tuple[Sequence[str], CallResult]:
        """Run a call; return what the model is shown."""
        if len(turns) > 1:
            return [f"{safe(call_text(call))}: you made this call before; see Seen {turns[0]}."], CallResult()
        observed = self.counsel.functions.run(call)
        self.counsel.trace.record(_called(call, observed, self.number, turns[-1]))
        form = f" The form is {FORMS[call.name]}." if observed.problem else ""
        return [f"{observed.text}{form}", *self._relations_of(call)], observed.found

    def show(self, results: Sequence[tuple[Sequence[str], CallResult]], step: int, *, last: bool) -> None:
        """Add what the calls returned to the lines."""
        texts = [*self._notes, *(text for own, _ in results for text in own)]
        self.lines += [f"Seen {step}: {text}" for text in texts]
        count, approximate = sum(found.count for _, found in results), any(found.approximate for _, found in results)
        seen = Seen(text="\n".join(texts), count=count, approximate=approximate, trial=self.number, step=step)
        self.counsel.trace.record(seen)

    def _relations_of(self, call: Call) -> Iterator[str]:
        """Yield the relations of each node that a call retrieves, once a trial, unless the prompt shows all."""
        for argument in call.arguments:
            if isinstance(argument, Call):
                yield from self._relations_of(argument)
        is_told = call.name == "Retrieve" and not self.counsel.definition
        found = self.counsel.functions.run(call).found if is_told else None
        for named in found.values if found else ():
            if named.value not in self._told and (text := self.counsel.relations_of(named)):
                yield text
            self._told.add(named.value)

    def add_line(self, text: str | None, step: int, *, need: bool = False) -> None:
        """Add a plan or a missing fact to the lines, if it could be read."""
        if text:
            self.counsel.trace.record(StepPlanned(text=text, need=need, trial=self.number, step=step))
            self.lines.append(f"{'Need' if need else 'Plan'} {step}: {text}")

    def add_actions(self, calls: Calls, step: int) -> Calls:
        """Add the calls of a reply, or that they could not be read, to the lines; return them."""
        texts, problem = tuple(map(call_text, calls.value or ())), "" if calls.value else calls.problem
        read = ActionRead(reply=self.counsel.reply, actions=texts, problem=problem, trial=self.number, step=step)
        self.counsel.trace.record(read)
        self.lines.append(f"Action {step}: {', '.join(texts) or UNREADABLE}")
        return calls

    def judge(self) -> None:
        """Ask the judge about the answer."""
        verify(self, read_judgment)

    def remember(self) -> Memory:
        """Return what the next trial is told: a reflection, and what the graph returned."""
        seen = dict.fromkeys(each.text for each in self.counsel.functions.observed if not each.problem)
        return Memory(reflect(self, SHOWN_TO_REFLECT), tuple(within(list(seen), FACTS)))


def plan(trial: CounselorTrial, step: int) -> Calls | None:
    """Ask for the plan of a step (planning agent); return the call if it is `Finish[...]`."""
    planned = trial.ask("plan", "plan", read_plan, step).value
    if isinstance(planned, Call):
        event = StepPlanned(text=call_text(planned), trial=trial.number, step=step)
        trial.counsel.trace.record(event)
        return trial.add_actions(Reading((planned,)), step)
    trial.add_line(planned, step)
    return None


def think(trial: CounselorTrial, step: int) -> None:
    """Ask which fact of the graph is missing (thought agent)."""
    trial.add_line(trial.ask("think", "think", partial(read_sentences, label="need"), step).value, step, need=True)


def act(trial: CounselorTrial, step: int) -> Calls:
    """Ask for the calls of a step (execution agent)."""
    return trial.add_actions(trial.ask("act", "act", trial.counsel.read_calls, step), step)


def plan_think_act(trial: CounselorTrial, step: int) -> Calls:
    """Ask for plan, missing fact and calls in one reply."""
    reading = trial.ask("merged", "act", partial(read_turn, read_calls=trial.counsel.read_calls), step)
    turn, calls = reading.value or (None, None)
    if turn is not None:
        trial.add_line(turn.plan if trial.counsel.settings.plan == "on" else "", step)
        trial.add_line(turn.need, step, need=True)
    return trial.add_actions(Reading(calls, problem=reading.problem), step)


def verify(trial: CounselorTrial, read: Callable[[str], Reading[Judgment]], *, published: bool = False) -> None:
    """Judge the answer of a trial (section 3.4); one that was refused is not shown to the judge."""
    asked = trial.answer is not None and not trial.ended
    verdict, judged = "no", trial.ended
    if trial.answer is not None and asked:
        names, total = [safe(each.name) for each in trial.answer.answers[:JUDGED_NAMES]], len(trial.answer.answers)
        values: dict[str, Any] = {"answer": trial.text, "names": names, "total": total, "published": published}
        lines = within(trial.lines, SHOWN_TO_JUDGE)
        judgment = trial.counsel.ask("verify", "verify", read, lines, trial.memory, **values).value
        verdict = judgment.verdict if judgment else "unparsed"
        judged = judgment.text if judgment else "The verdict could not be read."
    trial.verdict, trial.judged = verdict, judged
    verified = AnswerVerified(verdict=verdict, text=judged, asked=asked, trial=trial.number)
    trial.counsel.trace.record(verified)


def reflect(trial: CounselorTrial, tokens: int) -> str:
    """Ask for a reflection on a trial (section 3.4), of which so many tokens are shown; "" if it could not be read."""
    kind, lines = trial.counsel.settings.reflect, within(trial.lines, tokens)
    if kind == "last-trial":
        return "\n".join(lines)
    name, memory = "reflect" if kind == "full" else f"reflect_{kind}", Memory(trial.memory.reflection)
    ask = partial(trial.counsel.ask, name, "reflect", read_reflection, lines, memory)
    text = ask(answer=trial.text, judged=trial.judged).value or ""
    trial.counsel.trace.record(Reflected(text=text, trial=trial.number))
    return text


def _called(call: Call, observed: ObservedCall, trial: int, step: int) -> Called:
    found = observed.found
    names = [str(each.number) for each in found.numbers] or [each.name for each in found.values]
    return Called(
        name=call.name,
        arguments=tuple(call_text(each) if isinstance(each, Call) else each for each in call.arguments),
        paths=found.paths[:NAMES],
        names=tuple(names)[:NAMES],
        total=found.count,
        failed=bool(observed.problem),
        trial=trial,
        step=step,
    )
