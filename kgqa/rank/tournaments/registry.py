"""Tournaments and choosers by name, those of other packages too (entry points `kgqa.tournaments`, `kgqa.choosers`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, cast

import numpy as np

from kgqa.model import Candidate
from kgqa.plugins import Extension, contained, is_ours, plugin, plugin_defect
from kgqa.rank.tournaments import listwise, pairwise, pointwise
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
POINTWISE = Tournament(pointwise.pointwise)


def tournament(name: str) -> Tournament:
    """Return a tournament by name. An entry point from another package is a `Tournament` or a function.

    Raises:
        SettingsError: There is no such tournament, it cannot be imported, or its declarations are invalid.
    """
    found = plugin("tournament", name)
    if is_ours("tournament", name):
        return cast(Tournament, found)
    found = found if isinstance(found, Tournament) else Tournament(found)
    return replace(found, play=partial(_play, name, found.play))


def _play(
    name: str,
    play: Callable[..., list[Candidate]],
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    **options: Any,
) -> list[Candidate]:
    """Play a tournament of another package and check its result."""
    with contained("tournament", name, play):
        found = play(question, candidates, chooser, k=k, **options)
    wrong = ""
    if not isinstance(found, (list, tuple)) or not all(isinstance(each, Candidate) for each in found):
        wrong = "something else than a list of candidates"
    elif len(found) > k:
        wrong = f"{len(found)} candidates, more than k = {k}"
    elif Counter(found) - Counter(candidates):
        wrong = "a candidate twice, or a candidate that is not in the pool"
    if wrong:
        raise plugin_defect("tournament", name, f"returned {wrong}")
    return list(found)


def open_chooser(name: str, resources: Any) -> Chooser:
    """Return a chooser of another package for a question, by name.

    An entry point is a `ChooserExtension`, or a function from `Resources` to a `Chooser`.

    Raises:
        SettingsError: As for `tournament`.
    """
    found = plugin("chooser", name)
    opened = found.open if isinstance(found, ChooserExtension) else found
    with contained("chooser", name, opened):
        chooser = opened(resources)
        lacking = [member for member in ("name", *_IS_REPLY) if not hasattr(chooser, member)]
    if lacking:
        raise plugin_defect("chooser", name, f"lacks {', '.join(lacking)}; see kgqa.rank.tournaments.chooser.Chooser")
    return cast(Chooser, _ForeignChooser(chooser, name, opened))


def _is_indices(reply: Any) -> bool:
    if reply is None:
        return True
    return isinstance(reply, (list, tuple, np.ndarray)) and all(isinstance(each, Integral) for each in reply)


_IS_REPLY: Mapping[str, Callable[[Any], bool]] = {
    "prefer": lambda reply: isinstance(reply, Integral),
    "pick": _is_indices,
    "pick_grouped": _is_indices,
    "score": lambda reply: isinstance(reply, (int, float, np.integer, np.floating)),
    "accept": lambda reply: reply in ("yes", "no", "unparsed"),
}
"""Map from a method of `Chooser` to a function that tells whether one of its replies has the right type."""


class _ForeignChooser:
    """A chooser of another package. Unknown exceptions and replies of a wrong type become PluginError."""

    def __init__(self, chooser: Any, name: str, opened: Any) -> None:
        self.name = str(chooser.name)
        self._chooser = chooser
        self._plugin = name
        self._opened = opened

    def __getattr__(self, member: str) -> Any:
        return partial(self._decide, member)

    def _decide(self, member: str, question: str, items: Sequence[Any], *arguments: Any, **options: Any) -> Any:
        with contained("chooser", self._plugin, self._opened):
            replies = getattr(self._chooser, member)(question, items, *arguments, **options)
            if len(replies) == len(items) and all(map(_IS_REPLY[member], replies)):
                return replies
        raise plugin_defect(
            "chooser", self._plugin, f"returned unusable replies of {member}; see kgqa.rank.tournaments.chooser.Chooser"
        )
