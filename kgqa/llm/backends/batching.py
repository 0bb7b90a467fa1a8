"""Batches requests: if several threads send prompts at about the same time, one call answers all these prompts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from queue import Empty, SimpleQueue

from kgqa.errors import ModelUnavailable
from kgqa.llm.client import Completion, Prompt
from kgqa.net.threads import ThreadPool, wait_for_all

_Request = tuple[list[Prompt], Future[list[Completion]]]


class RequestBatcher:
    """A thread that merges requests into calls, one call at a time. Thread-safe.

    Intended for a model in this process, because such a model answers many prompts almost as fast as one prompt.

    Args:
        complete: Returns one completion for each prompt, in order; called only in the batcher's thread.
        wait: Most seconds that the first request of a call waits for further requests.
        max_batch: Number of prompts after which a call waits for no further requests. A request is never split.
    """

    def __init__(
        self, complete: Callable[[list[Prompt]], list[Completion]], *, wait: float = 0.02, max_batch: int = 256
    ) -> None:
        self._complete = complete
        self._wait = wait
        self._max_batch = max_batch
        self._waiting: SimpleQueue[_Request] = SimpleQueue()
        self._unfinished: dict[Future[list[Completion]], None] = {}
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
        future: Future[list[Completion]] = Future()
        self._unfinished[future] = None
        try:
            if self._closed:
                raise _closed()
            self._waiting.put((list(prompts), future))
            self._thread.submit(self._run)
            wait_for_all([future], deadline=deadline, stop=stop)
            return future.result()
        finally:
            future.cancel()  # after an interrupt, the reply is not needed; has no effect on a finished request
            self._unfinished.pop(future, None)

    def close(self) -> None:
        """Fail all requests immediately, even those in a running call; may be called more than once."""
        self._closed = True
        self._thread.close()
        for future in list(self._unfinished):
            with suppress(InvalidStateError):
                future.set_exception(_closed())

    def _run(self) -> None:
        """Answer the requests that wait, if an earlier run has not answered them."""
        batch: list[_Request] = []
        prompts: list[Prompt] = []
        end = time.monotonic() + self._wait
        with suppress(Empty):
            while len(prompts) < self._max_batch:
                left = end - time.monotonic()
                request = self._waiting.get(block=bool(batch) and left > 0, timeout=max(left, 0.0) or None)
                if request[1].set_running_or_notify_cancel():
                    batch.append(request)
                    prompts += request[0]
        if not batch:
            return
        try:
            completions = self._complete(prompts)
            if len(completions) != len(prompts):
                raise RuntimeError(f"{len(prompts)} prompts returned {len(completions)} completions")
        except BaseException as error:  # noqa: BLE001  # raised in the waiting threads, while this thread continues
            for _, future in batch:
                with suppress(InvalidStateError):  # `close` has ended the request
                    future.set_exception(error)
            return
        for asked, future in batch:
            with suppress(InvalidStateError):
                future.set_result(completions[: len(asked)])
            completions = completions[len(asked) :]


def _closed() -> ModelUnavailable:
    return ModelUnavailable("The language model was closed during a request.", "Open it again to continue.")
