"""Tells a server that is gone from questions that fail by themselves: by class of failure, by address and by time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgqa.evaluation.runs.records import Record

QUEUE_TIMEOUTS = frozenset({"QueueTimeout", "NoPlace"})
"""The class of a query that was never sent, with its name in run folders of kgqa 0.1."""
OUTAGE_CLASSES = QUEUE_TIMEOUTS | {
    "StoreUnavailable",
    "LoginRefused",
    "ConnectionLost",
    "BrokenOff",
    "ModelUnavailable",
}
"""Failures that a server is to blame for, not the question."""
REFUSED = "ModelRefused"
"""A failure of one question that would be the same again. Where no question does better, it is the settings."""
TOLERATED = 0.02
"""The share of a run's questions that may be lost to servers before the run counts as unfinished."""
MOST_IN_A_ROW = 25
"""Questions in a row lost to servers, after which nobody believes that more will not be."""
FEW_IN_A_ROW = 5
OUTAGE_SECONDS = 45.0
"""How long nothing may answer until the run stops; a server that is restarted is back by then."""
QUIET_SECONDS = 15.0
"""How long no question may succeed until the servers are asked whether they are there."""
PROBE_SECONDS = 10.0
PAUSE_SECONDS = 5.0
DOUBTFUL_SECONDS = 120.0
"""Before an outage is noticed, so long ago a question may have been cut short by it."""

Probe = Callable[[float], Sequence[str]]
"""Given seconds, the servers that do not reply in that time."""


def outage_class(record: Record) -> str:
    """The class of the server's failure that a record is lost to, empty where it is not.

    A question that got an answer counts too where one of its queries was never sent: its path is missing.
    """
    if record.failure in OUTAGE_CLASSES:
        return record.failure
    return "QueueTimeout" if any(event.get("error") in QUEUE_TIMEOUTS for event in _events(record, "timeout")) else ""


def tolerable(lost: int, total: int) -> bool:
    """Whether so few questions are lost to servers that a run of `total` may be called done."""
    return lost <= TOLERATED * total


class OutageWatch:
    """Follows the records of a run and asks the servers when questions stop succeeding. Not thread-safe."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._lock = threading.Lock()
        self._probing = False
        self._suspected = 0.0
        self._probe_after = 0.0
        self._alive = time.monotonic()
        self._down_since = 0.0
        self._down: Sequence[str] = ()
        self._row: list[Record] = []
        self._row_since = 0.0
        self._cut_short: list[tuple[float, Record]] = []

    def add(self, record: Record) -> None:
        """Take note of a question that has ended."""
        now = time.monotonic()
        if record.failure in OUTAGE_CLASSES or record.failure == REFUSED:
            self._row_since = self._row_since if self._row else now
            self._row.append(record)
            self._suspected = now
        elif outage_class(record) or _cut_short(record):
            # says nothing of the server; if that turns out to be gone, the answer is not whole
            self._cut_short = [each for each in self._cut_short if now - each[0] <= DOUBTFUL_SECONDS]
            self._cut_short.append((now, record))
            self._suspected = now
        else:  # it may have needed no server: whether that is there again only a reply of it tells
            self._row.clear()
            with self._lock:
                self._alive = now

    def reason(self) -> str:
        """Why the run has to stop, empty as long as it need not. Call it often; it starts the probes."""
        now = time.monotonic()
        with self._lock:
            quiet, down_since, down = now - self._alive, self._down_since, self._down
            doubtful = quiet >= QUIET_SECONDS or self._suspected or down_since
            if doubtful and not self._probing and now >= self._probe_after:
                self._probing = True
                threading.Thread(target=self._ask_servers, name="kgqa-probe", daemon=True).start()
        if down_since and now - down_since >= OUTAGE_SECONDS:
            return _gone(down, now - down_since)
        count = len(self._row)
        if count >= MOST_IN_A_ROW or (count >= FEW_IN_A_ROW and now - self._row_since >= OUTAGE_SECONDS):
            since = _clock(now - self._row_since)
            return f"{count} questions in a row failed since {since}: {self._row[-1].answer.get('reason', '')}"
        return ""

    def last_word(self, asked: int) -> str:
        """As `reason`, when no question is left: where the last ones failed the servers are asked once more.

        Args:
            asked: how many questions there were.
        """
        if len(self._row) == asked >= FEW_IN_A_ROW:
            return f"all {asked:,} questions asked failed: {self._row[-1].answer.get('reason', '')}"
        if not (self._suspected or self._down_since):
            return ""
        self._ask_servers()
        with self._lock:
            return _gone(self._down, time.monotonic() - self._down_since) if self._down_since else ""

    def cut_short(self) -> list[Record]:
        """Questions that ended with timeouts or were refused shortly before now: when a run stops these are its doing."""
        now = time.monotonic()
        late = [record for at, record in self._cut_short if now - at <= DOUBTFUL_SECONDS and not outage_class(record)]
        return late + [record for record in self._row if not outage_class(record)]

    def _ask_servers(self) -> None:
        started = time.monotonic()
        try:
            down = self._probe(PROBE_SECONDS)
        except Exception:  # a store or a model of another package: nothing is known of it
            down = None
        with self._lock:
            self._probing = False
            self._probe_after = time.monotonic() + PAUSE_SECONDS
            if down:
                self._down = down
                self._down_since = self._down_since or started
            elif down is not None:
                self._alive, self._down_since = max(self._alive, started), 0.0
                if self._suspected <= started:  # what failed since may have met a server that went away since
                    self._suspected = 0.0


def _gone(servers: Sequence[str], seconds: float) -> str:
    return f"{' and '.join(servers)} has not answered since {_clock(seconds)} ({seconds:.0f} s)"


def _clock(seconds_ago: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(time.time() - seconds_ago))


def _cut_short(record: Record) -> bool:
    """Whether a query of the question ran out of time, or a language model could not be reached for a prompt."""
    unreached = any(event.get("failure") == "unreachable" for event in _events(record, "no_reply"))
    return unreached or bool(_events(record, "timeout"))


def _events(record: Record, kind: str) -> list[Mapping[str, Any]]:
    return [event for event in record.answer.get("trace") or () if event.get("kind") == kind]
