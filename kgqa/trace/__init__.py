"""The events of a question's trace: one frozen class per kind, each with its words.

A method records an event with `trace.record(Pool(hop=1, paths=keys))`. Its JSON is `{kind, at, ...}` with one key per
field (docs/events.md). A method of another package records subclasses of `Event` of its own:

    class Visited(Event, frozen=True):
        '''The nodes that a round of the search visited.'''
        nodes: tuple[str, ...]

        def in_words(self) -> str:
            return f"visited {len(self.nodes)} nodes"

Fields may hold only JSON values: strings, numbers, booleans, None, and tuples and mappings of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

from msgspec import ValidationError, convert

from kgqa.trace.acting import (
    ActingEvent,
    ActionRead,
    AnswerVerified,
    Called,
    EditAccepted,
    EditGated,
    EditProposed,
    FactNeeded,
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
    NoWalks,
    Reasoning,
    StageModels,
    Timeout,
    Unparsed,
)
from kgqa.trace.search import (
    Accepted,
    Checked,
    Clauses,
    Composed,
    ConditionsRead,
    Converged,
    CuesRead,
    Entities,
    EntitiesFiltered,
    Expanded,
    Joined,
    Judged,
    Kept,
    Linked,
    LinkedMention,
    Masked,
    MatchPlayed,
    Met,
    NoIntersection,
    PathsRanked,
    Pool,
    RankedPath,
    Rated,
    Read,
    ReadCondition,
    Rejected,
    Shortlist,
    Shown,
    Sufficient,
    Unsupported,
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

__all__ = [
    "KINDS",
    "Accepted",
    "ActingEvent",
    "ActionRead",
    "AnswerVerified",
    "Called",
    "Checked",
    "Clauses",
    "Composed",
    "ConditionsRead",
    "Converged",
    "CuesRead",
    "DraftClaim",
    "DraftVerified",
    "Drafted",
    "EditAccepted",
    "EditGated",
    "EditProposed",
    "Entities",
    "EntitiesFiltered",
    "Event",
    "EvidenceEdited",
    "Expanded",
    "FactNeeded",
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
    "Met",
    "NoIntersection",
    "NoReply",
    "NoWalks",
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
    "Shown",
    "StageModels",
    "StepAnswered",
    "StepPlanned",
    "Stopped",
    "SubQuestion",
    "SufficiencyJudged",
    "Sufficient",
    "TaskGiven",
    "TextEvent",
    "Timeout",
    "UnknownEvent",
    "Unparsed",
    "Unsupported",
    "read_event",
]

KINDS: tuple[type[Event], ...] = (
    Linked, Masked, Shown, CuesRead, Clauses, Unsupported, Expanded, Pool, Shortlist, MatchPlayed, Kept,
    EntitiesFiltered, Entities, Joined, NoIntersection, PathsRanked, ConditionsRead, Met, Accepted, Sufficient,
    Converged, Rejected, Rated, Judged, Composed, Read, Checked, Retrieved,
    Planned, Grounded, PiecesKept, StepAnswered, EvidenceEdited, SufficiencyJudged, Drafted, DraftVerified, Stopped,
    TaskGiven, StepPlanned, FactNeeded, ActionRead, Called, Seen, Finished, AnswerVerified, Reflected, EditProposed,
    EditGated, EditAccepted, StageModels, Unparsed, NoReply,
    Reasoning, Leaks, Timeout, GaveUp, NoWalks, Failed,
)  # fmt: skip
"""All event classes of kgqa, in the order in which docs/events.md lists them."""
AnyEvent: Any = reduce(or_, KINDS)
"""An event of kgqa, told apart by its kind."""


def read_event(data: Mapping[str, Any]) -> Event:
    """Restore an event from its JSON object `{kind, at, ...}`; never raises.

    Returns:
        An event of the class of its kind, without keys that are not fields; an `UnknownEvent` with all the data if the
        kind is not one of kgqa, or the fields do not fit it.
    """
    try:
        event: Event = convert(data, AnyEvent)
    except ValidationError:
        kind, at = data.get("kind"), data.get("at")
        values = {str(key): value for key, value in data.items() if key not in ("kind", "at")}
        number = at if isinstance(at, (int, float)) else 0.0
        return UnknownEvent(kind if isinstance(kind, str) else "", values, at=number)
    return event
