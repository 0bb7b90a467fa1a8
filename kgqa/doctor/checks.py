"""The results of checks, and the overall verdict on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf

from kgqa.errors import KgqaError, PartialResult, StoreTimeout, StoreUnavailable
from kgqa.model import GraphId

Verdict = OneOf["ok", "warning", "failed", "skipped"]
ESSENTIAL = ("reachable", "graph", "schema", "tables", "labels", "latency")
"""Checks that must pass before evaluations are reliable. If an error occurs during one of them, the check fails."""
CONTENT_CHECKS = (*ESSENTIAL, "relation types", "mediators", "inverse relations", "known entities")
"""Checks of a graph's content. They fail if the server does not answer in time, or sends an incomplete result."""
LEFT_OUT = "Left out on request."
"""Result of a check that the user excluded."""
AGAIN = "Run kgqa doctor again when the server is less busy."


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    `found`: what was found, with numbers and units. `remedy`: what the user should do, empty if nothing. The verdict
    `failed` means that evaluations are not reliable; `warning`, that evaluations are reliable but slow or incomplete.
    """

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """The results of all checks.

    `graph`: None if no graph could be opened. `seconds`: total time. `complete`: False if the user stopped the checks.
    """

    checks: tuple[Check, ...]
    graph: GraphId | None
    seconds: float
    complete: bool

    @property
    def trusted(self) -> bool:
        """Whether evaluations are reliable: no check failed, and all essential checks were made."""
        return self.complete and not self.unseen and not self.count("failed")

    @property
    def unseen(self) -> tuple[str, ...]:
        """The essential checks that were not made."""
        made = {check.name for check in self.checks if check.verdict != "skipped"}
        return tuple(name for name in ESSENTIAL if name not in made)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The checks that the user excluded."""
        return tuple(check.name for check in self.checks if (check.verdict, check.found) == ("skipped", LEFT_OUT))

    def count(self, verdict: Verdict) -> int:
        """Count the checks with a verdict."""
        return sum(check.verdict == verdict for check in self.checks)


def checked(name: str, run: Callable[[], Check], *, remedy: str = "") -> Check:
    """Run a check, and convert an error to a result.

    After a timeout or a partial result, the verdict is `failed` for `CONTENT_CHECKS`, and `warning` for other checks.

    Args:
        remedy: used if the error's message does not say what to do.
    """
    try:
        return run()
    except StoreTimeout as error:
        found = f"Timed out. {error}"
        if name in CONTENT_CHECKS:  # the given remedy does not help against timeouts
            return Check(name, "failed", found, AGAIN)
        return Check(name, "warning", found, remedy or AGAIN)
    except PartialResult as error:
        verdict: Verdict = "failed" if name in CONTENT_CHECKS else "warning"
        return Check(name, verdict, *_with(split_message(str(error)), remedy))
    except StoreUnavailable as error:
        return Check(name, "failed", *_with(split_message(str(error)), remedy))
    except KgqaError as error:
        return Check(name, "failed", str(error), remedy)


def skipped(name: str, why: str) -> Check:
    """Return the result of a check that could not or should not be made."""
    return Check(name, "skipped", why)


def split_message(message: str) -> tuple[str, str]:
    """Split an error's message in two: what is wrong, and what to do (its last sentence, or the part after a colon)."""
    what, stop, next_step = message.rstrip().rpartition(". ")
    if stop and not next_step.startswith(("It says", "The server says")):
        return what + ".", _capitalised(next_step)
    what, colon, next_step = message.rstrip().partition(": ")
    if colon and not stop:
        return what + ".", _capitalised(next_step)
    return message, ""


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _with(parts: tuple[str, str], remedy: str) -> tuple[str, str]:
    return parts[0], parts[1] or remedy


def seconds_words(seconds: float) -> str:
    """Format a duration: `4 ms`, `1.3 s`."""
    return f"{1000 * seconds:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def percentile(values: list[float], share: float) -> float:
    """Return a percentile by the nearest-rank method; `share` is 0.95 for the 95th percentile.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]
