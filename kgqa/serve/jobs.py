"""One question that a client asked: its state, its steps, and its answer."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kgqa.serve.limits import ClientLimits, ClientTrace
from kgqa.serve.step_words import step_object
from kgqa.text.hints import PAGE, Place
from kgqa.trace import Event
from kgqa.trace.trace import Budget, Trace

MAX_STEPS = 2000
"""Maximum steps that a job keeps; later ones are left out."""


@dataclass(frozen=True)
class Asked:
    """What a client asks.

    `topics`: ids or names. `method`, `model`: names that the service offers. `client`: whose limits count. `history`:
    ids of the answers so far, to which words of the question may refer, the latest last. `place`: that of its hints.
    """

    question: str
    method: str
    model: str = ""
    topics: tuple[str, ...] = ()
    client: str = ""
    history: tuple[str, ...] = ()
    place: Place = PAGE


def new_id() -> str:
    """Return a random id of 128 bits, as 32 hexadecimal digits."""
    return secrets.token_hex(16)


@dataclass
class Job:
    """A question from its arrival to its answer. The attributes are read by other threads.

    `answer`: the JSON object of the answer as soon as there is one. `steps`: what happened so far, for people.
    """

    asked: Asked
    id: str = field(default_factory=new_id)
    arrived: float = field(default_factory=time.monotonic)
    answer: dict[str, Any] | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    future: Future[None] | None = None
    """The place of the question in the queue; None if it was answered at once."""
    _trace: Trace | None = None
    _stopped: str = ""
    _followers: list[Callable[[], None]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, budget: Budget, limits: ClientLimits) -> Trace:
        """Return the trace of the question, whose time begins now. It is stopped already if the job was."""
        trace = ClientTrace(budget, listener=self._add_step, limits=limits, client=self.asked.client)
        with self._lock:
            self._trace = trace
        if self._stopped:
            trace.stop(self._stopped)
        return trace

    def stop(self, why: str = "Stopped by the user") -> None:
        """Stop the question, now or as soon as it starts."""
        with self._lock:
            self._stopped = self._stopped or why
            trace = self._trace
        if trace is not None:
            trace.stop(why)

    @property
    def stopped(self) -> str:
        """Why the question was stopped; empty if it was not."""
        return self._stopped

    def finish(self, answer: dict[str, Any]) -> None:
        """Set the answer and wake those who wait for it."""
        self.answer = answer
        self._tell()

    def follow(self, wake: Callable[[], None]) -> None:
        """Call `wake` after each step and after the answer, from the thread of the question."""
        with self._lock:
            self._followers.append(wake)

    def add_step(self, step: dict[str, Any]) -> None:
        """Add a step {kind, at, words, detail}."""
        self.steps.append(step)
        self._tell()

    def _add_step(self, event: Event) -> None:
        if len(self.steps) < MAX_STEPS:
            self.add_step(step_object(event))

    def _tell(self) -> None:
        with self._lock:
            followers = list(self._followers)
        for wake in followers:
            with suppress(RuntimeError):  # the event loop of the follower has ended
                wake()
