"""Events of the decision which paths answer the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgqa.trace.event import Event, optional


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
    keys: tuple[str, ...] | None = optional()


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
    conditions: tuple[str, ...] | None = optional()
    operation: str | None = optional()


@dataclass(frozen=True, kw_only=True)
class Checked(Event):
    """The exported query was run a second time. `query_class`: exact, restricted, or none if the results differ."""

    query_class: str
