"""Events of methods in which a language model acts in turns: it calls functions of a graph, or edits a corpus."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from kgqa.text.words import counted
from kgqa.trace.event import Event
from kgqa.trace.words import SHOWN, listed, shortened

_LONGEST_NAME = 60
_EDITS = ("insert", "update", "delete")
_VERDICT = re.compile(r"[\s*_]{0,20}\bjudge?ment[*_]{0,4}:[\s*_]{0,20}(?:yes|no)\W{0,20}\Z", re.IGNORECASE)


class ActingEvent(Event, frozen=True):
    """An event of a method in which a language model acts in turns. Its words leave little out."""


class TurnEvent(ActingEvent, frozen=True, kw_only=True):
    """An event in a turn of a method.

    `trial`: number of the trial, from 0. `step`: number of the turn in its trial, from 1; 0: before the first turn.
    """

    trial: int = 0
    step: int = 1

    @property
    def place(self) -> str:
        """The trial and the step, in words."""
        if not self.step:
            return "first"
        return f"trial {self.trial + 1}, step {self.step}" if self.trial else f"step {self.step}"


class TaskGiven(ActingEvent, frozen=True):
    """The language model was given its task: the messages before its first reply.

    `system`: the rules and the tools. `user`: the question, with what is shown beside it.
    """

    system: str
    user: str

    def in_words(self) -> str:
        return f"task: {shortened(self.user)}"


class StepPlanned(TurnEvent, frozen=True):
    """The language model planned its next step, or said which fact of the graph is missing now (`need`).

    `trial`: from 0. `step`: number of the turn in the trial, from 1.
    """

    text: str
    need: bool = False

    @property
    def is_step(self) -> bool:
        """Whether it is the first plan of its trial; later ones repeat much of it."""
        return self.step == 1 and not self.need

    def in_words(self) -> str:
        return f"{self.place}, {'needed' if self.need else 'plan'}: {self.text}"


class ActionRead(TurnEvent, frozen=True):
    """A reply with actions was read.

    `reply`: the text of the reply. `actions`: the calls that were read, as text. `problem`: why the reply, or a part of
    it, could not be read; empty if it could. `thought`: what the model thought before it acted, if the reply says so.
    """

    reply: str
    actions: tuple[str, ...] = ()
    problem: str = ""
    thought: str = ""

    @property
    def is_step(self) -> bool:
        """Whether something could not be read; other replies are shown by their calls."""
        return bool(self.problem)

    def in_words(self) -> str:
        acts = ", ".join(map(action_words, self.actions)) or ("no action" if self.problem else "an answer")
        return f"{self.place}: {'; '.join(filter(None, [self.thought, acts, self.problem]))}"


class Called(TurnEvent, frozen=True):
    """A function of the graph or a tool was called.

    `arguments`: as text; those of a tool as JSON. `paths`: the paths in words along which the result was found.
    `names`: the names of the first values, at most 20; of a search, of the first results. `total`: number of values
    that were found. `failed`: whether the call could not be run.
    """

    name: str
    arguments: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    total: int = 0
    failed: bool = False

    @property
    def is_step(self) -> bool:
        """Whether it is not an edit, of which `EditProposed` tells more."""
        return self.name not in _EDITS

    def in_words(self) -> str:
        paths = [] if self.failed else [path for path in self.paths if path not in self.names]
        along = f" along {listed(paths)}" if paths else ""
        return f"{self.place}: {self.call_words()} → {self.result_words()}{along}"

    @property
    def is_tool(self) -> bool:
        """Whether a tool was called, whose arguments are one JSON object, and not a function of a graph."""
        return len(self.arguments) == 1 and self.arguments[0].lstrip().startswith("{")

    def call_words(self) -> str:
        """Write a call of the graph as `Neighbour[Kimigayo, anthem of]`, and that of a tool with its arguments."""
        if self.is_tool:
            return f"{self.name}({_argument_words(_object(self.arguments[0])) or shortened(self.arguments[0])})"
        return f"{self.name}[{', '.join(self.arguments)}]"

    def result_words(self) -> str:
        """Say what the call found: its first values, or their number."""
        if self.failed:
            return "failed"
        if not self.names:
            return counted(self.total, "result" if self.is_tool else "value")
        more = self.total - len(self.names[:SHOWN])
        names = ", ".join(shortened(name, _LONGEST_NAME) for name in self.names[:SHOWN])
        return f"{names} and {more:,} more" if more > 0 else names


class Seen(TurnEvent, frozen=True):
    """The observation that the language model was shown after its calls.

    `text`: the whole observation. `count`: number of values or texts in it. `approximate`: whether some were left out.
    """

    text: str
    count: int = 0
    approximate: bool = False

    def in_words(self) -> str:
        some = " (not all)" if self.approximate else ""
        return f"{self.place}: {counted(self.count, 'value')}{some}: {shortened(self.text)}"


class Finished(TurnEvent, frozen=True):
    """The language model gave its answer. `grounded`: whether it follows from what was found. `why`: if not, why."""

    text: str
    answers: tuple[str, ...] = ()
    grounded: bool = False
    why: str = ""
    is_step = True

    def in_words(self) -> str:
        answer = listed(self.answers) or shortened(self.text) or "no answer"
        why = "follows" if self.grounded else "does not follow"
        return f"{self.place}: answer {answer} ({why} from what was found{_after_colon(self.why)})"


class AnswerVerified(ActingEvent, frozen=True):
    """The answer of a trial was judged. `verdict`: yes, no or unparsed. `asked`: False if code decided, for free."""

    verdict: str
    text: str = ""
    asked: bool = True
    trial: int = 0
    is_step = True

    def in_words(self) -> str:
        reason = _VERDICT.sub("", self.text)  # a judge's last line repeats the verdict
        return f"trial {self.trial + 1}: {self.verdict_words()}{_after_colon(reason)}"

    def verdict_words(self) -> str:
        """Say how the answer was judged, and whether that took a language model."""
        verdicts = {"yes": "answer accepted", "no": "answer rejected"}
        words = verdicts.get(self.verdict, "verdict not readable")
        return words if self.asked else f"{words} without asking a language model"


class Reflected(ActingEvent, frozen=True):
    """The language model reflected on a failed trial; the next trial reads `text`."""

    text: str
    trial: int = 0
    is_step = True

    def in_words(self) -> str:
        return f"lesson of trial {self.trial + 1}: {shortened(self.text)}"


class ProposedSource(Struct, frozen=True):
    """A source of a proposed edit. `number`: as shown in the session. `iri`: IRI or URL. `trust`: its trust."""

    number: int
    iri: str
    trust: str = ""


class EditProposed(ActingEvent, frozen=True):
    """The language model proposed an edit of the corpus.

    `proposal`: its number in the question, from 1. `edit`: insert, update or delete. `content`: the new text.
    `target`: IRI of the hyperedge that is replaced or hidden; `target_text` its text.
    """

    proposal: int
    edit: str
    content: str = ""
    target: str = ""
    target_text: str = ""
    reason: str = ""
    sources: tuple[ProposedSource, ...] = ()
    step: int = 1
    is_step = True

    def in_words(self) -> str:
        new, old = f"“{shortened(self.content)}”", f"“{shortened(self.target_text or self.target)}”"
        edits = {"insert": f"insert {new}", "update": f"replace {old} by {new}", "delete": f"delete {old}"}
        numbers = listed([each.number for each in self.sources])
        cited = f"source{'s' if len(self.sources) > 1 else ''} {numbers}" if numbers else "no source"
        return f"edit {self.proposal}, step {self.step}: {edits.get(self.edit, self.edit)} ({cited})"


class EditDecided(ActingEvent, frozen=True):
    """A proposed edit was rejected by a gate, or accepted.

    `state`: rejected, or else overlay (seen by this question only), proposed (waits for review) or committed. `edit`:
    IRI of the accepted edit. `rule`: name of the gate that rejected it; `why`: the reason, as the language model was
    told.
    """

    proposal: int
    state: str
    edit: str = ""
    rule: str = ""
    why: str = ""
    step: int = 1
    is_step = True

    def in_words(self) -> str:
        outcome = f"rejected by the gate “{self.rule}”" if self.rule else f"accepted, {self.state_words()}"
        return f"edit {self.proposal}: {outcome}{_after_colon(self.why)}"

    def state_words(self) -> str:
        """Say what became of the edit."""
        states = {
            "rejected": "rejected by a gate",
            "overlay": "seen by this question only",
            "proposed": "waits for review",
            "committed": "committed to the corpus",
        }
        return states.get(self.state, self.state)


def action_words(action: str) -> str:
    """Write an action as a call; that of a tool, which is JSON, with its name and arguments."""
    call = _object(action)
    if isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict):
        return f"{call['name']}({_argument_words(call['arguments'])})"
    return action


def _object(text: str) -> dict[str, Any]:
    """Read a JSON object; empty if the text is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _argument_words(values: dict[str, Any]) -> str:
    """Write the arguments of a tool as `query: Kimigayo`."""
    shown = (
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )
    return shortened(", ".join(shown))


def _after_colon(text: str) -> str:
    return f": {shortened(text)}" if text else ""
