"""Tournaments and choosers by name, those of other packages too (entry points `kgqa.tournaments`, `kgqa.choosers`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from kgqa.model import Candidate
from kgqa.plugins import Extension, plugin
from kgqa.rank.tournaments import listwise, pairwise
from kgqa.rank.tournaments.chooser import Chooser


@dataclass(frozen=True)
class Tournament(Extension):
    """A tournament algorithm with its parameters, and settings of its own if it has any (see `Extension`).

    Attributes:
        play: Called as `(question, candidates, chooser, *, k, record, **parameters)`; returns at most k candidates,
            best first. `kgqa.rank.tournaments.pairwise.pairwise` describes these arguments.
        parameters: Map from a keyword argument of `play` to the key of the setting that holds its value.
        orders_winners: Whether one decision compares all winners, so that they need no further comparison.
    """

    play: Callable[..., list[Candidate]]
    _: KW_ONLY
    parameters: Mapping[str, str] = field(default_factory=dict)
    orders_winners: bool = False


@dataclass(frozen=True)
class ChooserExtension(Extension):
    """A chooser with settings of its own; `open` is called with the `Resources` for each question."""

    open: Callable[[Any], Chooser]


CHUNKED = Tournament(listwise.chunked, parameters={"chunk_size": "rank.chunk"}, orders_winners=True)
SINGLE = Tournament(listwise.single, orders_winners=True)
PAIRWISE = Tournament(pairwise.pairwise)
KNOCKOUT = Tournament(pairwise.knockout)
POINTWISE = Tournament(listwise.pointwise)


def tournament(name: str) -> Tournament:
    """Return a tournament by name. An entry point from another package is a `Tournament` or a function.

    Raises:
        SettingsError: There is no such tournament, or it cannot be imported.
    """
    found = plugin("tournament", name)
    return found if isinstance(found, Tournament) else Tournament(found)


def open_chooser(name: str, resources: Any) -> Chooser:
    """Return a chooser of another package for a question, by name.

    An entry point is a `ChooserExtension`, or a function from `Resources` to a `Chooser`.

    Raises:
        SettingsError: As for `tournament`.
    """
    found = plugin("chooser", name)
    chooser: Chooser = (found.open if isinstance(found, ChooserExtension) else found)(resources)
    return chooser
