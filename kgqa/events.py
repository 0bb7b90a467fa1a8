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

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """An event in a trace. `at`: seconds since the question started; set when the event is recorded."""

    kind = "event"
    """The kind in JSON. A subclass gets its own name in snake case, such as `gave_up`, unless it sets another."""
    at: float = field(default=0.0, kw_only=True)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = cls.__dict__.get("kind") or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @property
    def detail(self) -> dict[str, Any]:
        """The fields as JSON data, without `at` and without optional fields that are None."""
        values = [(field, getattr(self, field.name)) for field in fields(self) if field.name != "at"]
        return {
            field.metadata.get("formerly", field.name): _plain(value)
            for field, value in values
            if value is not None or "optional" not in field.metadata
        }


@dataclass(frozen=True)
class UnknownEvent(Event):
    """An event of another package or version, or one whose JSON does not fit its kind."""

    kind: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def detail(self) -> dict[str, Any]:
        """The event's JSON data, unchanged."""
        return dict(self.values)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _optional() -> Any:
    """Declare a field that is left out of the JSON while it is None."""
    return field(default=None, metadata={"optional": True})


# The topics and the wording of the question


@dataclass(frozen=True)
class LinkedMention:
    """A part of the question, and the short ids of the entities that it may mean, most likely first (at most 5).

    `exact`: whether the text is the whole name of the first entity.
    """

    text: str
    entities: tuple[str, ...]
    exact: bool = True


@dataclass(frozen=True, kw_only=True)
class Linked(Event):
    """The parts of the question that name entities of the graph."""

    mentions: tuple[LinkedMention, ...]


@dataclass(frozen=True, kw_only=True)
class Masked(Event):
    """The question, with its topics masked, as the ranking compares it with paths.

    `unmasked`: number of topics without a mention in the question. `leaks`: number of names that are still readable.
    """

    question: str
    unmasked: int
    leaks: int


@dataclass(frozen=True, kw_only=True)
class Shown(Event):
    """The question as prompts show it."""

    question: str


@dataclass(frozen=True, kw_only=True)
class CuesRead(Event):
    """What the wording of the question says about the path.

    `words`: words for the hops, from the topic outward. `hops`: number of hops that the wording suggests. `asked_for`:
    the kind of answer, such as "person"; "" if unknown.
    """

    kind = "cues"
    words: tuple[str, ...]
    hops: int
    asked_for: str


@dataclass(frozen=True, kw_only=True)
class Clauses(Event):
    """The clause of the question for each topic, by the topic's mark in prompts; empty after an unusable reply."""

    clauses: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Unsupported(Event):
    """The method declined the question. `asks_for`: what paths cannot answer, such as "a count"."""

    asks_for: str


# The search


@dataclass(frozen=True, kw_only=True)
class Expanded(Event):
    """The next steps of a path were looked up.

    `path`: the path in words. `steps`: number of next steps. `through_mediators`: number of steps that lead on through
    a mediator. `approximate`: whether only some of the path's end nodes were used.
    """

    path: str
    steps: int
    through_mediators: int
    approximate: bool


@dataclass(frozen=True, kw_only=True)
class Pool(Event):
    """The candidates of a hop, before the prefilter. `paths`: their keys (`words.path_key`)."""

    hop: int
    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Shortlist(Event):
    """The candidates of a hop that passed the prefilter. `paths`: their keys, best first."""

    hop: int
    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MatchPlayed(Event):
    """One comparison of candidates, which are given in words.

    `picked`: the winners. `tie`: True if the chooser preferred none of a pair, so the first one won. `scores`: for a
    chooser that scores, the score of each candidate; None for a candidate without a usable score.
    """

    kind = "match"
    candidates: tuple[str, ...]
    picked: tuple[str, ...]
    tie: bool | None = _optional()
    scores: tuple[float | None, ...] | None = _optional()


@dataclass(frozen=True, kw_only=True)
class Kept(Event):
    """The winners of a hop, best first, in words. `keys`: their keys, if the method compares whole paths."""

    hop: int
    paths: tuple[str, ...]
    keys: tuple[str, ...] | None = _optional()


@dataclass(frozen=True, kw_only=True)
class EntitiesFiltered(Event):
    """The prefilter reduced the end nodes from which entities are selected. `pool`, `kept`: numbers of entities."""

    pool: int
    kept: int


@dataclass(frozen=True, kw_only=True)
class Entities(Event):
    """The entities from which the search continues, as shown to the chooser.

    `answered`: True if the chooser said that these entities answer the question, so the search stopped.
    """

    selected: tuple[str, ...]
    answered: bool | None = _optional()


@dataclass(frozen=True, kw_only=True)
class Joined(Event):
    """Paths from several topics meet. `paths`: the first 5 in words. `topics`: most topics that one of them joins."""

    paths: tuple[str, ...]
    topics: int


@dataclass(frozen=True, kw_only=True)
class NoIntersection(Event):
    """No paths from different topics meet; `paths` is empty and `topics` 0."""

    paths: tuple[str, ...]
    topics: int


# The decision


@dataclass(frozen=True)
class RankedPath:
    """A path in words, its score (None if a language model compared the paths), and its number of joined paths."""

    path: str
    score: float | None
    joins: int


