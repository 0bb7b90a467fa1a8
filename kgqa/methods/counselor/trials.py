"""The trials of a question: steps until an answer, a verdict on it, and a reflection before the next trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kgqa.llm.replies.action_lines import FORMS, Call, call_text
from kgqa.methods.acting.declarations import CounselorSettings
from kgqa.methods.acting.loop_guard import LoopGuard
from kgqa.methods.acting.tokens import within
from kgqa.methods.acting.transcript import Transcript
from kgqa.methods.counselor.calls.observation_text import safe
from kgqa.methods.counselor.calls.observations import Observation
from kgqa.methods.counselor.definition import definition_lines, nearest_relations
from kgqa.methods.counselor.finishing import grounded_answer
from kgqa.methods.counselor.functions import FAILURES, GraphFunctions, graph_functions
from kgqa.methods.counselor.replies import (
    Judgment,
    read_judgment,
    read_published_judgment,
    read_reflection,
)
from kgqa.methods.counselor.turns import Memory, PromptTooLong, Turns
from kgqa.methods.counselor.unseen import unseen_names
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Named
from kgqa.trace import AnswerVerified, Called, Finished, GaveUp, Reflected, Seen
from kgqa.trace.trace import Trace

SHOWN_TO_JUDGE = 6_000
SHOWN_TO_REFLECT = 4_000
SHOWN_TO_REFLECT_AS_PUBLISHED = 1_600
FACTS = 1_500
"""Tokens of the observations that later trials are shown."""
NAMES = 20
"""How many names of a result are recorded."""
JUDGED_NAMES = 50
EARLY = "Finish was ignored: it stood beside calls whose results had not been seen. Finish in a line of its own."


@dataclass
class Trial:
    """One trial.

    Attributes:
        number: From 0.
        transcript: Its lines.
        text: The text of `Finish`; empty if the trial ended without.
        answer: The answer that the text gives.
        ended: Why the trial ended without an answer, or why its answer is refused without asking.
        verdict: yes, no or unparsed; empty before it is judged.
        judged: What the judge wrote.
    """

    number: int
    transcript: Transcript = field(default_factory=Transcript)
    text: str = ""
    answer: Answer | None = None
    ended: str = ""
    verdict: str = ""
    judged: str = ""


class Trials:
    """Answers one question by trials.

    Args:
        empty: An answer without results, with the question.
        resources: The resources of the run.
        trace: The trace of the question.
    """

    def __init__(self, empty: Answer, resources: Resources, trace: Trace) -> None:
        settings = resources.settings.of(CounselorSettings)
        self._empty = empty
        self._resources = resources
        self._trace = trace
        self._graph = resources.graph.for_question(trace)
        self._functions = graph_functions(resources, self._graph)
        definition = self._definition()
        self._defined = bool(definition)
        self._turns = Turns(empty.question.text, definition, resources, trace)
        self._published = settings.reading == "published"
        self._steps = settings.steps
        self._reflections = settings.reflections
        self._reflect_kind = settings.reflect
        self.trials: list[Trial] = []

    def run(self) -> None:
        """Make trials until the answer of one is accepted, or none is left."""
        memory = Memory()
        for number in range(self._reflections + 1):
            trial = Trial(number)
            self.trials.append(trial)
            self._play(trial, memory)
            self._verify(trial, memory)
            if trial.verdict == "yes":
                return
            if number < self._reflections:
                memory = self._after(trial, memory)

    def _play(self, trial: Trial, memory: Memory) -> None:
        """Take steps until the model finishes, or the trial ends otherwise."""
        guard, told = LoopGuard(), set[str]()
        for step in range(1, self._steps + 1):
            try:
                turn = self._turns.take(trial.transcript, memory, trial.number, step)
            except PromptTooLong as error:
                trial.ended = f"The trial ended because {error}."
                return
            *before, last = turn.calls or (None,)
            finish = last if last is not None and last.name == "Finish" else None
            if finish is None or (before and step < self._steps):
                calls = [call for call in turn.calls if call.name != "Finish"]
                texts = [f"The action could not be read. {turn.problem}"] if not turn.calls else []
                texts += [EARLY] if len(calls) < len(turn.calls) else []
                if self._observe(calls, texts, guard, told, trial, step):
                    trial.ended = "The trial ended because the same call was made three times."
                    return
                continue
            trial.text = str(finish.arguments[0]) if finish.arguments else ""
            try:
                trial.answer = grounded_answer(trial.text, self._functions, self._empty, self._trace)
                trial.ended = self._refusal(trial)
            except FAILURES as error:
                self._trace.record(GaveUp(error=str(error)))
                trial.ended = f"The graph could not check the answer: {safe(str(error))}"
            answer = trial.answer
            self._trace.record(
                Finished(
                    text=trial.text,
                    answers=tuple(each.name for each in answer.answers[:NAMES]) if answer else (),
                    grounded=answer is not None and answer.grounding == "graph",
                    why=trial.ended,
                    trial=trial.number,
                    step=step,
                )
            )
            return
        trial.ended = f"The trial ended without an answer after {self._steps} steps."

    def _observe(
        self, calls: Sequence[Call], texts: list[str], guard: LoopGuard, told: set[str], trial: Trial, step: int
    ) -> bool:
        """Run the calls of a step and add what they returned to the transcript; return whether the trial is to end."""
        at = {"trial": trial.number, "step": step}
        made: dict[str, None] = {}
        ends, count, approximate = False, 0, False
        for call in calls:
            text = call_text(call)
            if text in made:
                continue
            made[text] = None
            if repeat := guard.check(text, step):
                texts.append(f"{safe(text)}: you made this call before; see Seen {repeat.first}.")
                ends = ends or repeat.last
                continue
            found = self._functions.run(call)
            self._trace.record(_called(call, found, **at))
            texts.append(f"{found.text}{f' The form is {FORMS[call.name]}.' if found.problem else ''}")
            texts += self._relations_of(call, told)
            if found.found is not None:
                count += found.found.total or len(found.found.values)
                approximate = approximate or found.found.approximate
        for text in texts:
            trial.transcript.add("Seen", step, text)
        self._trace.record(Seen(text="\n".join(texts), count=count, approximate=approximate, **at))
        return ends

    def _relations_of(self, call: Call, told: set[str]) -> Iterator[str]:
        """Yield the relations of each node that a call retrieves, once a trial, unless all relations are shown."""
        if self._defined:
            return
        for retrieve in _retrieves(call):
            found = self._functions.run(retrieve).found
            for named in found.values if found is not None else ():
                if str(named.value) not in told:
                    told.add(str(named.value))
                    if names := self._nearest(named):
                        yield f"Relations of {safe(named.name)} nearest to the question: {'; '.join(names)}"

    def _nearest(self, named: Named) -> list[str]:
        """Return the relations of a node nearest to the question; none if the graph does not return them."""
        hops, question = self._functions.hops, self._empty.question.text
        try:
            return nearest_relations(named, question, hops, self._resources.encoder)
        except FAILURES as error:
            self._trace.record(GaveUp(error=str(error)))
            return []

    def _definition(self) -> tuple[str, ...]:
        try:
            return definition_lines(self._graph, self._functions.hops)
        except FAILURES as error:
            self._trace.record(GaveUp(error=str(error)))
            return ()

    # ---- verdict and reflection ----

    def _refusal(self, trial: Trial) -> str:
        """Return why an answer is refused without asking the judge; "" if it is to be judged."""
        if trial.answer is None:
            return "The answer is empty."
        if trial.answer.grounding == "graph" or self._published:
            return ""
        unseen = unseen_names(trial.text, self._functions)
        return f"These parts of the answer were not seen: {'; '.join(map(safe, unseen))}" if unseen else ""

    def _verify(self, trial: Trial, memory: Memory) -> None:
        if trial.answer is None or trial.ended:
            trial.verdict, trial.judged = "no", trial.ended
            self._trace.record(AnswerVerified(verdict="no", text=trial.ended, asked=False, trial=trial.number))
            return
        lines = trial.transcript.shown(SHOWN_TO_JUDGE)
        found = trial.answer.answers
        values = {
            "answer": trial.text,
            "names": [safe(each.name) for each in found[:JUDGED_NAMES]],
            "total": len(found),
            "published": self._published,
        }
        reader = read_published_judgment if self._published else read_judgment
        try:
            read = self._turns.ask("verify", "verify", reader, lines, memory, **values)
        except PromptTooLong:
            lines = trial.transcript.shown(SHOWN_TO_REFLECT_AS_PUBLISHED)
            read = self._turns.ask("verify", "verify", reader, lines, Memory(), **values)
        judgment: Judgment | None = read.value
        trial.verdict = judgment.verdict if judgment else "unparsed"
        trial.judged = judgment.text if judgment else "The verdict could not be read."
        self._trace.record(AnswerVerified(verdict=trial.verdict, text=trial.judged, trial=trial.number))

    def _after(self, trial: Trial, memory: Memory) -> Memory:
        """Return what the next trial is told."""
        facts: Sequence[str] = ()
        if self._published:
            self._functions = graph_functions(self._resources, self._graph)
        else:
            facts = within(list(dict.fromkeys(_facts(self._functions))), FACTS)
        tokens = SHOWN_TO_REFLECT_AS_PUBLISHED if self._published else SHOWN_TO_REFLECT
        lines = trial.transcript.shown(tokens)
        if self._reflect_kind == "last-trial":
            return Memory("\n".join(lines), tuple(facts))
        name = "reflect" if self._reflect_kind == "full" else f"reflect_{self._reflect_kind}"
        values = {"answer": trial.text, "judged": trial.judged}
        memory = replace(memory, facts=())
        read = self._turns.ask(name, "reflect", read_reflection, lines, memory, **values)
        self._trace.record(Reflected(text=read.value or "", trial=trial.number))
        return Memory(read.value or "", tuple(facts))


def _retrieves(call: Call) -> Iterator[Call]:
    if call.name == "Retrieve":
        yield call
    for each in call.arguments:
        if isinstance(each, Call):
            yield from _retrieves(each)


def _facts(functions: GraphFunctions) -> Iterator[str]:
    for each in functions.observed:
        if each.found is not None:
            yield each.text


def _called(call: Call, found: Observation, *, trial: int, step: int) -> Called:
    values = found.found
    paths = dict.fromkeys(values.combined or (each.words for each in values.candidates)) if values else {}
    numbers = [str(each.number) for each in values.numbers] if values else []
    return Called(
        name=call.name,
        arguments=tuple(call_text(each) if isinstance(each, Call) else each for each in call.arguments),
        paths=tuple(paths)[:NAMES],
        names=tuple(numbers or (each.name for each in values.values))[:NAMES] if values else (),
        total=(values.total if values.total is not None else len(values.values)) if values else 0,
        failed=found.found is None,
        trial=trial,
        step=step,
    )
