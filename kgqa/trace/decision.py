"""Events of the decision which paths answer the question."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kgqa.text.words import counted
from kgqa.trace.event import Event
from kgqa.trace.phrases import listed


class RankedPath(Struct, frozen=True):
    """A path in words, its score (None if a language model compared the paths), and its number of joined paths."""

    path: str
    score: float | None
    joins: int


class PathsRanked(Event, frozen=True, tag="ranked", omit_defaults=True):
    """The paths that may be the answer, best first. `paths`: the first 20. `keys`: the keys of all paths."""

    paths: tuple[RankedPath, ...]
    keys: tuple[str, ...] = ()

    def in_words(self) -> str:
        if not self.paths:
            return "no path found"
        best = self.paths[0]
        return f"best path: {best.path}" + ("" if best.score is None else f" ({best.score:.2f})")


class ReadCondition(Struct, frozen=True):
    """Words of the question, and the condition or operation that they stand for, in words."""

    words: str
    meaning: str


class ConditionsRead(Event, frozen=True, tag="conditions"):
    """Words of the question were read as conditions and as an operation on a path, without a language model."""

    path: str
    found: tuple[ReadCondition, ...]

    def in_words(self) -> str:
        return "; ".join(f"“{each.words}” means {each.meaning}" for each in self.found)


class Met(Event, frozen=True):
    """The search stopped because the best path meets all topics. `topics`: number of topics."""

    path: str
    topics: int

    def in_words(self) -> str:
        return f"accepted: {self.path}"


class Accepted(Event, frozen=True):
    """The search stopped because the best path was accepted. `score`: None if a language model accepted the path."""

    path: str
    score: float | None

    def in_words(self) -> str:
        return f"accepted: {self.path}"


class Sufficient(Event, frozen=True):
    """The language model found the triples sufficient. `answers`: its first 20 answers."""

    answers: tuple[str, ...]


class Converged(Event, frozen=True):
    """The search stopped because the best path did not change its end nodes. `answers`: number of end nodes."""

    path: str
    answers: int

    def in_words(self) -> str:
        return f"the answers no longer change: {self.path}"


class Rejected(Event, frozen=True):
    """A path was not accepted as the answer. `score`: None if no score decides. `key`: the key of the path."""

    path: str
    score: float | None
    key: str

    def in_words(self) -> str:
        return f"not accepted: {self.path}"


class Rated(Event, frozen=True):
    """The confidence in the answer of a path, and the features of the path that determine it."""

    path: str
    confidence: float | None
    features: Mapping[str, float]


class Judged(Event, frozen=True):
    """The language model judged the best paths by their rows.

    `verdict`: complete, missing, wrong or unparsed. `path`: the path that answers the question or leads towards the
    answer. `conditions`: number of conditions. `operation`: its kind.
    """

    paths: tuple[str, ...]
    verdict: str
    path: str | None
    conditions: int
    operation: str | None

    def in_words(self) -> str:
        return f"the rows of {counted(len(self.paths), 'path')} are {self.verdict}"


class Composed(Event, frozen=True):
    """The language model composed the answer. `said`: its answers: names, or numbers of shown entities.

    `resolved`: whether each answer names exactly one end node of a path.
    """

    said: tuple[str | int, ...]
    resolved: bool

    def in_words(self) -> str:
        return f"the model answers: {listed(self.said)}"


class Read(Event, frozen=True, omit_defaults=True):
    """The exported query of a path was run.

    `answers`: number of results. `conditions`, `operation`: those of the query in words, if it has any.
    """

    path: str
    answers: int
    conditions: tuple[str, ...] = ()
    operation: str = ""

    def in_words(self) -> str:
        return f"the query of {self.path} returns {counted(self.answers, 'answer')}"


class Checked(Event, frozen=True):
    """The exported query was run a second time. `query_class`: exact, restricted, or none if the results differ."""

    query_class: str

    def in_words(self) -> str:
        results = {"exact": "exactly these answers", "restricted": "these answers, for the chosen entities"}
        return f"the query was run again: it returns {results.get(self.query_class, 'something else')}"
