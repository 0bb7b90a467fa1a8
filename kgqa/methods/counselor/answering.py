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
from kgqa.llm.replies.action_lines import FORMS, Call, call_text
from kgqa.llm.replies.json_values import Reading
from kgqa.methods.counselor.counsel import Counsel, Memory, PromptTooLong, within
from kgqa.methods.counselor.finishing import grounded_answer
from kgqa.methods.counselor.functions import FAILURES
from kgqa.methods.counselor.observations import Found, Observation
from kgqa.methods.counselor.replies import (
    Actions,
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
from kgqa.methods.turns import Move, Repeat, take_turns
from kgqa.model import Answer, Named, Question, Value
from kgqa.text.words import clean, normalise
from kgqa.trace import ActionRead, AnswerVerified, Called, Finished, GaveUp, Reflected, Seen, StepPlanned
from kgqa.trace.trace import BudgetExhausted, Trace

T = TypeVar("T")
METHOD = "counselor"
SHOWN_TO_JUDGE, SHOWN_TO_REFLECT, SHORTER = 6_000, 4_000, 1_600
"""Tokens of the lines of a trial in a prompt; `SHORTER` for a verdict if its prompt would be too long otherwise."""
FACTS = 1_500
"""Tokens of the observations that later trials are shown."""
NAMES, JUDGED_NAMES = 20, 50
"""How many names of a result are recorded, and shown to the judge."""
NO_ANSWER = "No trial ended with an answer."
REJECTED = "This answer is not accepted: the language model that judged it said no."
UNREAD = "This answer is not accepted: the verdict on it could not be read."
UNSEEN = "This answer is not accepted: parts of it were not found in the graph."
NOT_JUDGED = "This answer was not judged, because the budget was used up."
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
    empty = Answer(question, "no_answer", method=METHOD)
    trials, found = take_trials(empty, trace, partial(Counsel, empty, resources, trace), Trial, verify, reflect)
    if found is not None:
        return found
    best = latest(trials)
    if best is not None and resources.settings.ask.on_exhausted == "none":
        return replace(empty, reason=why_not(best))
    return not_accepted(best, trials, empty)


def take_trials(
    empty: Answer,
    trace: Trace,
    new_counsel: Callable[[], Counsel],
    new_trial: Callable[[Counsel, Memory, int], Trial],
    judge: Callable[[Trial], None],
    remember: Callable[[Trial], Memory],
) -> tuple[list[Trial], Answer | None]:
    """Return the trials, and the answer of one that is accepted, or what is left of them when the budget is used up."""
    trials: list[Trial] = []
    try:
        with within_budget(trace):
            counsel, memory = new_counsel(), Memory()
            for number in range(counsel.settings.reflections + 1):
                trials.append(trial := new_trial(counsel, memory, number))
                trial.play()
                judge(trial)
                if trial.verdict == "yes":
                    return trials, with_text(trial)
                if number < counsel.settings.reflections:
                    memory = remember(trial)
    except BudgetExhausted as error:
        return trials, so_far(trials, empty, error.reason)
    return trials, None


def not_accepted(best: Trial | None, trials: Sequence[Trial], empty: Answer) -> Answer:
    """Return the answer of a trial that was not accepted, or why there is none."""
    if best is None:
        return replace(empty, reason=" ".join(filter(None, [NO_ANSWER, trials[-1].ended])))
    return with_text(best, why_not(best))


class Trial:
    """A trial, which is the `Agent` of its steps.

    Attributes:
        number: From 0.
        text: The text of `Finish`; empty if the trial ended without.
        answer: The answer that the text gives.
        ended: Why the trial ended without an answer, or why its answer is refused without asking.
        verdict: yes, no or unparsed; empty before it is judged.
        judged: What the judge wrote.
    """

    def __init__(self, counsel: Counsel, memory: Memory, number: int) -> None:
        self.counsel, self.memory, self.number = counsel, memory, number
        self.lines: list[str] = []
        self.text = self.ended = self.judged = ""
        self.answer: Answer | None = None
        self.verdict = ""
        self._notes: list[str] = []
        self._told: set[str] = set()

    def play(self) -> None:
        """Take steps until the model finishes, or the trial ends otherwise."""
        counsel = self.counsel
        step, move = take_turns(self, counsel.settings.steps, counsel.trace, at_end="end")
        if move.answer is None:
            why = f"because {move.ends}" if move.ends else f"without an answer after {step} steps"
            self.ended = f"The trial ended {why}."
            return
        self.text = str(move.answer.arguments[0]) if move.answer.arguments else ""
        try:
            self.answer = grounded_answer(self.text, counsel.functions, counsel.empty, counsel.trace)
            self.ended = (
                "The answer is empty, or says that there is none." if self.answer is None else self.refusal(self.answer)
            )
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

    def refusal(self, answer: Answer) -> str:
        """Return why an answer is refused without asking the judge; "" if it is to be judged."""
        unseen = () if answer.grounding == "graph" else self.counsel.functions.seen.chosen(self.text).unseen
        return f"These parts of the answer were not seen: {'; '.join(map(safe, unseen))}" if unseen else ""

    def reply(self, step: int, *, last: bool) -> Move[Call, Call]:
        """Ask for the lines of a step; return the calls, or `Finish`."""
        try:
            calls, problem = self.step(step)
        except PromptTooLong as error:
            return Move(ends=str(error))
        if calls and calls[-1].name == "Finish" and (len(calls) == 1 or last):
            return Move(calls[-1])
        run = {call_text(call): call for call in calls if call.name != "Finish"}
        self._notes = [] if calls else [f"The action could not be read. {problem}"]
        self._notes += [EARLY] if any(call.name == "Finish" for call in calls) else []
        return Move(calls=run)

    def step(self, step: int) -> tuple[Sequence[Call], str]:
        """Ask for the plan, the missing fact and the actions; return the calls, or the problem with them."""
        if self.counsel.settings.agents == "merged":
            return plan_think_act(self, step)
        if self.counsel.settings.plan == "on" and (calls := plan(self, step)):
            return calls, ""
        think(self, step)
        return act(self, step)

    def ask(self, name: str, stage: Stage, read: Callable[[str], Reading[T]], step: int) -> Reading[T]:
        """Send the prompt for a line of a step."""
        steps, first = self.counsel.settings.steps, stage == "act" and step == 1
        return self.counsel.ask(name, stage, read, self.lines, self.memory, task=first, step=step, steps=steps)

    def run(self, call: Call, step: int, repeat: Repeat | None) -> tuple[Sequence[str], Found]:
        """Run a call; return what the model is shown."""
        if repeat is not None:
            return [f"{safe(call_text(call))}: you made this call before; see Seen {repeat.first}."], Found()
        observed = self.counsel.functions.run(call)
        self.counsel.trace.record(_called(call, observed, trial=self.number, step=step))
        form = f" The form is {FORMS[call.name]}." if observed.problem else ""
        return [f"{observed.text}{form}", *self._relations_of(call)], observed.found or Found()

    def show(self, results: Sequence[tuple[Sequence[str], Found]], step: int, *, last: bool) -> None:
        """Add what the calls returned to the lines."""
        texts = [*self._notes, *(text for own, _ in results for text in own)]
        for text in texts:
            self.add("Seen", step, text)
        count = sum(found.total or len(found.values) for _, found in results)
        approximate = any(found.approximate for _, found in results)
        self.counsel.trace.record(
            Seen(text="\n".join(texts), count=count, approximate=approximate, trial=self.number, step=step)
        )

    def _relations_of(self, call: Call) -> Iterator[str]:
        """Yield the relations of each node that a call retrieves, once a trial, unless the prompt shows all."""
        for retrieve in _retrieves(call) if not self.counsel.definition else ():
            found = self.counsel.functions.run(retrieve).found
            for named in found.values if found is not None else ():
                if str(named.value) not in self._told:
                    self._told.add(str(named.value))
                    if text := self.counsel.relations_of(named):
                        yield text

    def add(self, label: str, step: int, text: str) -> None:
        """Add a line."""
        self.lines.append(f"{label} {step}: {text}")

    def add_plan(self, text: str | None, step: int, *, need: bool = False) -> None:
        """Add a plan or a missing fact to the lines, if it could be read."""
        if text:
            self.counsel.trace.record(StepPlanned(text=text, need=need, trial=self.number, step=step))
            self.add("Need" if need else "Plan", step, text)

    def add_actions(self, reading: Reading[tuple[Call, ...]], step: int) -> tuple[Sequence[Call], str]:
        """Add the calls of a reply, or that they could not be read, to the lines; return them, or the problem."""
        calls, problem = reading.value or (), "" if reading.value else reading.problem
        texts, raw = tuple(map(call_text, calls)), self.counsel.reply
        event = ActionRead(reply=raw, actions=texts, problem=problem, trial=self.number, step=step)
        self.counsel.trace.record(event)
        self.add("Action", step, ", ".join(texts) or UNREADABLE)
        return calls, problem


def plan(trial: Trial, step: int) -> Sequence[Call]:
    """Ask for the plan of a step (planning agent); return the call if it is `Finish[...]`."""
    reading = trial.ask("plan", "plan", read_plan, step)
    if isinstance(reading.value, Call):
        planned = StepPlanned(text=call_text(reading.value), trial=trial.number, step=step)
        trial.counsel.trace.record(planned)
        return trial.add_actions(Reading((reading.value,)), step)[0]
    trial.add_plan(reading.value, step)
    return ()


def think(trial: Trial, step: int) -> None:
    """Ask which fact of the graph is missing (thought agent)."""
    need = trial.ask("think", "think", partial(read_sentences, label="need"), step).value
    trial.add_plan(need, step, need=True)


def act(trial: Trial, step: int) -> tuple[Sequence[Call], str]:
    """Ask for the calls of a step (execution agent)."""
    return trial.add_actions(trial.ask("act", "act", trial.counsel.read_calls, step), step)


def plan_think_act(trial: Trial, step: int) -> tuple[Sequence[Call], str]:
    """Ask for plan, missing fact and calls in one reply."""
    reading = trial.ask("merged", "act", partial(read_turn, read_calls=trial.counsel.read_calls), step)
    actions = reading.value or Actions(())
    trial.add_plan(actions.plan if trial.counsel.settings.plan == "on" else "", step)
    trial.add_plan(actions.need, step, need=True)
    return trial.add_actions(Reading(actions.calls, problem=reading.problem), step)


def verify(trial: Trial, read: Callable[[str], Reading[Judgment]] = read_judgment, *, published: bool = False) -> None:
    """Judge the answer of a trial (section 3.4); one that was refused is not shown to the judge."""
    asked = trial.answer is not None and not trial.ended
    if not asked:
        trial.verdict, trial.judged = "no", trial.ended
    elif trial.answer is not None:
        names = [safe(each.name) for each in trial.answer.answers[:JUDGED_NAMES]]
        values: dict[str, Any] = {
            "answer": trial.text,
            "names": names,
            "total": len(trial.answer.answers),
            "published": published,
        }
        ask = trial.counsel.ask
        try:
            judgment = ask("verify", "verify", read, within(trial.lines, SHOWN_TO_JUDGE), trial.memory, **values).value
        except PromptTooLong:
            judgment = ask("verify", "verify", read, within(trial.lines, SHORTER), Memory(), **values).value
        trial.verdict = judgment.verdict if judgment else "unparsed"
        trial.judged = judgment.text if judgment else "The verdict could not be read."
    verified = AnswerVerified(verdict=trial.verdict, text=trial.judged, asked=asked, trial=trial.number)
    trial.counsel.trace.record(verified)


def reflect(trial: Trial) -> Memory:
    """Return what the next trial is told: a reflection (section 3.4), and what the graph returned."""
    counsel, kind = trial.counsel, trial.counsel.settings.reflect
    seen = (each.text for each in counsel.functions.observed if each.found is not None)
    facts = tuple(within(list(dict.fromkeys(seen)), FACTS))
    lines = within(trial.lines, SHOWN_TO_REFLECT)
    if kind == "last-trial":
        return Memory("\n".join(lines), facts)
    return Memory(reflection(trial, "reflect" if kind == "full" else f"reflect_{kind}", lines), facts)


def reflection(trial: Trial, name: str, lines: Sequence[str]) -> str:
    """Ask for a reflection on a trial; "" if it could not be read."""
    ask, memory = trial.counsel.ask, Memory(trial.memory.reflection)
    reading = ask(name, "reflect", read_reflection, lines, memory, answer=trial.text, judged=trial.judged)
    text = reading.value or ""
    trial.counsel.trace.record(Reflected(text=text, trial=trial.number))
    return text


def latest(trials: Sequence[Trial]) -> Trial | None:
    """Return the latest trial with a grounded answer, else the latest with an answer."""
    answered = [trial for trial in reversed(trials) if trial.answer is not None]
    grounded = (trial for trial in answered if trial.answer is not None and trial.answer.grounding == "graph")
    return next(grounded, next(iter(answered), None))


def so_far(trials: Sequence[Trial], empty: Answer, reason: str) -> Answer:
    """Return the latest answer that follows from the graph, now that the budget is used up."""
    best = latest(trials)
    if best is not None and best.answer is not None and best.answer.grounding == "graph":
        empty = with_text(best, why_not(best) if best.verdict else NOT_JUDGED)
    return replace(empty, status="budget_exhausted", reason=reason)


def why_not(trial: Trial) -> str:
    """Say why the answer of a trial is not accepted."""
    return UNSEEN if trial.ended else {"unparsed": UNREAD, "": NOT_JUDGED}.get(trial.verdict, REJECTED)


def with_text(trial: Trial, doubt: str = "") -> Answer:
    """Return the answer of a trial, with the text of `Finish` if it says more than the names of the answers."""
    found = trial.answer
    assert found is not None
    names = normalise(" ".join(dict.fromkeys(each.name for each in found.answers)))  # a date may stand there twice
    found = replace(found, response="" if normalise(trial.text) == names else clean(trial.text))
    return replace(found, accepted=False, notes=(*found.notes, doubt)) if doubt else found


def _retrieves(call: Call) -> Iterator[Call]:
    """Yield the calls of `Retrieve` in a call."""
    if call.name == "Retrieve":
        yield call
    for each in call.arguments:
        if isinstance(each, Call):
            yield from _retrieves(each)


def _called(call: Call, observed: Observation, *, trial: int, step: int) -> Called:
    found = observed.found or Found()
    texts = tuple(call_text(each) if isinstance(each, Call) else each for each in call.arguments)
    paths = dict.fromkeys(found.combined or (each.words for each in found.candidates))
    names = [str(each.number) for each in found.numbers] or [each.name for each in found.values]
    return Called(
        name=call.name,
        arguments=texts,
        paths=tuple(paths)[:NAMES],
        names=tuple(names)[:NAMES],
        total=found.total if found.total is not None else len(found.values),
        failed=observed.found is None,
        trial=trial,
        step=step,
    )
