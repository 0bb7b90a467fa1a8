"""The pool of threads: order of results, limits, errors, fairness and shutdown; waits that can be stopped."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextvars import ContextVar

import pytest

from kgqa.errors import StoreTimeout, StoreUnavailable
from kgqa.net.threads import ThreadPool, wait_for_all


class Busy:
    """A function that counts its concurrent calls."""

    def __init__(self):
        self.running = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, number):
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.002 * (7 * number % 5))  # later calls end first
        with self._lock:
            self.running -= 1
        return -number


def test_submitted_calls_have_results_errors_and_the_context_of_the_caller():
    variable: ContextVar[str] = ContextVar("variable", default="")
    pool = ThreadPool(2)
    variable.set("set by the caller")
    assert [future.result(5) for future in [pool.submit(pow, i, 2) for i in range(10)]] == [i**2 for i in range(10)]
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result(5)
    assert pool.submit(variable.get).result(5) == "set by the caller"  # a thread survived the error


def test_close_cancels_waiting_calls():
    pool, started, go = ThreadPool(1), threading.Event(), threading.Event()
    running = pool.submit(lambda: (started.set(), go.wait(5)))
    waiting = pool.submit(pow, 1, 1)
    assert started.wait(5)
    pool.close()
    pool.close()
    with pytest.raises(CancelledError):
        waiting.result(1)
    go.set()
    assert running.result(5)[1]
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(pow, 1, 1)


def test_threads_end_with_their_pool():
    pool = ThreadPool(2, name="to-be-forgotten")
    pool.submit(pow, 1, 1).result(5)
    del pool
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "to-be-forgotten":
            thread.join(5)
            assert not thread.is_alive()


def test_hanging_thread_does_not_block_exit():
    program = (
        "import time; from kgqa.net.threads import ThreadPool; p = ThreadPool(2, name='x'); p.submit(time.sleep, 60)"
    )
    subprocess.run([sys.executable, "-c", f"{program}; time.sleep(0.1)"], timeout=20, check=True)


@pytest.mark.parametrize("how", ["deadline", "stop"])
def test_wait_ends_before_its_calls(how):
    go, stop = threading.Event(), threading.Event()
    pool = ThreadPool(1)
    calls = [pool.submit(go.wait, 30)]
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(TimeoutError):
        wait_for_all(calls, **({"deadline": time.monotonic() + 0.1} if how == "deadline" else {"stop": stop}))
    go.set()
    wait_for_all(calls, deadline=time.monotonic() + 5, stop=threading.Event())


@pytest.mark.parametrize("threads", [0, 2, 7])
def test_map_keeps_the_order_and_may_be_nested(threads):
    pool, busy = ThreadPool(threads), Busy()
    assert pool.map(busy, range(20)) == [-number for number in range(20)]
    assert busy.most <= threads + 1
    assert pool.map(lambda number: sum(pool.map(int, range(number))), range(12)) == [sum(range(n)) for n in range(12)]


def test_pool_stands_back_where_there_is_no_room():
    busy = Busy()
    assert len(ThreadPool(3).map(busy, range(5), has_room=lambda: False)) == 5 and busy.most == 1


@pytest.mark.parametrize("threads", [0, 3])
def test_errors_of_map(threads):
    started = []

    def fail(number):
        started.append(number)
        raise (StoreTimeout if number == 0 else StoreUnavailable)(f"gone {number}")

    with pytest.raises(StoreUnavailable, match="gone 1"):  # the first error in order that is not tolerated
        ThreadPool(threads).map(fail, range(100), tolerated=(StoreTimeout,))
    assert len(started) <= threads + 2
    late, fine = ThreadPool(threads).map(lambda n: n or fail(n), range(2), tolerated=(StoreTimeout,))
    assert isinstance(late, StoreTimeout) and fine == 1


def test_ctrl_c_does_not_wait():
    go, mine, others = threading.Event(), threading.current_thread(), threading.Semaphore(0)

    def hang(number):
        if threading.current_thread() is mine:
            others.acquire(timeout=5)
            raise KeyboardInterrupt
        others.release()
        go.wait(30)

    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            ThreadPool(2).map(hang, range(10))
        assert time.monotonic() - started < 10
    finally:
        go.set()
