"""Batches requests: if several threads send prompts at about the same time, one call answers all these prompts."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from kgqa.errors import ModelUnavailable
from kgqa.llm.client import Completion, Prompt


@dataclass(frozen=True, eq=False)
class _BatchedRequest:
    prompts: list[Prompt]
    arrived: float
    future: Future[list[Completion]] = field(default_factory=Future)

    def settle(self, result: list[Completion] | None, error: BaseException | None = None) -> None:
        """Deliver the result or the error; do nothing if `close` or an interrupt has ended the request."""
        with suppress(InvalidStateError):
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(result or [])


class RequestBatcher:
    """A thread that merges requests into calls, one call at a time. Thread-safe.

    Intended for a model in this process, because such a model answers many prompts almost as fast as one prompt.
    Requests that arrive during a call are sent in the next call, which starts without a further wait.
    """

    def __init__(
        self,
        complete: Callable[[list[Prompt]], list[Completion]],
        *,
        wait: float = 0.02,
        max_batch: int = 256,
    ) -> None:
        """Create the batcher; its thread starts with the first request.

        Args:
            complete: Returns one completion for each prompt, in order; called only in the batcher's thread.
            wait: Most seconds that the first request of a call waits for further requests.
            max_batch: Most prompts in a call. A request is never split: a larger request gets a call of its own.
        """
        if wait < 0 or max_batch < 1:
            raise ValueError("`wait` must be 0 or more, and `max_batch` 1 or more")
        self._complete = complete
        self._wait = wait
        self._max_batch = max_batch
        self._changed = threading.Condition()
        self._waiting: deque[_BatchedRequest] = deque()
        self._running: list[_BatchedRequest] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def complete(self, prompts: Sequence[Prompt], *, deadline: float | None = None) -> list[Completion]:
        """Return one completion for each prompt, in order.

        Raises:
            TimeoutError: The deadline has passed.
            ModelUnavailable: The batcher is closed, or was closed while this request waited.

        Any error of the call to the model is raised for every request in that call.
        """
        if not prompts:
            return []
        request = _BatchedRequest(list(prompts), time.monotonic())
        with self._changed:
            if self._closed:
                raise _closed()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="kgqa-batcher")
                self._thread.start()
            self._waiting.append(request)
            self._changed.notify()
        try:
            return request.future.result(None if deadline is None else max(deadline - time.monotonic(), 0.0))
        except BaseException:
            request.future.cancel()  # after an interrupt, the reply is not needed; has no effect if the call failed
            raise

    def close(self) -> None:
        """Fail all requests immediately, even those in a running call; may be called more than once."""
        with self._changed:
            self._closed = True
            left = [*self._running, *self._waiting]
            self._waiting.clear()
            self._changed.notify()
        for request in left:
            request.settle(None, _closed())

    # ---- in the thread ----

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            self._run(batch)
            del batch  # frees prompts and replies while the thread waits for the next batch

    def _next(self) -> list[_BatchedRequest] | None:
        """Return the requests of the next call, [] if all were cancelled; None after `close`."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            while not self._closed and sum(len(request.prompts) for request in self._waiting) < self._max_batch:
                left = self._waiting[0].arrived + self._wait - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            if self._closed:
                return None
            batch: list[_BatchedRequest] = []
            size = 0
            while self._waiting and (not batch or size + len(self._waiting[0].prompts) <= self._max_batch):
                request = self._waiting.popleft()
                if request.future.set_running_or_notify_cancel():
                    batch.append(request)
                    size += len(request.prompts)
            self._running = batch
            return batch

    def _run(self, batch: list[_BatchedRequest]) -> None:
        if not batch:
            return
        prompts = [prompt for request in batch for prompt in request.prompts]
        try:
            completions = self._complete(prompts)
            if len(completions) != len(prompts):
                raise RuntimeError(f"{len(prompts)} prompts returned {len(completions)} completions")
        except BaseException as error:  # noqa: BLE001  # raised in the waiting threads, while this thread continues
            for request in batch:
                request.settle(None, error)
        else:
            start = 0
            for request in batch:
                request.settle(completions[start : start + len(request.prompts)])
                start += len(request.prompts)
        with self._changed:
            self._running = []


def _closed() -> ModelUnavailable:
    return ModelUnavailable("The language model was closed during a request.", "Open it again to continue.")
