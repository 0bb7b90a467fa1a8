"""The results of checks, and the overall verdict on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal as OneOf

from kgqa.errors import KgqaError, PartialResult, StoreTimeout
from kgqa.model import GraphId
from kgqa.text.hints import hint_text

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


# results without a name, which `run_check` adds
ok = partial(Check, "", "ok")
warning = partial(Check, "", "warning")
failed = partial(Check, "", "failed")
skipped = partial(Check, "", "skipped")


def first_case(*cases: tuple[object, Check], otherwise: Check) -> Check:
    """Return the result of the first case whose condition is true."""
    return next((check for condition, check in cases if condition), otherwise)


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


def run_check(name: str, run: Callable[[], Check], *, remedy: str = "") -> Check:
    """Run a check, and convert an error to a result: its message is what was found, its hint is the remedy.

    After a timeout or a partial result, the verdict is `failed` for `CONTENT_CHECKS`, and `warning` for other checks.
    `remedy` is used if the error has no hint.
    """
    late: Verdict = "failed" if name in CONTENT_CHECKS else "warning"
    try:
        check = run()
        return replace(check, name=name, remedy=hint_text(check.remedy))
    except StoreTimeout as error:
        # hints about the query do not help, because it is the query of the check
        return Check(name, late, f"Timed out. {error.message}", AGAIN)
    except KgqaError as error:
        verdict = late if isinstance(error, PartialResult) else "failed"
        return Check(name, verdict, error.message, error.hint or hint_text(remedy))


def seconds_words(seconds: float) -> str:
    """Format a duration: `4 ms`, `1.3 s`."""
    return f"{1000 * seconds:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of at least one value by the nearest-rank method; `share` is 0.95 for the 95th percentile."""
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]
