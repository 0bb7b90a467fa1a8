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
from kgqa.llm.replies.json_values import Reading, last_part
from kgqa.methods.counselor.answering import Calls, CounselorTrial, reflect, take_trials, think, verify
from kgqa.methods.counselor.counsel import Memory
from kgqa.methods.counselor.replies import MAX_LINE, Judgment, read_sentences
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Named, Question, Value
from kgqa.text.words import clean
from kgqa.trace.trace import Trace

T = TypeVar("T")
SHOWN_TO_REFLECT = 1_600
"""Tokens of the lines of a trial in the prompt for a reflection."""
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
    return take_trials(question, resources, trace, PublishedTrial)


class PublishedTrial(CounselorTrial):
    """A trial whose lines are asked for by one prompt, and whose answer is judged whatever was seen."""

    depth, ids_only = 2, True

    @staticmethod
    def best(trials: Sequence[CounselorTrial]) -> CounselorTrial | None:
        """Return the last trial if it has an answer."""
        return trials[-1] if trials[-1].answer is not None else None

    def step(self, step: int) -> Calls:
        """Ask for the plan, the missing fact and the actions."""
        if self.counsel.settings.plan == "on":
            self.add_line(self.ask("plan", "plan", partial(read_sentences, label="plan"), step).value, step)
        think(self, step)
        return self.add_actions(self.ask("act", "act", partial(self.counsel.read_calls, published=True), step), step)

    def ask(self, name: str, stage: Stage, read: Callable[[str], Reading[T]], step: int) -> Reading[T]:
        """Send the prompt for a line of a step."""
        label = LABELS[name]
        return self.counsel.ask("published_step", stage, read, self.lines, self.memory, label=label, step=step)

    def refusal(self) -> str:
        """Refuse nothing."""
        return ""

    def judge(self) -> None:
        """Ask the judge about the answer."""
        verify(self, read_published_judgment, published=True)

    def remember(self) -> Memory:
        """Return what the next trial is told: the reflection only; what the graph returned is forgotten."""
        self.counsel.functions = self.counsel.new_functions()
        return Memory(reflect(self, SHOWN_TO_REFLECT))


def read_published_judgment(text: str) -> Reading[Judgment]:
    """Read a verdict: no if the reply contains `[No]`, else yes."""
    rest = last_part(text)
    return Reading(Judgment("no" if "[no]" in rest.casefold() else "yes", clean(rest)[:MAX_LINE]))
