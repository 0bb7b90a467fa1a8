"""Concurrent calls: results in the order of the items, and no more calls at a time than allowed."""

from __future__ import annotations

import threading
import time

import pytest

from kgqa.errors import StoreTimeout, StoreUnavailable
from kgqa.graph.call_pool import CallPool


@pytest.fixture
def of():
    """`of(most) -> CallPool`; closed at the end of the test."""
    opened = []

    def of(most):
        opened.append(CallPool(lambda: most))
        return opened[-1]

    yield of
    for each in opened:
        each.close()


class Busy:
    """A function that counts its concurrent calls. `gate`: called by each to wait."""

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
                time.sleep(0.002 * (7 * number % 5))  # the last ones end first
            return -number
        finally:
            with self._lock:
                self.under_way -= 1


def until(condition, seconds=5.0):
    """Wait for a condition, at most so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("most", [0, 1, 3, 8])
def test_results_come_in_order(of, most):
    assert of(most).map(Busy(), range(20)) == [-number for number in range(20)]
    assert of(most).map(Busy(), []) == []


@pytest.mark.parametrize("most", [1, 4])
def test_so_many_are_under_way_and_no_more(of, most):
    busy = Busy(lambda busy: until(lambda: busy.most >= most, 0.5))
    of(most).map(busy, range(12))
    assert busy.most == most


def test_several_questions_share_the_helpers(of):
    calls, busy = of(4), Busy(lambda busy: time.sleep(0.01))
    threads = [threading.Thread(target=calls.map, args=(busy, range(10))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(busy.begun) == 30 and busy.most <= 3 + 3


@pytest.mark.parametrize("most", [1, 4])
def test_a_tolerated_error_stands_in_the_place_of_its_result(of, most):
    def late(number):
        if number == 2:
            raise StoreTimeout("too late")
        return number

    first, second, third, fourth = of(most).map(late, range(4), tolerated=(StoreTimeout,))
    assert (first, second, fourth) == (0, 1, 3) and isinstance(third, StoreTimeout)


@pytest.mark.parametrize("most", [1, 4])
def test_the_first_error_in_order_is_raised_and_nothing_new_begins(of, most):
    begun = []

    def fail(number):
        begun.append(number)
        if number == 1:
            until(lambda: 2 in begun, 0.2)  # the one behind it fails before it
        raise StoreUnavailable(f"gone {number}")

    with pytest.raises(StoreUnavailable, match="gone 0"):
        of(most).map(fail, range(100))
    assert len(begun) <= most


def test_ctrl_c_waits_for_nobody(of):
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
            of(3).map(wait, range(10))
        assert time.monotonic() - started < 10
    finally:
        go.set()


def test_calls_may_make_such_calls_themselves(of):
    calls = of(3)
    found = calls.map(lambda number: sum(calls.map(lambda each: each, range(number))), range(12))
    assert found == [sum(range(number)) for number in range(12)]
