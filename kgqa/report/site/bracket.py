"""Reconstructs the tournament of a question from its trace: pool, prefilter, matches and winners of each hop."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from kgqa.report.lenient_json import number_of
from kgqa.trace import Event, Kept, MatchPlayed, PathsRanked, Pool, RankedPath, Shortlist

_HOPS = re.compile(r", | (?=(?:->|<-) )")
MAX_MATCHES = 300
MAX_CONTENDERS = 60
MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class Contender:
    """A candidate in a comparison, described by its words. `score`: None unless the chooser scores candidates."""

    words: str
    picked: bool
    score: float | None = None

    @property
    def lead(self) -> str:
        """The candidate's hops without the last one; most candidates of a stage have them in common."""
        return self.words[: _last_hop(self.words)].rstrip()

    @property
    def last(self) -> str:
        """The candidate's last hop."""
        return self.words[_last_hop(self.words) :].lstrip()


@lru_cache(4096)  # most candidates are in several comparisons
def _last_hop(words: str) -> int:
    return max((match.end() for match in _HOPS.finditer(words)), default=0)


@dataclass(frozen=True, slots=True)
class Match:
    """One comparison of candidates, one or more of which won. `tie`: the chooser preferred none, so the first one won.

    `left_out`: number of contenders that are not listed.
    """

    contenders: tuple[Contender, ...]
    tie: bool = False
    left_out: int = 0


@dataclass
class Stage:
    """The tournament of a hop, or the final comparison (`hop` is None).

    Lists hold at most `MAX_LISTED` items; counts include all items. `rounds`: the comparisons, in groups; comparisons
    in the same group do not depend on each other. `left_out`: number of comparisons that are not listed.
    """

    hop: int | None
    pool: int | None = None
    shortlist: int | None = None
    cut: list[str] = field(default_factory=list)
    rounds: list[list[Match]] = field(default_factory=list)
    matches: int = 0
    left_out: int = 0
    kept: list[str] = field(default_factory=list)
    played: dict[str, int] = field(default_factory=dict, repr=False)
    pooled: tuple[str, ...] = field(default=(), repr=False)

    @property
    def title(self) -> str:
        """The heading of the stage."""
        return "Final comparison" if self.hop is None else f"Hop {self.hop}"


def stages_of(trace: Iterable[Event]) -> list[Stage]:
    """Return the stages of a trace; empty for methods without tournaments. Events of other packages are ignored."""
    stages: list[Stage] = []
    open_: Stage | None = None
    for event in trace:
        if isinstance(event, Pool):
            open_ = Stage(event.hop or len(stages) + 1, pool=len(event.paths), pooled=event.paths)
            stages.append(open_)
        elif isinstance(event, Shortlist) and open_ is not None:
            open_.shortlist = len(event.paths)
            kept = set(event.paths)
            open_.cut = [path for path in open_.pooled if path not in kept][:MAX_LISTED]
            open_.pooled = ()
        elif isinstance(event, MatchPlayed):
            if open_ is None:
                open_ = Stage(None)
                stages.append(open_)
            _play(open_, event)
        elif isinstance(event, Kept):
            if open_ is None or open_.hop is None:
                open_ = Stage(event.hop)
                stages.append(open_)
            open_.kept = list(event.paths[:MAX_LISTED])
            open_ = None
        elif isinstance(event, PathsRanked):
            if open_ is None or open_.hop is not None:
                open_ = Stage(None)
                stages.append(open_)
            open_.kept = [_ranked(each) for each in event.paths[:MAX_LISTED]]
            open_ = None
    return stages


def _ranked(path: RankedPath) -> str:
    return path.path + ("" if path.score is None else f" ({path.score:.3f})")


def _play(stage: Stage, event: MatchPlayed) -> None:
    words = event.candidates
    stage.matches += 1
    round_ = max((stage.played.get(each, 0) for each in words), default=0)
    stage.played.update(dict.fromkeys(words, round_ + 1))
    if stage.matches > MAX_MATCHES:
        stage.left_out += 1
        return
    picked = set(event.picked)
    scores = (*event.scores, *[None] * len(words))
    contenders = tuple(Contender(each, each in picked, number_of(score)) for each, score in zip(words, scores))
    match = Match(contenders[:MAX_CONTENDERS], event.tie, max(0, len(contenders) - MAX_CONTENDERS))
    while len(stage.rounds) <= round_:
        stage.rounds.append([])
    stage.rounds[round_].append(match)
