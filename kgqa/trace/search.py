"""Events of the search for paths."""

from __future__ import annotations

from kgqa.text.words import counted
from kgqa.trace.event import Event
from kgqa.trace.phrases import listed


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
    """The candidates of a hop that passed the prefilter. `paths`: their keys, best first."""

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


class EntitiesFiltered(Event, frozen=True):
    """The prefilter reduced the end nodes from which entities are selected. `pool`, `kept`: numbers of entities."""

    pool: int
    kept: int


class Entities(Event, frozen=True, omit_defaults=True):
    """The entities from which the search continues, as shown to the chooser.

    `answered`: True if the chooser said that these entities answer the question, so the search stopped.
    """

    selected: tuple[str, ...]
    answered: bool = False

    def in_words(self) -> str:
        return f"goes on from {listed(self.selected)}"


class Joined(Event, frozen=True):
    """Paths from several topics meet. `paths`: the first 5 in words. `topics`: most topics that one of them joins."""

    paths: tuple[str, ...]
    topics: int

    def in_words(self) -> str:
        return f"paths that meet: {listed(self.paths)}"


class NoIntersection(Event, frozen=True):
    """No paths from different topics meet."""

    def in_words(self) -> str:
        return "no paths of the topics meet"
