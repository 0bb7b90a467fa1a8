"""Worker threads: number, order, errors and shutdown."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, wait

import pytest

from kgqa.net.workers import Workers


def test_results_and_errors():
    workers = Workers(2)
    assert [future.result(5) for future in [workers.submit(pow, i, 2) for i in range(10)]] == [i**2 for i in range(10)]
    with pytest.raises(ZeroDivisionError):
        workers.submit(divmod, 1, 0).result(5)
    assert workers.submit(pow, 2, 2).result(5) == 4  # the thread survived the error
    workers.close()


def test_thread_limit():
    workers, seen, lock = Workers(3), set(), threading.Lock()

    def note() -> None:
        with lock:
            seen.add(threading.get_ident())
        time.sleep(0.01)

    wait([workers.submit(note) for _ in range(30)], timeout=5)
    assert len(seen) == 3
    workers.close()


def test_close_cancels_waiting_jobs():
    workers, started, go = Workers(1), threading.Event(), threading.Event()
    running = workers.submit(lambda: (started.set(), go.wait(5)))
    waiting = workers.submit(pow, 1, 1)
    assert started.wait(5)
    workers.close()
    workers.close()
    assert wait([waiting], timeout=1).done
    with pytest.raises(CancelledError):
        waiting.result(0)
    go.set()
    assert running.result(5)[1]
    with pytest.raises(RuntimeError, match="closed"):
        workers.submit(pow, 1, 1)


def test_threads_end_with_their_object():
    workers = Workers(2, name="to-be-forgotten")
    workers.submit(pow, 1, 1).result(5)
    del workers
    gc.collect()
    deadline = time.monotonic() + 5
    while any(thread.name == "to-be-forgotten" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_hanging_thread_does_not_block_exit():
    program = "import time; from kgqa.net.workers import Workers; Workers(2).submit(time.sleep, 60); time.sleep(0.1)"
    program_with_reference = f"{program.replace('; Workers(2)', '; w = Workers(2); w')}"
    subprocess.run([sys.executable, "-c", program_with_reference], timeout=20, check=True)
