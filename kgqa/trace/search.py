"""Events of the search for paths: the topics and the wording of the question, the search, and its decisions."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kgqa.text.words import counted
from kgqa.trace.event import Event
from kgqa.trace.words import listed


class LinkedMention(Struct, frozen=True):
    """A part of the question, and the short ids of the entities that it may mean, most likely first (at most 5).

    `exact`: whether the text is the whole name of the first entity.
    """

    text: str
    entities: tuple[str, ...]
    exact: bool = True


class Linked(Event, frozen=True):
    """The parts of the question that name entities of the graph."""

    mentions: tuple[LinkedMention, ...]

    def in_words(self) -> str:
        named = [f"“{each.text}”" for each in self.mentions]
        return f"topics in the question: {listed(named)}" if named else "no topic found in the question"


class Masked(Event, frozen=True, omit_defaults=True):
    """The question, with its topics masked, as the ranking compares it with paths.

    `unmasked`: number of topics without a mention in the question. `leaks`: number of names that are still readable.
    `shown`: the question as prompts show it; "" without a language model.
    """

    question: str
    unmasked: int
    leaks: int
    shown: str = ""


class CuesRead(Event, frozen=True, tag="cues"):
    """What the wording of the question says about the path.

    `words`: words for the hops, from the topic outward. `hops`: number of hops that the wording suggests. `asked_for`:
    the kind of answer, such as "person"; "" if unknown.
    """

    words: tuple[str, ...]
    hops: int
    asked_for: str

    def in_words(self) -> str:
        wanted = f", asked for: {self.asked_for}" if self.asked_for else ""
        return f"the wording suggests {counted(self.hops, 'hop')}{wanted}"


class Clauses(Event, frozen=True):
    """The clause of the question for each topic, by the topic's mark in prompts; empty after an unusable reply."""

    clauses: Mapping[str, str]

    def in_words(self) -> str:
        return f"the question has {counted(len(self.clauses), 'clause')}"


class Expanded(Event, frozen=True):
    """The next steps of a path were looked up.

    `path`: the path in words. `steps`: number of next steps. `through_mediators`: number of steps that lead on through
    a mediator. `approximate`: whether only some of the path's end nodes were used.
    """

    path: str
    steps: int
    through_mediators: int
    approximate: bool

    def in_words(self) -> str:
        some = " (only some of the nodes)" if self.approximate else ""
        return f"{self.path}: {counted(self.steps, 'next step')}{some}"


class Pool(Event, frozen=True):
    """The candidates of a hop, before the prefilter. `paths`: their keys (`words.path_key`)."""

    hop: int
    paths: tuple[str, ...]

    def in_words(self) -> str:
        return f"hop {self.hop}: {counted(len(self.paths), 'candidate')}"


class Shortlist(Event, frozen=True):
    """The candidates that passed the prefilter at one hop. `paths`: the keys of their paths, best first."""

    hop: int
    paths: tuple[str, ...]

    def in_words(self) -> str:
        return f"hop {self.hop}: {counted(len(self.paths), 'candidate')} after the prefilter"


class MatchPlayed(Event, frozen=True, tag="match", omit_defaults=True):
    """One comparison of candidates, which are given in words.

    `picked`: the winners. `tie`: True if the chooser preferred none of a pair, so the first one won. `scores`: for a
    chooser that scores, the score of each candidate; None for a candidate without a usable score.
    """

    candidates: tuple[str, ...]
    picked: tuple[str, ...]
    tie: bool = False
    scores: tuple[float | None, ...] = ()

    def in_words(self) -> str:
        return f"compared {counted(len(self.candidates), 'path')}"


class Kept(Event, frozen=True, omit_defaults=True):
    """The winners of a hop, best first, in words. `keys`: their keys, if the method compares whole paths."""

    hop: int
    paths: tuple[str, ...]
    keys: tuple[str, ...] = ()

    def in_words(self) -> str:
        return f"hop {self.hop}: kept {listed(self.paths) or 'none'}"


class Entities(Event, frozen=True, omit_defaults=True):
    """The entities from which the search continues, as shown to the chooser.

    `reached`, `offered`: number of end nodes before and after the prefilter. `answered`: True if the chooser said that
    these entities answer the question, so the search stopped.
    """

    selected: tuple[str, ...]
    reached: int
    offered: int
    answered: bool = False

    def in_words(self) -> str:
        return f"goes on from {listed(self.selected)}"


class Joined(Event, frozen=True):
    """Paths from several topics meet, or none do.

    `paths`: the first 5 that meet, in words. `topics`: most topics that one of them joins.
    """

    paths: tuple[str, ...]
    topics: int

    def in_words(self) -> str:
        return f"paths that meet: {listed(self.paths)}" if self.paths else "no paths of the topics meet"


class RankedPath(Struct, frozen=True):
    """A path in words.

    `score`: None if a language model compared the paths. `joins`: number of paths from other topics that meet it.
    """

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
    """A phrase of the question (`words`), and the condition or operation that it stands for, for people (`meaning`)."""

    words: str
    meaning: str


class ConditionsRead(Event, frozen=True, tag="conditions"):
    """Words of the question were read as conditions and as an operation on a path, without a language model."""

    path: str
    found: tuple[ReadCondition, ...]

    def in_words(self) -> str:
        return "; ".join(f"“{each.words}” means {each.meaning}" for each in self.found)


class Accepted(Event, frozen=True, omit_defaults=True):
    """The search stopped, because what was found is enough. `why`: the reason in words.

    `path`: the accepted path; "" if the language model answered from triples. `score`: that of the path; None without
    one. `answers`: the first 20 answers of the language model.
    """

    why: str
    path: str = ""
    score: float | None = None
    answers: tuple[str, ...] = ()

    def in_words(self) -> str:
        return f"accepted, because {self.why}: {self.path or listed(self.answers)}"


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
