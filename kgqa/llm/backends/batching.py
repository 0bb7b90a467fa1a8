"""Batches requests: if several threads send prompts at about the same time, one call answers all these prompts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue

from kgqa.errors import ModelUnavailable
from kgqa.llm.client import Completion, Prompt
from kgqa.net.threads import ThreadPool, wait_for_all


class RequestBatcher:
    """A thread that merges requests into calls, one call at a time. Thread-safe.

    Intended for a model in this process, because such a model answers many prompts almost as fast as one prompt.

    Args:
        complete: Returns one completion for each prompt, in order; called only in the batcher's thread.
        wait: Seconds that a call waits for further requests.
    """

    def __init__(self, complete: Callable[[list[Prompt]], list[Completion]], *, wait: float = 0.02) -> None:
        self._complete = complete
        self._wait = wait
        self._waiting: SimpleQueue[tuple[Sequence[Prompt], Future[list[Completion]]]] = SimpleQueue()
        self._unfinished: set[Future[list[Completion]]] = set()
        self._thread = ThreadPool(1, name="kgqa-batcher")

    def complete(
        self, prompts: Sequence[Prompt], *, deadline: float | None = None, stop: threading.Event | None = None
    ) -> list[Completion]:
        """Return one completion for each prompt, in order.

        Raises:
            TimeoutError: The deadline has passed, or `stop` was set.
            ModelUnavailable: The batcher is closed, or was closed while this request waited.

        Any error of the call to the model is raised for every request in that call.
        """
        future: Future[list[Completion]] = Future()
        self._unfinished.add(future)
        try:
            self._waiting.put((prompts, future))
            try:
                self._thread.submit(self._run)
            except RuntimeError:
                raise ModelUnavailable("The language model is closed.") from None
            wait_for_all([future], deadline=deadline, stop=stop)
            return future.result()
        finally:
            future.cancel()  # after an interrupt, the reply is not needed; has no effect on a finished request
            self._unfinished.discard(future)

    def close(self) -> None:
        """Fail all requests immediately, even those in a running call; may be called more than once."""
        self._thread.close()
        for future in list(self._unfinished):
            with suppress(InvalidStateError):
                future.set_exception(ModelUnavailable("The language model was closed during a request."))

    def _run(self) -> None:
        """Answer the requests that wait, if an earlier run has not answered them."""
        if self._waiting.empty():
            return
        time.sleep(self._wait)
        batch = []
        with suppress(Empty):
            while True:
                batch.append(self._waiting.get_nowait())
        batch = [(prompts, future) for prompts, future in batch if future.set_running_or_notify_cancel()]
        try:
            completions = iter(self._complete([prompt for prompts, _ in batch for prompt in prompts]))
        except BaseException as error:  # noqa: BLE001  # raised in the waiting threads, while this thread continues
            for _, future in batch:
                with suppress(InvalidStateError):  # `close` has ended the request
                    future.set_exception(error)
            return
        for prompts, future in batch:
            answered = list(islice(completions, len(prompts)))
            with suppress(InvalidStateError):
                future.set_result(answered)