@dataclass(frozen=True, kw_only=True)
class PathsRanked(Event):
    """The paths that may be the answer, best first. `paths`: the first 20. `keys`: the keys of all paths."""

    kind = "ranked"
    paths: tuple[RankedPath, ...]
    keys: tuple[str, ...] | None = _optional()


@dataclass(frozen=True)
class ReadCondition:
    """Words of the question, and the condition or operation that they stand for, in words."""

    words: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class ConditionsRead(Event):
    """Words of the question were read as conditions and as an operation on a path, without a language model."""

    kind = "conditions"
    path: str
    found: tuple[ReadCondition, ...]


@dataclass(frozen=True, kw_only=True)
class Met(Event):
    """The search stopped because the best path meets all topics. `topics`: number of topics."""

    path: str
    topics: int


@dataclass(frozen=True, kw_only=True)
class Accepted(Event):
    """The search stopped because the best path was accepted. `score`: None if a language model accepted the path."""

    path: str
    score: float | None


@dataclass(frozen=True, kw_only=True)
class Sufficient(Event):
    """The language model found the triples sufficient. `answers`: its first 20 answers."""

    kind = "accepted"
    answers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Converged(Event):
    """The search stopped because the best path did not change its end nodes. `answers`: number of end nodes."""

    path: str
    answers: int


@dataclass(frozen=True, kw_only=True)
class Rejected(Event):
    """A path was not accepted as the answer. `score`: None if no score decides. `key`: the key of the path."""

    path: str
    score: float | None
    key: str


@dataclass(frozen=True, kw_only=True)
class Rated(Event):
    """The confidence in the answer of a path, and the features of the path that determine it."""

    path: str
    confidence: float | None
    features: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Judged(Event):
    """The language model judged the best paths by their rows.

    `verdict`: complete, missing, wrong or unparsed. `path`: the path that answers the question or leads towards the
    answer. `conditions`: number of conditions. `operation`: its kind.
    """

    paths: tuple[str, ...]
    verdict: str
    path: str | None
    conditions: int
    operation: str | None


@dataclass(frozen=True, kw_only=True)
class Composed(Event):
    """The language model composed the answer. `said`: its answers: names, or numbers of shown entities.

    `resolved`: whether each answer names exactly one end node of a path.
    """

    said: tuple[str | int, ...]
    resolved: bool


@dataclass(frozen=True, kw_only=True)
class Read(Event):
    """The exported query of a path was run.

    `answers`: number of results. `conditions`, `operation`: those of the query in words, if it has any.
    """

    path: str
    answers: int
    conditions: tuple[str, ...] | None = _optional()
    operation: str | None = _optional()


@dataclass(frozen=True, kw_only=True)
class Checked(Event):
    """The exported query was run a second time. `query_class`: exact, restricted, or none if the results differ."""

    query_class: str


# Text corpora


@dataclass(frozen=True, kw_only=True)
class Retrieved(Event):
    """The pieces of a text corpus that were found for a query, best first, by their IRIs.

    `step`: number of the sub-question or round that the query belongs to; 0 for the question itself.
    """

    query: str
    pieces: tuple[str, ...]
    step: int = 0


# Language models


@dataclass(frozen=True, kw_only=True)
class StageModels(Event):
    """The language model and the sampling parameters of each stage."""

    kind = "models"
    stages: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Unparsed(Event):
    """Replies that could not be read, even after asking again. `count`: number of replies."""

    stage: str
    count: int


@dataclass(frozen=True, kw_only=True)
class NoReply(Event):
    """A prompt without a reply.

    `failure`: the cause, such as "unreachable". `text`: the server's message; its key in JSON is `detail`.
    """

    stage: str
    failure: str
    text: str = field(metadata={"formerly": "detail"})


@dataclass(frozen=True, kw_only=True)
class Reasoning(Event):
    """The reasoning that a model sent beside its reply; the first 2,000 characters."""

    stage: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Leaks(Event):
    """The check of all prompts of the question. `texts`: number of texts; `leaks`: texts that name a masked topic."""

    texts: int
    leaks: int


# Problems


@dataclass(frozen=True, kw_only=True)
class Timeout(Event):
    """A query exceeded its time limit. `error`: the class of the exception."""

    error: str


@dataclass(frozen=True, kw_only=True)
class GaveUp(Event):
    """A query of the search failed, and the search continued without its result. `path`: the path in words."""

    path: str | None = _optional()
    error: str


@dataclass(frozen=True, kw_only=True)
class NoWalks(Event):
    """The query for the walks of the evidence failed."""

    error: str


@dataclass(frozen=True, kw_only=True)
class Failed(Event):
    """The question ended with an error. `error`: the class of the exception."""

    error: str
    message: str


KINDS: tuple[type[Event], ...] = (
    Linked, Masked, Shown, CuesRead, Clauses, Unsupported, Expanded, Pool, Shortlist, MatchPlayed, Kept,
    EntitiesFiltered, Entities, Joined, NoIntersection, PathsRanked, ConditionsRead, Met, Accepted, Sufficient,
    Converged, Rejected, Rated, Judged, Composed, Read, Checked, Retrieved, StageModels, Unparsed, NoReply,
    Reasoning, Leaks, Timeout, GaveUp, NoWalks, Failed,
)  # fmt: skip
"""All event classes of kgqa, in the order in which docs/events.md lists them."""
