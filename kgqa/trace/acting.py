"""Events of methods in which a language model acts in turns: it calls functions of a graph, or edits a corpus."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.trace.event import Event


@dataclass(frozen=True, kw_only=True)
class TaskGiven(Event):
    """The language model was given its task: the messages before its first reply.

    `system`: the rules and the tools. `user`: the question, with what is shown beside it.
    """

    system: str
    user: str


@dataclass(frozen=True, kw_only=True)
class StepPlanned(Event):
    """The language model planned its next step. `trial`: from 0. `step`: number of the turn in the trial, from 1."""

    text: str
    trial: int = 0
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class FactNeeded(Event):
    """The language model said which fact of the graph is missing now. `trial`, `step`: as in `StepPlanned`."""

    text: str
    trial: int = 0
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class ActionRead(Event):
    """A reply with actions was read.

    `reply`: the text of the reply. `actions`: the calls that were read, as text. `problem`: why the reply, or a part of
    it, could not be read; empty if it could. `thought`: what the model thought before it acted, if the reply says so.
    """

    reply: str
    actions: tuple[str, ...] = ()
    problem: str = ""
    thought: str = ""
    trial: int = 0
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class Called(Event):
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
    trial: int = 0
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class Seen(Event):
    """The observation that the language model was shown after its calls.

    `text`: the whole observation. `count`: number of values or texts in it. `approximate`: whether some were left out.
    """

    text: str
    count: int = 0
    approximate: bool = False
    trial: int = 0
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class Finished(Event):
    """The language model gave its answer. `grounded`: whether it follows from what was found. `why`: if not, why."""

    text: str
    answers: tuple[str, ...] = ()
    grounded: bool = False
    why: str = ""
    trial: int = 0
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class AnswerVerified(Event):
    """The answer of a trial was judged. `verdict`: yes, no or unparsed. `asked`: False if code decided, for free."""

    verdict: str
    text: str = ""
    asked: bool = True
    trial: int = 0


@dataclass(frozen=True, kw_only=True)
class Reflected(Event):
    """The language model reflected on a failed trial; the next trial reads `text`."""

    text: str
    trial: int = 0


@dataclass(frozen=True)
class ProposedSource:
    """A source of a proposed edit. `number`: as shown in the session. `iri`: IRI or URL. `trust`: its trust."""

    number: int
    iri: str
    trust: str = ""


@dataclass(frozen=True, kw_only=True)
class EditProposed(Event):
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


@dataclass(frozen=True, kw_only=True)
class EditGated(Event):
    """A gate rejected a proposed edit. `rule`: name of the gate. `why`: the reason, as the language model was told."""

    proposal: int
    rule: str
    why: str
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class EditAccepted(Event):
    """A proposed edit passed all gates.

    `edit`: IRI of the edit. `state`: overlay (seen by this question only), proposed (waits for review) or committed.
    """

    proposal: int
    edit: str
    state: str
    step: int = 1
