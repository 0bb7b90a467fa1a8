"""Requests of many threads in few calls: everybody gets their own part, an error, or is told that it is over."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgqa.errors import ModelUnavailable
from kgqa.llm.backends.batching import RequestBatcher
from kgqa.llm.client import Completion, Message, Prompt

SOON = 5.0
"""Seconds after which a test has failed."""


def prompts(*texts: str) -> list[Prompt]:
    return [Prompt((Message("user", text),), "filter") for text in texts]


class Upper:
    """Answers in capitals and remembers its calls. `gate`, where it is closed, holds a call up."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.threads: set[str] = set()
        self.begun = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, batch: list[Prompt]) -> list[Completion]:
        texts = [prompt.messages[0].content for prompt in batch]
        self.calls.append(texts)
        self.threads.add(threading.current_thread().name)
        self.begun.release()
        assert self.gate.wait(SOON)
        if "bad" in texts:
            raise ValueError("a bad prompt")
        return [Completion(text.upper()) for text in texts]

    def hold(self, gatherer: RequestBatcher, pool: ThreadPoolExecutor):
        """A call is under way, and stays so until the gate is opened."""
        self.gate.clear()
        future = pool.submit(gatherer.complete, prompts("held"))
        assert self.begun.acquire(timeout=SOON)
        return future


@pytest.fixture
def model():
    return Upper()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(20) as pool:
        yield pool


@pytest.fixture
def gatherer(model):
    gatherer = RequestBatcher(model, wait=0.01)
    yield gatherer
    model.gate.set()
    gatherer.close()


def waiting(gatherer: RequestBatcher, count: int) -> None:
    end = time.monotonic() + SOON
    while len(gatherer._waiting) < count:
        assert time.monotonic() < end, "the requests did not come"
        time.sleep(0.001)


def texts(completions: list[Completion]) -> list[str]:
    return [completion.text for completion in completions]


def test_each_thread_gets_its_part_of_one_call(model, gatherer, pool):
    held = model.hold(gatherer, pool)
    asked = [[f"{n}.{i}" for i in range(n % 3 + 1)] for n in range(12)]
    futures = [pool.submit(gatherer.complete, prompts(*each)) for each in asked]
    waiting(gatherer, 12)
    model.gate.set()
    assert texts(held.result(SOON)) == ["HELD"]
    assert [texts(future.result(SOON)) for future in futures] == asked
    assert len(model.calls) == 2
    assert sorted(model.calls[1]) == sorted(text for each in asked for text in each)
    assert model.threads == {"kgqa-batcher"}


def test_threads_that_come_together_are_merged_without_a_call_under_way(model, pool):
    gatherer = RequestBatcher(model, wait=SOON, max_batch=8)  # full long before the wait is over
    barrier = threading.Barrier(8)

    def ask(n: int) -> list[str]:
        barrier.wait(SOON)
        return texts(gatherer.complete(prompts(f"t{n}")))

    assert sorted(pool.map(ask, range(8))) == [[f"T{n}"] for n in range(8)]
    assert len(model.calls) == 1
    gatherer.close()


def test_a_lonely_request_waits_no_longer_than_wait(model):
    gatherer = RequestBatcher(model, wait=0.05)
    start = time.monotonic()
    assert texts(gatherer.complete(prompts("a", "b"))) == ["A", "B"]
    assert 0.045 < time.monotonic() - start < 2
    gatherer.close()


def test_what_came_during_a_call_does_not_wait_again(model, pool):
    gatherer = RequestBatcher(model, wait=0.1)
    held = model.hold(gatherer, pool)
    future = pool.submit(gatherer.complete, prompts("late"))
    waiting(gatherer, 1)
    time.sleep(0.1)
    start = time.monotonic()
    model.gate.set()
    assert texts(future.result(SOON)) == ["LATE"]
    assert time.monotonic() - start < 0.09
    held.result(SOON)
    gatherer.close()


def test_requests_are_not_cut_and_calls_not_overfilled(model, pool):
    gatherer = RequestBatcher(model, wait=0, max_batch=4)
    model.hold(gatherer, pool)
    futures = []
    for count, size in enumerate((3, 2, 2, 9, 1), start=1):
        futures.append(pool.submit(gatherer.complete, prompts(*[f"r{count}"] * size)))
        waiting(gatherer, count)
    model.gate.set()
    assert [len(future.result(SOON)) for future in futures] == [3, 2, 2, 9, 1]
    assert [len(call) for call in model.calls] == [1, 3, 4, 9, 1]
    gatherer.close()


