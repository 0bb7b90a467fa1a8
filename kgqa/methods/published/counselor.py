"""Graph Counselor as published: in the prompts' order, the readings and the memory of the paper's code.

Every line of a step is asked for by the same prompt, which ends with the label of the line. Calls stand at most two
deep, and their arguments end at the first closing bracket. A verdict without `[No]` accepts the answer. Of an earlier
trial only the reflection remains; the last trial counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from kgqa.llm.client import Stage
from kgqa.llm.replies.action_lines import Call
from kgqa.llm.replies.json_values import Reading, last_part
from kgqa.methods.counselor.answering import (
    METHOD,
    SHORTER,
    Trial,
    not_accepted,
    reflection,
    take_trials,
    think,
    verify,
)
from kgqa.methods.counselor.counsel import Counsel, Memory, within
from kgqa.methods.counselor.replies import MAX_LINE, Judgment, read_sentences
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Named, Question, Value
from kgqa.text.words import clean
from kgqa.trace.trace import Trace

T = TypeVar("T")
DEPTH = 2
"""Most calls inside each other."""
LABELS = {"plan": "Plan", "think": "Need", "act": "Action"}


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by Graph Counselor as published; arguments and errors as in `top.answer`. Topics are ignored."""
    empty = Answer(question, "no_answer", method=METHOD)
    counsel = partial(Counsel, empty, resources, trace, depth=DEPTH, ids_only=True)
    judge = partial(verify, read=read_published_judgment, published=True)
    trials, found = take_trials(empty, trace, counsel, PublishedTrial, judge, reflect)
    last = trials[-1] if trials and trials[-1].answer is not None else None
    return found if found is not None else not_accepted(last, trials, empty)


class PublishedTrial(Trial):
    """A trial whose lines are asked for by one prompt, and whose answer is judged whatever was seen."""

    def step(self, step: int) -> tuple[Sequence[Call], str]:
        """Ask for the plan, the missing fact and the actions; return the calls, or the problem with them."""
        if self.counsel.settings.plan == "on":
            self.add_plan(self.ask("plan", "plan", partial(read_sentences, label="plan"), step).value, step)
        think(self, step)
        return self.add_actions(self.ask("act", "act", partial(self.counsel.read_calls, published=True), step), step)

    def ask(self, name: str, stage: Stage, read: Callable[[str], Reading[T]], step: int) -> Reading[T]:
        """Send the prompt for a line of a step."""
        label, first = LABELS[name], stage == "act" and step == 1
        return self.counsel.ask(
            "published_step", stage, read, self.lines, self.memory, task=first, label=label, step=step
        )

    def refusal(self, answer: Answer) -> str:
        """Refuse nothing."""
        return ""


def read_published_judgment(text: str) -> Reading[Judgment]:
    """Read a verdict: no if the reply contains `[No]`, else yes."""
    rest = last_part(text)
    return Reading(Judgment("no" if "[no]" in rest.casefold() else "yes", clean(rest)[:MAX_LINE]))


def reflect(trial: Trial) -> Memory:
    """Return what the next trial is told: the reflection only; what the graph returned is forgotten."""
    counsel, kind = trial.counsel, trial.counsel.settings.reflect
    counsel.functions = counsel.new_functions()
    lines = within(trial.lines, SHORTER)
    if kind == "last-trial":
        return Memory("\n".join(lines))
    return Memory(reflection(trial, "reflect" if kind == "full" else f"reflect_{kind}", lines))
