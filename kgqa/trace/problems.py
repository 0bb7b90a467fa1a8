"""Events about problems."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.trace.event import Event, optional


@dataclass(frozen=True, kw_only=True)
class Timeout(Event):
    """A query exceeded its time limit. `error`: the class of the exception."""

    error: str


@dataclass(frozen=True, kw_only=True)
class GaveUp(Event):
    """A query of the search failed, and the search continued without its result. `path`: the path in words."""

    path: str | None = optional()
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
