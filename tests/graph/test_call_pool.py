"""The pool of concurrent calls: order of results, limits and errors."""

from __future__ import annotations

import threading
import time

import pytest

from kgqa.errors import StoreTimeout, StoreUnavailable
from kgqa.graph.call_pool import CallPool


@pytest.fixture
def new_pool():
    """Return `new_pool(most) -> CallPool`; the pools are closed after the test."""
    opened = []

    def new_pool(most):
        opened.append(CallPool(lambda: most))
        return opened[-1]

    yield new_pool
    for each in opened:
        each.close()


class CountingFunction:
    """A function that counts its concurrent calls; each call runs `gate`, which may block."""

    def __init__(self, gate=None):
        self.under_way = self.most = 0
        self.begun = []
        self._lock = threading.Lock()
        self._gate = gate

    def __call__(self, number):
        with self._lock:
            self.begun.append(number)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        try:
            if self._gate is not None:
                self._gate(self)
            else:
                time.sleep(0.002 * (7 * number % 5))  # later items end first
            return -number
        finally:
            with self._lock:
                self.under_way -= 1


def wait_for(condition, seconds=5.0):
    """Wait for a condition, at most the given seconds."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("most", [0, 1, 3, 8])
def test_results_come_in_order(new_pool, most):
    assert new_pool(most).map(CountingFunction(), range(20)) == [-number for number in range(20)]
    assert new_pool(most).map(CountingFunction(), []) == []


@pytest.mark.parametrize("most", [1, 4])
def test_concurrency_limit(new_pool, most):
    busy = CountingFunction(lambda busy: wait_for(lambda: busy.most >= most, 0.5))
    new_pool(most).map(busy, range(12))
    assert busy.most == most


def test_questions_share_the_threads(new_pool):
    calls, busy = new_pool(4), CountingFunction(lambda busy: time.sleep(0.01))
    threads = [threading.Thread(target=calls.map, args=(busy, range(10))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(busy.begun) == 30 and busy.most <= 3 + 3


@pytest.mark.parametrize("most", [1, 4])
def test_tolerated_error_replaces_its_result(new_pool, most):
    def late(number):
        if number == 2:
            raise StoreTimeout("too late")
        return number

    first, second, third, fourth = new_pool(most).map(late, range(4), tolerated=(StoreTimeout,))
    assert (first, second, fourth) == (0, 1, 3) and isinstance(third, StoreTimeout)


@pytest.mark.parametrize("most", [1, 4])
def test_first_error_in_order_is_raised_and_stops_new_calls(new_pool, most):
    started = []

    def fail(number):
        started.append(number)
        if number == 1:
            wait_for(lambda: 2 in started, 0.2)  # item 2 fails before item 1
        raise StoreUnavailable(f"gone {number}")

    with pytest.raises(StoreUnavailable, match="gone 0"):
        new_pool(most).map(fail, range(100))
    assert len(started) <= most


def test_ctrl_c_does_not_wait(new_pool):
    go, mine = threading.Event(), threading.current_thread()
    others = threading.Semaphore(0)

    def wait(number):
        if threading.current_thread() is mine:
            others.acquire(timeout=5)
            raise KeyboardInterrupt
        others.release()
        go.wait(30)

    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            new_pool(3).map(wait, range(10))
        assert time.monotonic() - started < 10
    finally:
        go.set()


def test_calls_can_be_nested(new_pool):
    calls = new_pool(3)
    found = calls.map(lambda number: sum(calls.map(lambda each: each, range(number))), range(12))
    assert found == [sum(range(number)) for number in range(12)]
