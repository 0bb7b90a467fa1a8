"""Batching the requests of several threads: merging, errors, interruption and closing."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgqa.errors import ModelUnavailable
from kgqa.llm.backends.batching import RequestBatcher
from kgqa.llm.client import Completion, Message, Prompt

TIMEOUT = 5.0
"""Seconds a test waits before it fails."""


def prompts(*texts: str) -> list[Prompt]:
    return [Prompt((Message("user", text),), "filter") for text in texts]


class UppercaseModel:
    """A model that replies in capitals and records its calls; while `gate` is closed, calls block."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.threads: set[str] = set()
        self.started = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, batch: list[Prompt]) -> list[Completion]:
        texts = [prompt.messages[0].content for prompt in batch]
        self.calls.append(texts)
        self.threads.add(threading.current_thread().name)
        self.started.release()
        assert self.gate.wait(TIMEOUT)
        if "bad" in texts:
            raise ValueError("a bad prompt")
        return [Completion(text.upper()) for text in texts]

    def hold(self, batcher: RequestBatcher, pool: ThreadPoolExecutor):
        """Start a call that blocks until the gate is opened."""
        self.gate.clear()
        future = pool.submit(batcher.complete, prompts("held"))
        assert self.started.acquire(timeout=TIMEOUT)
        return future


@pytest.fixture
def model():
    return UppercaseModel()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(20) as pool:
        yield pool


@pytest.fixture
def batcher(model):
    batcher = RequestBatcher(model, wait=0.01)
    yield batcher
    model.gate.set()
    batcher.close()


def wait_for_requests(batcher: RequestBatcher, count: int) -> None:
    end = time.monotonic() + TIMEOUT
    while batcher._waiting.qsize() < count:
        assert time.monotonic() < end, "the requests did not come"
        time.sleep(0.001)


def texts(completions: list[Completion]) -> list[str]:
    return [completion.text for completion in completions]


def test_requests_of_several_threads_share_one_call(model, batcher, pool):
    held = model.hold(batcher, pool)
    requests = [[f"{n}.{i}" for i in range(n % 3 + 1)] for n in range(12)]
    futures = [pool.submit(batcher.complete, prompts(*each)) for each in requests]
    wait_for_requests(batcher, 12)
    model.gate.set()
    assert texts(held.result(TIMEOUT)) == ["HELD"]
    assert [texts(future.result(TIMEOUT)) for future in futures] == requests
    assert len(model.calls) == 2
    assert sorted(model.calls[1]) == sorted(text for each in requests for text in each)
    assert model.threads == {"kgqa-batcher"}


def test_simultaneous_requests_are_merged(model, pool):
    batcher = RequestBatcher(model, wait=0.5)
    barrier = threading.Barrier(8)

    def ask(n: int) -> list[str]:
        barrier.wait(TIMEOUT)
        return texts(batcher.complete(prompts(f"t{n}")))

    assert sorted(pool.map(ask, range(8))) == [[f"T{n}"] for n in range(8)]
    assert len(model.calls) == 1
    batcher.close()


def test_error_reaches_only_the_requests_of_its_call(model, batcher, pool):
    model.hold(batcher, pool)
    futures = [pool.submit(batcher.complete, prompts(text)) for text in ("a", "bad", "c")]
    wait_for_requests(batcher, 3)
    model.gate.set()
    for future in futures:
        with pytest.raises(ValueError, match="a bad prompt"):
            future.result(TIMEOUT)
    assert texts(batcher.complete(prompts("next"))) == ["NEXT"]


def test_close_raises_in_running_and_waiting_requests(model, batcher, pool):
    futures = [model.hold(batcher, pool)]
    futures += [pool.submit(batcher.complete, prompts(text)) for text in "ab"]
    wait_for_requests(batcher, 2)
    batcher.close()
    for future in futures:
        with pytest.raises(ModelUnavailable, match="closed"):
            future.result(TIMEOUT)
    batcher.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        batcher.complete(prompts("after"))
    model.gate.set()
    assert model.calls == [["held"]]
