"""Events of the search for paths."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.trace.event import Event, optional


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
    tie: bool | None = optional()
    scores: tuple[float | None, ...] | None = optional()


@dataclass(frozen=True, kw_only=True)
class Kept(Event):
    """The winners of a hop, best first, in words. `keys`: their keys, if the method compares whole paths."""

    hop: int
    paths: tuple[str, ...]
    keys: tuple[str, ...] | None = optional()


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
    answered: bool | None = optional()


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
