"""What an examination of a graph, a model and the settings says: one check a question, and whether all may be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf

from kgqa.errors import KgqaError, PartialResult, StoreTimeout, StoreUnavailable
from kgqa.model import GraphId

Verdict = OneOf["ok", "warning", "failed", "skipped"]
ESSENTIAL = ("reachable", "graph", "schema", "tables", "labels", "latency")
"""Checks without which nothing is known of a graph: one that could not be made is failed, and none may be skipped."""
MUST_BE_SEEN = (*ESSENTIAL, "relation types", "mediators", "inverse relations", "known entities")
"""Checks of what is in a graph: one that gets no answer in time, or only a part of one, is failed."""
LEFT_OUT = "Left out."
"""Why a check was skipped that somebody did not want."""
AGAIN = "Run kgqa doctor again when the server has less to do."


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the examination.

    `found` says what was seen, with its figures and units; `remedy` what to do about it, empty where nothing is to be
    done. `failed`: what an evaluation finds here cannot be trusted; `warning`: it can, but slowly, or in part.
    """

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """All checks. `graph` is None where none could be opened, `seconds` the time it all took; `complete` is False where
    somebody stopped it.
    """

    checks: tuple[Check, ...]
    graph: GraphId | None
    seconds: float
    complete: bool

    @property
    def trusted(self) -> bool:
        """Whether an evaluation on this may be trusted: nothing failed, and what is essential was looked at."""
        return self.complete and not self.unseen and not self.count("failed")

    @property
    def unseen(self) -> tuple[str, ...]:
        """The essential checks that were not made."""
        made = {check.name for check in self.checks if check.verdict != "skipped"}
        return tuple(name for name in ESSENTIAL if name not in made)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The checks that somebody did not want."""
        return tuple(check.name for check in self.checks if (check.verdict, check.found) == ("skipped", LEFT_OUT))

    def count(self, verdict: Verdict) -> int:
        """How many checks ended so."""
        return sum(check.verdict == verdict for check in self.checks)


def checked(name: str, run: Callable[[], Check], *, remedy: str = "") -> Check:
    """The result of a check; an error of kgqa's becomes one as well. An answer that came late or in part is a warning, but
    in MUST_BE_SEEN a failure: what the graph holds is then not known.

    Args:
        remedy: where the error's own message names no next step that fits.
    """
    try:
        return run()
    except StoreTimeout as error:
        found = f"Not seen: timed out. {error}"
        if name in MUST_BE_SEEN:  # its remedy is for other errors: what is late is not mended by it
            return Check(name, "failed", found, AGAIN)
        return Check(name, "warning", found, remedy or AGAIN)
    except PartialResult as error:
        verdict: Verdict = "failed" if name in MUST_BE_SEEN else "warning"
        return Check(name, verdict, *_with(what_and_next(str(error)), remedy))
    except StoreUnavailable as error:
        return Check(name, "failed", *_with(what_and_next(str(error)), remedy))
    except KgqaError as error:
        return Check(name, "failed", str(error), remedy)


def skipped(name: str, why: str) -> Check:
    """A check that could not or should not be made."""
    return Check(name, "skipped", why)


def what_and_next(message: str) -> tuple[str, str]:
    """An error's message as what happened and what to do next, which are its last sentence or what follows a colon."""
    what, stop, next_step = message.rstrip().rpartition(". ")
    if stop and not next_step.startswith(("It says", "The server says")):
        return what + ".", _begun(next_step)
    what, colon, next_step = message.rstrip().partition(": ")
    if colon and not stop:
        return what + ".", _begun(next_step)
    return message, ""


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _with(parts: tuple[str, str], remedy: str) -> tuple[str, str]:
    return parts[0], parts[1] or remedy


def seconds_words(seconds: float) -> str:
    """A time for people: `4 ms`, `1.3 s`."""
    return f"{1000 * seconds:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def percentile(values: list[float], share: float) -> float:
    """The smallest value that so large a share of the values does not exceed (nearest rank).

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("there is no percentile of nothing")
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]
