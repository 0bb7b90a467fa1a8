"""The events of a question's trace: one frozen class per kind, each with its words.

A method records an event with `trace.record(Pool(hop=1, paths=keys))`. Its JSON is `{kind, at, ...}` with one key per
field (docs/events.md). A method of another package records subclasses of `Event` of its own:

    class Visited(Event, frozen=True):
        '''The nodes that a round of the search visited.'''
        nodes: tuple[str, ...]

        def in_words(self) -> str:
            return f"visited {len(self.nodes)} nodes"

Fields may hold only JSON values: strings, numbers, booleans, None, and tuples and mappings of these. A class with
`is_step = True` is a step of the answer: reports and notebooks show its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from kgqa.storage.loading import convert
from kgqa.trace.acting import (
    ActingEvent,
    ActionRead,
    AnswerVerified,
    Called,
    EditDecided,
    EditProposed,
    Finished,
    ProposedSource,
    Reflected,
    Seen,
    StepPlanned,
    TaskGiven,
)
from kgqa.trace.event import Event, UnknownEvent
from kgqa.trace.problems import (
    Failed,
    GaveUp,
    Leaks,
    NoReply,
    Reasoning,
    StageModels,
    Timeout,
)
from kgqa.trace.search import (
    Accepted,
    Clauses,
    Composed,
    ConditionsRead,
    CuesRead,
    Entities,
    Expanded,
    Joined,
    Judged,
    Kept,
    Linked,
    LinkedMention,
    Masked,
    MatchPlayed,
    PathsRanked,
    Pool,
    RankedPath,
    Rated,
    Read,
    ReadCondition,
    Rejected,
    Shortlist,
)
from kgqa.trace.text import (
    DraftClaim,
    Drafted,
    DraftVerified,
    EvidenceEdited,
    Grounded,
    LocalFact,
    PiecesKept,
    Planned,
    Retrieved,
    StepAnswered,
    Stopped,
    SubQuestion,
    SufficiencyJudged,
    TextEvent,
)
from kgqa.trace.words import step_lines

__all__ = [
    "KINDS",
    "Accepted",
    "ActingEvent",
    "ActionRead",
    "AnswerVerified",
    "Called",
    "Clauses",
    "Composed",
    "ConditionsRead",
    "CuesRead",
    "DraftClaim",
    "DraftVerified",
    "Drafted",
    "EditDecided",
    "EditProposed",
    "Entities",
    "Event",
    "EvidenceEdited",
    "Expanded",
    "Failed",
    "Finished",
    "GaveUp",
    "Grounded",
    "Joined",
    "Judged",
    "Kept",
    "Leaks",
    "Linked",
    "LinkedMention",
    "LocalFact",
    "Masked",
    "MatchPlayed",
    "NoReply",
    "PathsRanked",
    "PiecesKept",
    "Planned",
    "Pool",
    "ProposedSource",
    "RankedPath",
    "Rated",
    "Read",
    "ReadCondition",
    "Reasoning",
    "Reflected",
    "Rejected",
    "Retrieved",
    "Seen",
    "Shortlist",
    "StageModels",
    "StepAnswered",
    "StepPlanned",
    "Stopped",
    "SubQuestion",
    "SufficiencyJudged",
    "TaskGiven",
    "TextEvent",
    "Timeout",
    "UnknownEvent",
    "read_event",
    "step_lines",
]

AnyEvent = (
    Linked | Masked | CuesRead | Clauses | Expanded | Pool | Shortlist | MatchPlayed | Kept | Entities | Joined
    | PathsRanked | ConditionsRead | Accepted | Rejected | Rated | Judged | Composed | Read
    | Retrieved | Planned | Grounded | PiecesKept | StepAnswered | EvidenceEdited | SufficiencyJudged | Drafted
    | DraftVerified | Stopped
    | TaskGiven | StepPlanned | ActionRead | Called | Seen | Finished | AnswerVerified | Reflected | EditProposed
    | EditDecided
    | StageModels | NoReply | Reasoning | Leaks | Timeout | GaveUp | Failed
)  # fmt: skip
"""An event of kgqa, told apart by its kind; docs/events.md lists them in this order."""
KINDS: tuple[type[Event], ...] = get_args(AnyEvent)
"""All event classes of kgqa."""


def read_event(data: Mapping[str, Any]) -> Event:
    """Restore an event from its JSON object `{kind, at, ...}`; never raises.

    Returns:
        An event of the class of its kind, without keys that are not fields; an `UnknownEvent` with all the data if the
        kind is not one of kgqa, or the fields do not fit it.
    """
    try:
        event: Event = convert(data, AnyEvent)
    except ValueError:
        kind, at = data.get("kind"), data.get("at")
        values = {str(key): value for key, value in data.items() if key not in ("kind", "at")}
        number = at if isinstance(at, (int, float)) else 0.0
        return UnknownEvent(kind if isinstance(kind, str) else "", values, at=number)
    return event
