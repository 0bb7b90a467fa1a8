"""What each client may ask: questions at a time and per minute, tokens and cost per day."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kgqa.settings.values import Settings
from kgqa.trace import Event
from kgqa.trace.trace import Budget, BudgetExhausted, Trace

BODY_BYTES = 256 << 10
"""Largest body of a request."""
READ_SECONDS = 10.0
"""How long the headers of a request, and then its body, may take to arrive."""
QUERY_ROWS = 1000
"""Most rows of a client's own SPARQL query."""
MAX_CLIENTS = 10_000
DAY = 86_400


class LimitReached(Exception):
    """A client has reached a limit. `retry_after`: seconds until it may ask again."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = max(1, round(retry_after))


@dataclass
class _Client:
    running: int = 0
    starts: deque[float] = field(default_factory=deque)
    day: int = 0
    cost: float = 0.0
    tokens: int = 0


class ClientLimits:
    """Counts what each client asks. The counts are kept in memory: they start at zero with the service. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._at_once = settings.serve.client_questions
        self._per_minute = settings.serve.client_per_minute
        self._cost = settings.serve.client_cost
        self._tokens = settings.serve.client_tokens
        self._clients: dict[str, _Client] = {}
        self._lock = threading.Lock()

    def begin(self, name: str) -> None:
        """Count a question of a client. `end` must be called for it.

        Raises:
            LimitReached: the client may not ask now.
        """
        now = time.monotonic()
        with self._lock:
            client = self._client(name, int(time.time() // DAY))
            if client.running >= self._at_once:
                raise LimitReached(f"You have {self._at_once} questions in progress, which is the limit.", 1)
            self._check(client)
            while client.starts and client.starts[0] <= now - 60:
                client.starts.popleft()
            if self._per_minute is not None:
                if len(client.starts) >= self._per_minute:
                    message = f"You may ask {self._per_minute} question{'s' * (self._per_minute > 1)} per minute."
                    raise LimitReached(message, client.starts[0] + 60 - now)
                client.starts.append(now)
            client.running += 1

    def end(self, name: str) -> None:
        """Count the end of a question."""
        with self._lock:
            client = self._client(name, int(time.time() // DAY))
            client.running = max(0, client.running - 1)

    def spend(self, name: str, *, cost: float, tokens: int) -> None:
        """Count what a client's questions use."""
        with self._lock:
            client = self._client(name, int(time.time() // DAY))
            client.cost += cost
            client.tokens += tokens

    def check(self, name: str) -> None:
        """Raise LimitReached if a client has used up the cost or the tokens of the day."""
        with self._lock:
            self._check(self._client(name, int(time.time() // DAY)))

    def _check(self, client: _Client) -> None:
        midnight = DAY - time.time() % DAY
        if self._cost is not None and client.cost >= self._cost:
            raise LimitReached(f"Your questions of today have cost {self._cost:g} USD, the limit.", midnight)
        if self._tokens is not None and client.tokens >= self._tokens:
            raise LimitReached(f"Your questions of today have used {self._tokens:,} tokens, the limit.", midnight)

    def _client(self, name: str, day: int) -> _Client:
        client = self._clients.get(name)
        if client is None:
            if len(self._clients) >= MAX_CLIENTS:  # those that use nothing of a limit now may be forgotten
                recent = time.monotonic() - 60
                self._clients = {
                    each: known
                    for each, known in self._clients.items()
                    if known.running
                    or (known.day == day and (known.cost or known.tokens))
                    or recent < max(known.starts, default=0)
                }
            client = self._clients[name] = _Client(day=day)
        if client.day != day:
            client.day, client.cost, client.tokens = day, 0.0, 0
        return client


class ClientTrace(Trace):
    """The trace of a client's question: each model call counts for the limits of the day as soon as it is made."""

    def __init__(self, budget: Budget, *, listener: Callable[[Event], None], limits: ClientLimits, client: str) -> None:
        super().__init__(budget, listener=listener)
        self._limits, self._client = limits, client

    def charge_calls(self, stage: str, calls: int) -> None:
        try:
            self._limits.check(self._client)
        except LimitReached as error:
            raise BudgetExhausted(str(error).rstrip(".")) from None
        super().charge_calls(stage, calls)

    def tally(self, stage: str, **amounts: Any) -> None:
        super().tally(stage, **amounts)
        tokens = amounts.get("prompt_tokens", 0) + amounts.get("completion_tokens", 0)
        self._limits.spend(self._client, cost=amounts.get("cost") or 0.0, tokens=tokens)
