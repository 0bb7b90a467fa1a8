"""Batches requests: if several threads send prompts at about the same time, one call answers all these prompts."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from kgqa.errors import ModelUnavailable
from kgqa.llm.client import Completion, Prompt
from kgqa.net.threads import ThreadPool, wait_for_all


@dataclass(frozen=True, eq=False)
class _BatchedRequest:
    prompts: list[Prompt]
    arrived: float
    future: Future[list[Completion]] = field(default_factory=Future)


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
        self._complete = complete
        self._wait = wait
        self._max_batch = max_batch
        self._changed = threading.Condition()
        self._waiting: deque[_BatchedRequest] = deque()
        self._running: list[_BatchedRequest] = []
        self._thread = ThreadPool(1, name="kgqa-batcher")
        self._closed = False

    def complete(
        self, prompts: Sequence[Prompt], *, deadline: float | None = None, stop: threading.Event | None = None
    ) -> list[Completion]:
        """Return one completion for each prompt, in order.

        Raises:
            TimeoutError: The deadline has passed, or `stop` was set.
            ModelUnavailable: The batcher is closed, or was closed while this request waited.

        Any error of the call to the model is raised for every request in that call.
        """
        if not prompts:
            return []
        request = _BatchedRequest(list(prompts), time.monotonic())
        with self._changed:
            if self._closed:
                raise _closed()
            self._waiting.append(request)
            self._thread.submit(self._run)
            self._changed.notify()
        try:
            wait_for_all([request.future], deadline=deadline, stop=stop)
            return request.future.result()
        finally:
            request.future.cancel()  # after an interrupt, the reply is not needed; has no effect on a finished request

    def close(self) -> None:
        """Fail all requests immediately, even those in a running call; may be called more than once."""
        with self._changed:
            self._closed = True
            self._thread.close()
            self._changed.notify()
            _fail((*self._running, *self._waiting), _closed())
            self._waiting.clear()

    # ---- in the thread ----

    def _run(self) -> None:
        """Send the requests that wait, if an earlier run has not sent them."""
        batch = self._running = self._next()
        if not batch:
            return
        prompts = [prompt for request in batch for prompt in request.prompts]
        try:
            completions = self._complete(prompts)
            if len(completions) != len(prompts):
                raise RuntimeError(f"{len(prompts)} prompts returned {len(completions)} completions")
        except BaseException as error:  # noqa: BLE001  # raised in the waiting threads, while this thread continues
            _fail(batch, error)
            return
        rest = iter(completions)
        for request in batch:
            with suppress(InvalidStateError):  # `close` has ended the request
                request.future.set_result(list(islice(rest, len(request.prompts))))

    def _next(self) -> list[_BatchedRequest]:
        batch: list[_BatchedRequest] = []
        with self._changed:
            if self._waiting:
                left = self._waiting[0].arrived + self._wait - time.monotonic()
                self._changed.wait_for(self._need_not_wait, timeout=left)
            size = 0
            while self._waiting and (not batch or size + len(self._waiting[0].prompts) <= self._max_batch):
                request = self._waiting.popleft()
                if request.future.set_running_or_notify_cancel():
                    batch.append(request)
                    size += len(request.prompts)
        return batch

    def _need_not_wait(self) -> bool:
        return self._closed or sum(len(request.prompts) for request in self._waiting) >= self._max_batch


def _fail(requests: Iterable[_BatchedRequest], error: BaseException) -> None:
    for request in requests:
        with suppress(InvalidStateError):  # the request has ended
            request.future.set_exception(error)


def _closed() -> ModelUnavailable:
    return ModelUnavailable("The language model was closed during a request.", "Open it again to continue.")
