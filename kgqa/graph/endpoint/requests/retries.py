"""When a failed request is sent again: statuses worth a retry, pauses between attempts, and when to give up."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

BUSY_STATUSES = (429, 502, 503)
UPDATE_BUSY_STATUSES = (429, 503)
"""Statuses that mean an update was not started; after a 502 it may have been carried out."""
GATEWAY_STATUSES = (502, 503, 504)
"""Statuses sent by a proxy whose server is not there."""
MAX_FAILURES = 2
"""Broken connections and damaged replies after which a query is not sent again: it may be what crashes the server."""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.2, 2.0
FIRST_CONTACT_SECONDS = 2.0
"""Patience with a server that never answered: more likely its address is wrong than the server down."""


class Backoff:
    """Pauses between the attempts of one request: doubled each time, with jitter, until patience or time runs out.

    Args:
        deadline: of the request, in seconds of `time.monotonic`.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._give_up_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS

    def next_pause(self, patience: float, *, answered_before: bool) -> float | None:
        """Return the seconds to wait before the next attempt, None to give up.

        Args:
            patience: seconds to keep trying after the first failure.
            answered_before: whether the server has ever answered.
        """
        now = time.monotonic()
        patience = patience if answered_before else min(patience, FIRST_CONTACT_SECONDS)
        self._give_up_at = self._give_up_at or now + patience
        pause = self._pause * random.uniform(0.7, 1.3)
        self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)
        return None if now + pause >= min(self._give_up_at, self._deadline) else pause


def retry_after(headers: Mapping[str, str]) -> float:
    """Read the Retry-After header, a number or a date (RFC 9110, section 10.2.3).

    Returns:
        Seconds from now; 0 where there is no such header, or one that cannot be read.
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]+", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0
