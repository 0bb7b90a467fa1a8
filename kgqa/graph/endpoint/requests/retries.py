"""Rules for repeating a failed request: after which HTTP statuses, after which pauses, and for how long."""

from __future__ import annotations

import random
import time

from kgqa.errors import StoreUnavailable

BUSY_STATUSES = (429, 502, 503)
UPDATE_BUSY_STATUSES = (429, 503)
"""Statuses which mean that an update was not started. After status 502, the update may have been carried out."""
GATEWAY_STATUSES = (502, 503, 504)
"""Statuses that a proxy sends when it cannot reach the server."""
MAX_FAILURES = 2
"""A query is not sent again after this many broken connections or damaged replies: it may crash the server."""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.2, 2.0
FIRST_CONTACT_SECONDS = 2.0
"""Seconds during which requests to a server that has never answered are repeated; its address is probably wrong."""


class ConnectionLost(StoreUnavailable):
    """The connection ended in the middle of a reply.

    This is not a `PartialResult`, because the cause is neither the query nor the graph: a further attempt may succeed.
    """


class Backoff:
    """Computes the pauses between the attempts of one request. Each pause is about twice as long as the previous one.

    Args:
        deadline: the deadline of the request, in seconds of `time.monotonic`.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._give_up_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS

    def next_pause(self, patience: float, *, answered_before: bool) -> float | None:
        """Return the seconds to wait before the next attempt; None to give up.

        Args:
            patience: seconds after the first failure during which the request is repeated.
            answered_before: whether the server has ever answered.
        """
        now = time.monotonic()
        patience = patience if answered_before else min(patience, FIRST_CONTACT_SECONDS)
        self._give_up_at = self._give_up_at or now + patience
        pause = self._pause * random.uniform(0.7, 1.3)
        self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)
        return None if now + pause >= min(self._give_up_at, self._deadline) else pause
