"""Notices calls that a language model repeats."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_REPEATS = 3
"""How often the same call may be made before the model no longer gets on: the last time ends its turns."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """An earlier call that is made again. `first`: the step that made it first. `last`: whether it is the last time."""

    first: int
    last: bool


@dataclass
class LoopGuard:
    """The calls of one trial or session, by their texts; texts that differ in case or blanks only are the same."""

    _made: dict[str, list[int]] = field(default_factory=dict)

    def check(self, call: str, step: int) -> Repeat | None:
        """Add a call, and return what is repeated; None for a new call.

        Args:
            call: The call as text, with its arguments.
            step: The number of the step that makes it; a call counts once per step.
        """
        made = self._made.setdefault(" ".join(call.split()).casefold(), [])
        if not made or made[-1] != step:
            made.append(step)
        return Repeat(made[0], len(made) >= MAX_REPEATS) if len(made) > 1 else None
