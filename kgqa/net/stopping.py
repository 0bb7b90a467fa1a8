"""Lets a thread that waits for another process or a server notice that its question was stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

CHECK_SECONDS = 0.1
"""How often what waits looks whether it was stopped."""
_current = threading.local()


@contextmanager
def stoppable(stop: threading.Event) -> Iterator[None]:
    """Let queries that this thread sends in the block end when `stop` is set."""
    before = current_stop()
    _current.stop = stop
    try:
        yield
    finally:
        _current.stop = before


def current_stop() -> threading.Event | None:
    """Return the event of `stoppable` in this thread; None outside its block."""
    return getattr(_current, "stop", None)
