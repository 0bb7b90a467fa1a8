"""Locks that vanish with the process that holds them."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOMENT_SECONDS = 2.0  # a program on its way to being executed has what its parent had, and whoever asks holds it too
PAUSE_SECONDS = 0.05


@contextmanager
def only_one(path: Path, *, wait_seconds: float = MOMENT_SECONDS) -> Iterator[bool]:
    """Hold the lock on a file. Yields whether it was to be had within the time; False means another process has it.

    Raises:
        OSError: the file cannot be made or opened.
    """
    # for nobody else: whoever may open it could hold it
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _taken(descriptor, time.monotonic() + wait_seconds)
    finally:
        os.close(descriptor)


def held(path: Path) -> bool:
    """Whether a process holds the lock on a file, as far as this user may know."""
    try:
        with open(path, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _taken(descriptor: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE_SECONDS)
