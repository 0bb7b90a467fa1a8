"""The events of a question's trace: one frozen class per kind.

A method records an event with `trace.record(Pool(hop=1, paths=keys))`. Its JSON is `{kind, at, ...}` with one key per
field (docs/events.md). A method of another package records subclasses of `Event` of its own:

    @dataclass(frozen=True, kw_only=True)
    class Visited(Event):
        '''The nodes that a round of the search visited.'''
        nodes: tuple[str, ...]

Fields may hold only JSON values: strings, numbers, booleans, None, and tuples and mappings of these.
`model_json.read_event` restores the classes of this module from JSON; other events become `UnknownEvent`.
"""

from __future__ import annotations

from kgqa.trace.acting import (
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
from kgqa.trace.decision import (
    Accepted,
    Checked,
    Composed,
    ConditionsRead,
    Converged,
    Judged,
    Met,
    PathsRanked,
    RankedPath,
    Rated,
    Read,
    ReadCondition,
    Rejected,
    Sufficient,
)
from kgqa.trace.event import Event, UnknownEvent
from kgqa.trace.models import (
    Leaks,
    NoReply,
    Reasoning,
    StageModels,
    Unparsed,
)
from kgqa.trace.problems import (
    Failed,
    GaveUp,
    NoWalks,
    Timeout,
)
from kgqa.trace.search import (
    Entities,
    EntitiesFiltered,
    Expanded,
    Joined,
    Kept,
    MatchPlayed,
    NoIntersection,
    Pool,
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
)
from kgqa.trace.topics import (
    Clauses,
    CuesRead,
    Linked,
    LinkedMention,
    Masked,
    Shown,
    Unsupported,
)

__all__ = [
    "KINDS",
    "Accepted",
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
    "Timeout",
    "UnknownEvent",
    "Unparsed",
    "Unsupported",
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
