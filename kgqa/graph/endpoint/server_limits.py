"""A server's own limits: how long a query may take there, how many rows a result may have.

They matter because of Virtuoso. Told a time limit, it gives what it has by then, as a whole result with status 200, and
without any sign where the query does not aggregate (measured: 8 rows of many thousand). It takes the shorter of the limit
it is told and its own. So what arrives before the limit we told is whole only where its own is known to be no shorter.
Told nothing, it ends with an error at its own limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.errors import PartialResult, StoreUnavailable
from kgqa.graph.endpoint.profiles import Profile
from kgqa.graph.endpoint.replies.json_results import decode_rows
from kgqa.model import Literal


@dataclass(frozen=True)
class ServerLimits:
    """Seconds a query may take, rows a result may have; None where that is not known, `math.inf` where there is none."""

    seconds: float | None = None
    rows: float | None = None

    def may_be_told(self, seconds: float, profile: Profile) -> bool:
        """Whether the server may be told that a query has so many seconds."""
        if not (profile.timeout_parameter or profile.timeout_header):
            return False
        if self.seconds is None:
            return not profile.silent_timeout
        return max(seconds, profile.least_timeout) <= self.seconds


UNKNOWN = ServerLimits()


def read_limits(parts: Iterable[bytes]) -> ServerLimits:
    """The limits in a reply to a profile's `limits_query`: one row of seconds and rows; unbound or 0 is no limit.
    Where it is something else, nothing is known.
    """
    try:
        (row,) = decode_rows(parts, max_rows=1)
        seconds, most = (_number(value.value) if isinstance(value, Literal) else math.inf for value in row)
    except (PartialResult, StoreUnavailable, ValueError):
        return UNKNOWN
    return ServerLimits(seconds, most)


def refused_limit(profile: Profile, status: int, body: bytes) -> float | None:
    """The seconds a server names as its own limit when it refuses a longer one; None where that is not what it says."""
    if not profile.refused_limit or status < 400:
        return None
    match = re.search(profile.refused_limit, body.decode("utf-8", "replace"))
    return float(match["seconds"]) if match else None


def _number(text: str) -> float | None:
    if not re.fullmatch(r"[0-9]{1,15}", text.strip()):
        return None
    return float(text) or math.inf