def test_nothing_asked_is_nothing_called(model, gatherer):
    assert gatherer.complete([]) == []
    assert model.calls == [] and gatherer._thread is None


def test_an_error_goes_to_everybody_in_the_call_and_to_nobody_else(model, gatherer, pool):
    model.hold(gatherer, pool)
    futures = [pool.submit(gatherer.complete, prompts(text)) for text in ("a", "bad", "c")]
    waiting(gatherer, 3)
    model.gate.set()
    for future in futures:
        with pytest.raises(ValueError, match="a bad prompt"):
            future.result(SOON)
    assert texts(gatherer.complete(prompts("next"))) == ["NEXT"]


def test_a_call_that_gives_too_few_is_an_error():
    gatherer = RequestBatcher(lambda batch: [], wait=0)
    with pytest.raises(RuntimeError, match="1 prompts returned 0 completions"):
        gatherer.complete(prompts("a"))
    gatherer.close()


def test_close_tells_those_in_the_call_and_those_behind_it(model, gatherer, pool):
    futures = [model.hold(gatherer, pool)]
    futures += [pool.submit(gatherer.complete, prompts(text)) for text in "ab"]
    waiting(gatherer, 2)
    gatherer.close()
    for future in futures:
        with pytest.raises(ModelUnavailable, match="closed"):
            future.result(SOON)
    gatherer.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        gatherer.complete(prompts("after"))
    model.gate.set()
    gatherer._thread.join(SOON)
    assert not gatherer._thread.is_alive()
    assert model.calls == [["held"]]


def test_close_before_anything_was_asked(model):
    gatherer = RequestBatcher(model)
    gatherer.close()
    with pytest.raises(ModelUnavailable):
        gatherer.complete(prompts("a"))


@pytest.mark.parametrize("during_the_call", [False, True])
def test_a_caller_that_is_interrupted_breaks_nobody(model, gatherer, pool, during_the_call):
    """As Ctrl-C reaches the main thread while it waits; with another signal, which cannot end the test run."""

    def interrupt(*_) -> None:
        raise KeyboardInterrupt

    def press() -> None:
        if during_the_call:
            assert model.begun.acquire(timeout=SOON)
        else:
            waiting(gatherer, 1)
        os.kill(os.getpid(), signal.SIGUSR1)

    model.gate.clear()
    held = None if during_the_call else model.hold(gatherer, pool)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        pressed = pool.submit(press)
        with pytest.raises(KeyboardInterrupt):
            gatherer.complete(prompts("mine"))
        pressed.result(SOON)
    finally:
        signal.signal(signal.SIGUSR1, before)
    other = pool.submit(gatherer.complete, prompts("other"))
    waiting(gatherer, 1 if during_the_call else 2)
    model.gate.set()
    assert texts(other.result(SOON)) == ["OTHER"]
    if held is not None:
        assert texts(held.result(SOON)) == ["HELD"]
    # what had not begun was not asked: nobody waited for it any more
    assert model.calls == [["mine" if during_the_call else "held"], ["other"]]


def test_where_nobody_waits_any_more_nothing_is_called(model, gatherer, pool):
    held = model.hold(gatherer, pool)
    pool.submit(gatherer.complete, prompts("mine"))
    waiting(gatherer, 1)
    gatherer._waiting[0].future.cancel()
    model.gate.set()
    held.result(SOON)
    assert texts(gatherer.complete(prompts("next"))) == ["NEXT"]
    assert model.calls == [["held"], ["next"]]


@pytest.mark.parametrize("options", [{"wait": -1}, {"max_batch": 0}])
def test_options_without_sense(model, options):
    with pytest.raises(ValueError):
        RequestBatcher(model, **options)


def test_many_threads_for_many_rounds(model, pool):
    gatherer = RequestBatcher(model, wait=0.001, max_batch=16)

    def ask(n: int) -> bool:
        mine = [f"{n}-{i}" for i in range(n % 4 + 1)]
        return all(texts(gatherer.complete(prompts(*mine))) == mine for _ in range(10))

    assert all(pool.map(ask, range(20)))
    assert max(map(len, model.calls)) <= 16
    assert len(model.calls) < 200
    gatherer.close()
