"""Makes one call of many: what the threads of several questions ask at about the same time goes out at once."""

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
class _Request:
    prompts: list[Prompt]
    came: float
    future: Future[list[Completion]] = field(default_factory=Future)

    def settle(self, result: list[Completion] | None, error: BaseException | None = None) -> None:
        """Tell whoever waits; without effect where `close` or an interrupt was faster."""
        with suppress(InvalidStateError):
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(result or [])


class RequestBatcher:
    """A thread that merges requests into calls, one call at a time. Thread-safe.

    Meant for what runs in this process and answers many prompts hardly slower than one. What comes while a call is
    under way goes into the next one, without further waiting.
    """

    def __init__(
        self,
        complete: Callable[[list[Prompt]], list[Completion]],
        *,
        wait: float = 0.02,
        most: int = 256,
    ) -> None:
        """The thread begins with the first request.

        Args:
            complete: gives one completion for each prompt, in order; only ever called in the one thread.
            wait: seconds that the first request of a call waits for others, at most.
            most: prompts in a call. Requests are not cut: one that is larger has a call for itself.
        """
        if wait < 0 or most < 1:
            raise ValueError("wait is at least 0, and most at least 1")
        self._complete = complete
        self._wait = wait
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[_Request] = deque()
        self._running: list[_Request] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def complete(self, prompts: Sequence[Prompt], *, deadline: float | None = None) -> list[Completion]:
        """One completion for each prompt, in order; nobody waits for them after `deadline`.

        Raises:
            TimeoutError: it is later than `deadline`.
            ModelUnavailable: the gatherer is closed, or was while this request waited. And whatever the call that
                this request was part of raised.
        """
        if not prompts:
            return []
        request = _Request(list(prompts), time.monotonic())
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
            request.future.cancel()  # of an interrupt: nobody waits any more; has no effect where the call failed
            raise

    def close(self) -> None:
        """Everybody who waits is told now; a call under way is not waited for. May be called again."""
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
            del batch  # while waiting for the next one, prompts and replies of this one can go

    def _next(self) -> list[_Request] | None:
        """The requests of the next call, perhaps none that are still wanted; None after `close`."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            while not self._closed and sum(len(request.prompts) for request in self._waiting) < self._most:
                left = self._waiting[0].came + self._wait - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            if self._closed:
                return None
            batch: list[_Request] = []
            size = 0
            while self._waiting and (not batch or size + len(self._waiting[0].prompts) <= self._most):
                request = self._waiting.popleft()
                if request.future.set_running_or_notify_cancel():
                    batch.append(request)
                    size += len(request.prompts)
            self._running = batch
            return batch

    def _run(self, batch: list[_Request]) -> None:
        if not batch:
            return
        prompts = [prompt for request in batch for prompt in request.prompts]
        try:
            completions = self._complete(prompts)
            if len(completions) != len(prompts):
                raise RuntimeError(f"{len(prompts)} prompts brought {len(completions)} completions")
        except BaseException as error:  # whoever waits gets it, and the thread goes on
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
    return ModelUnavailable("The language model was closed while it was asked. Open it again to go on.")
