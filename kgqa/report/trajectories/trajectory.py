"""The trajectory of a question: every reply of the language model and what it was shown, from the events of its trace.

Any method that records the events of `kgqa.trace.acting` has trajectories.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgqa.evaluation.metrics.retrieval import retrieval_scores
from kgqa.evaluation.metrics.rewards import Episode, TurnForm, form_of_reply
from kgqa.evaluation.runs.records import Record
from kgqa.trace import (
    ActionRead,
    Called,
    EditDecided,
    EditProposed,
    Event,
    Finished,
    Seen,
    StepPlanned,
    TaskGiven,
    read_event,
)


@dataclass(frozen=True)
class Turn:
    """A reply of the language model, and what it was shown after it.

    `reply`: the whole text. `thought`: what the model thought before it acted. `calls`: the calls that were run.
    `observation`: the text that the model was shown; empty after the last turn. `problem`: why the reply, or a part of
    it, could not be read. `form`: the structure of the reply. `trial`, `step`: as in the events.
    """

    reply: str
    thought: str = ""
    calls: tuple[str, ...] = ()
    observation: str = ""
    problem: str = ""
    form: TurnForm = field(default_factory=TurnForm)
    trial: int = 0
    step: int = 1


@dataclass(frozen=True)
class ProposedEdit:
    """An edit of the corpus that the model proposed. `rule`: the gate that rejected it; empty if it was accepted."""

    kind: str
    content: str
    target: str
    rule: str
    state: str


@dataclass(frozen=True)
class Trajectory:
    """What happened between a question and its answer.

    `group`: id of the question in its data set, which all rollouts of the question share. `rollout`: number of the
    rollout, from 0. `gold`: names and aliases of the gold answers. `answers`: the answers of the method.
    `system`, `user`: the messages before the first reply: the rules, and the question with what is shown beside it.
    `retrieval`: share of the supporting passages that the model was shown, None if the question has none.
    """

    id: str
    group: str
    question: str
    dataset: str = ""
    method: str = ""
    rollout: int = 0
    gold: tuple[str, ...] = ()
    status: str = ""
    answers: tuple[str, ...] = ()
    system: str = ""
    user: str = ""
    turns: tuple[Turn, ...] = ()
    edits: tuple[ProposedEdit, ...] = ()
    retrieval: float | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last_trial(self) -> tuple[Turn, ...]:
        """The turns of the last trial; all turns of a method without trials."""
        return tuple(turn for turn in self.turns if turn.trial == self.turns[-1].trial)

    @property
    def episode(self) -> Episode:
        """What the reward depends on: the turns of the last trial, and all edits."""
        accepted = sum(not edit.rule for edit in self.edits)
        forms = tuple(turn.form for turn in self.last_trial)
        return Episode(forms, self.retrieval, accepted, len(self.edits) - accepted)


def trajectory_of(record: Record) -> Trajectory | None:
    """Build the trajectory of a question of a run; None if the language model did not act in turns."""
    trace = [event for event in record.answer.get("trace") or () if isinstance(event, Mapping)]
    events = [read_event(event) for event in trace]
    turns = turns_of(events)
    if not turns:
        return None
    tasks = (event for event in reversed(events) if isinstance(event, TaskGiven))  # a trial has a task of its own
    task = next(tasks, TaskGiven(system="", user=""))
    scores = retrieval_scores(trace, record.support)
    return Trajectory(
        id=record.id,
        group=record.group or record.id,
        question=record.text,
        dataset=record.dataset,
        method=str(record.answer.get("method") or ""),
        rollout=record.rollout,
        gold=gold_texts(record),
        status=record.status,
        answers=tuple(str(each.get("name") or each.get("id") or "") for each in record.answer.get("answers") or ()),
        system=task.system,
        user=task.user or record.text,
        turns=turns,
        edits=_edits(events),
        retrieval=None if scores is None else (scores.kept or scores.all).recall,
        usage=_usage(record),
    )


def gold_texts(record: Record) -> tuple[str, ...]:
    """Return the names and aliases of all gold answers of a question, in order; the id of one without a name."""
    found: dict[str, None] = {}
    for reading in record.readings:
        for gold in reading:
            found.update(dict.fromkeys(text for text in (gold.name or gold.id, *gold.aliases) if text.strip()))
    return tuple(found)


def turns_of(events: Sequence[Event]) -> tuple[Turn, ...]:
    """Return the turns of a question: each begins with the plan of a step, or with a reply that has no plan."""
    found: list[Turn] = []
    for part in _parts(events):
        read = next(event for event in part if isinstance(event, ActionRead))
        plans = [event.text for event in part if isinstance(event, StepPlanned)]
        called = tuple(_call_text(event) for event in part if isinstance(event, Called))
        seen = [event.text for event in part if isinstance(event, Seen)]
        ends = (event for event in part if isinstance(event, Finished))
        end = next((each for each in ends if (each.trial, each.step) == (read.trial, read.step)), None)
        turn = Turn(
            reply=read.reply,
            thought=read.thought or "\n".join(plans),
            calls=called or (() if end else read.actions),
            observation="\n".join(seen),
            problem=read.problem,
            trial=read.trial,
            step=read.step,
        )
        found.append(replace(turn, form=_form(turn, planned=bool(plans), end=end)))
    return tuple(found)


def _parts(events: Sequence[Event]) -> Iterable[list[Event]]:
    """Yield the events of each turn; events before the first reply that are no plan are left out."""
    part: list[Event] = []
    for event in events:
        read = any(isinstance(each, ActionRead) for each in part)
        starts = isinstance(event, StepPlanned) if read else False
        if read and (starts or isinstance(event, ActionRead)):
            yield part
            part = []
        if isinstance(event, (StepPlanned, ActionRead)) or part:
            part.append(event)
    if any(isinstance(each, ActionRead) for each in part):
        yield part


def _form(turn: Turn, *, planned: bool, end: Finished | None) -> TurnForm:
    """Return the structure of a turn.

    A reply with blocks has the structure of its blocks. For another one, such as a line of calls after a plan, the
    events tell it; its answer may be a call, so what the call returned is the answer. A reply of which nothing could be
    used has no structure.
    """
    if turn.problem and not turn.calls and end is None:
        return TurnForm(stray=True)
    if any(f"<{name}" in turn.reply for name in ("think", "tool_call", "answer")):
        return form_of_reply(turn.reply)
    calls = min(1, len(turn.calls)) if planned else len(turn.calls)
    return TurnForm(
        thoughts=int(bool(turn.thought.strip())),
        calls=calls,
        answers=int(end is not None),
        answer=("; ".join(end.answers) or end.text) if end is not None else "",
        stray=bool(turn.problem),
    )


def _call_text(event: Called) -> str:
    return f"{event.name}({', '.join(event.arguments)})"


def _edits(events: Iterable[Event]) -> tuple[ProposedEdit, ...]:
    """Return the proposed edits that a gate decided on, in order."""
    proposed: dict[int, EditProposed] = {}
    found: dict[int, ProposedEdit] = {}
    for event in events:
        if isinstance(event, EditProposed):
            proposed[event.proposal] = event
        elif isinstance(event, EditDecided) and (about := proposed.get(event.proposal)):
            found[event.proposal] = ProposedEdit(about.edit, about.content, about.target_text, event.rule, event.state)
    return tuple(found.values())


def _usage(record: Record) -> dict[str, Any]:
    usage = record.answer.get("usage") or {}
    return {name: usage.get(name) for name in ("calls", "prompt_tokens", "completion_tokens") if usage.get(name)}
