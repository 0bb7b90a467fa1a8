"""File locks that are released when the process that holds them ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_SECONDS = 2.0
"""Default wait. It outlasts short locks, held by a child between fork and exec or by a process in `held`."""
PAUSE_SECONDS = 0.05


@contextmanager
def only_one(path: Path, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[bool]:
    """Acquire an exclusive lock on a file. Yields False if another process holds it for `wait_seconds`.

    Raises:
        OSError: the file cannot be created or opened.
    """
    # private to this user, because anybody who can open the file can lock it
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _acquire(descriptor, time.monotonic() + wait_seconds)
    finally:
        os.close(descriptor)


def held(path: Path) -> bool:
    """Check whether a process holds the lock on a file; False if the file cannot be opened."""
    try:
        with open(path, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _acquire(descriptor: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE_SECONDS)
