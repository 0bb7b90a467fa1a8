"""Functions that the tests of clusters run on workers."""

from __future__ import annotations

import os
import signal
import time
from functools import cached_property
from pathlib import Path

from kgqa.errors import LoadError


class Squares:
    def __init__(self, key: str = "") -> None:
        self.key = key

    def __call__(self, number: int) -> int:
        return number * number


class ProcessOfFirstCall:
    @cached_property
    def opened(self) -> float:
        return time.monotonic_ns()

    def __call__(self, number: int) -> tuple[str, int, float]:
        import ray

        time.sleep(0.02)
        return ray.get_runtime_context().get_node_id(), os.getpid(), self.opened


place_of = ProcessOfFirstCall()


def fail_at_three(number: int) -> int:
    if number == 3:
        raise LoadError("There are three.", "Do not.")
    return number


def slow(number: int) -> int:
    time.sleep(0.05)
    return number


def kill_self_once(item: tuple[int, str]) -> int:
    number, marker = item
    if marker and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def kill_self(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DiesOnArrival:
    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (1,)


def variables(_: None) -> dict[str, str]:
    return dict(os.environ)
