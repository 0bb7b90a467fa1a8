"""The limits that a server itself sets on queries: seconds and rows.

kgqa needs these limits because of Virtuoso. If a query is sent with a time limit, Virtuoso stops at the limit and sends
the rows found so far, with status 200 and, unless the query aggregates, without any sign that rows are missing
(measured: 8 rows of many thousand). Virtuoso stops at its own limit if that is shorter than the limit sent. Therefore a
reply that arrives before the limit sent by kgqa is certain to be complete only if the server's own limit is known to be
at least as long. A query sent without a limit ends with an error at the server's own limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.errors import PartialResult, StoreUnavailable
from kgqa.graph.endpoint.profiles import Profile
from kgqa.graph.endpoint.replies.json_results import decode_rows
from kgqa.model import Literal, Value


@dataclass(frozen=True)
class ServerLimits:
    """Limits on seconds per query and rows per result; None means unknown, `math.inf` means no limit."""

    seconds: float | None = None
    rows: float | None = None

    def permit(self, seconds: float, profile: Profile) -> bool:
        """Return whether a time limit of `seconds` may be sent with a query."""
        if not (profile.timeout_parameter or profile.timeout_header):
            return False
        if self.seconds is None:
            return not profile.truncates_on_timeout
        return max(seconds, profile.min_timeout) <= self.seconds


UNKNOWN = ServerLimits()


def read_limits(chunks: Iterable[bytes]) -> ServerLimits:
    """Read the reply to a profile's `limits_query`: one row of seconds and rows; unbound or 0 means no limit.

    Returns:
        The limits; UNKNOWN if the reply has any other form.
    """
    try:
        (row,) = decode_rows(chunks, max_rows=1)
        seconds, rows = (_limit(value) for value in row)
    except (PartialResult, StoreUnavailable, ValueError):
        return UNKNOWN
    return ServerLimits(seconds, rows)


def limit_in_error(profile: Profile, status: int, body: bytes) -> float | None:
    """Return the server's own limit in seconds from the error that refuses a longer limit; None for other replies."""
    if not profile.limit_error or status < 400:
        return None
    match = re.search(profile.limit_error, body.decode("utf-8", "replace"))
    return float(match["seconds"]) if match else None


def _limit(value: Value | None) -> float | None:
    if not isinstance(value, Literal):
        return math.inf
    if not re.fullmatch(r"[0-9]{1,15}", value.value.strip()):
        return None
    return float(value.value) or math.inf
