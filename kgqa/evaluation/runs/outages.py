"""Detects server outages by the failures of questions and by probing the servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from kgqa.evaluation.runs.records import Record
from kgqa.trace import Event, NoReply, Timeout, read_event

OLD_CLASSES = {"NoPlace": "QueueTimeout", "BrokenOff": "ConnectionLost"}
"""Map from the names of failure classes in kgqa 0.1, still found in run folders, to the current names."""
QUEUE_TIMEOUTS = frozenset({"QueueTimeout", "NoPlace"})
"""Failure class of a query that was not sent: the current name and the name in kgqa 0.1."""
OUTAGE_CLASSES = frozenset(
    {"QueueTimeout", "StoreUnavailable", "LoginRefused", "ConnectionLost", "ModelUnavailable", *OLD_CLASSES}
)
"""Failure classes that are caused by a server and not by the question."""
REFUSED = "ModelRefused"
"""Failure class of a request that the language model refuses. If every question has it, a setting is wrong."""
TOLERATED = 0.02
"""Largest share of questions that may be lost to servers in a finished run."""
MAX_IN_A_ROW = 25
"""A run stops if this many questions in a row are lost to servers."""
FEW_IN_A_ROW = 5
OUTAGE_SECONDS = 45.0
"""A run stops if a server does not reply for this many seconds; a server can be restarted in this time."""
QUIET_SECONDS = 15.0
"""The servers are probed if no question succeeds for this many seconds."""
PROBE_SECONDS = 10.0
PAUSE_SECONDS = 5.0
DOUBTFUL_SECONDS = 120.0
"""Failures up to this many seconds before an outage is noticed may be caused by the outage."""

Probe = Callable[[float], Sequence[str]]
"""Function that takes a time limit in seconds and returns the servers that did not reply within this time."""


def outage_class(record: Record) -> str:
    """Return the failure class of a question that is lost to a server, and an empty string for any other question.

    An answered question is also lost if one of its queries was not sent, because paths may be missing.
    """
    if record.failure in OUTAGE_CLASSES:
        return record.failure
    timeouts = (event.error for event in _events(record) if isinstance(event, Timeout))
    return "QueueTimeout" if any(error in QUEUE_TIMEOUTS for error in timeouts) else ""


def tolerable(lost: int, total: int) -> bool:
    """Whether a run of `total` questions counts as done although `lost` questions are lost to servers."""
    return lost <= TOLERATED * total


class OutageWatch:
    """Watches the records of a run and probes the servers if no question succeeds. Not thread-safe."""

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
        """Add the record of a question that has ended."""
        now = time.monotonic()
        if record.failure in OUTAGE_CLASSES or record.failure == REFUSED:
            self._row_since = self._row_since if self._row else now
            self._row.append(record)
            self._suspected = now
        elif outage_class(record) or _cut_short(record):
            # a timeout does not prove an outage, but during an outage the answer is incomplete
            self._cut_short = [each for each in self._cut_short if now - each[0] <= DOUBTFUL_SECONDS]
            self._cut_short.append((now, record))
            self._suspected = now
        else:  # the question may not have used the suspected server, so the suspicion remains
            self._row.clear()
            with self._lock:
                self._alive = now

    def reason(self) -> str:
        """Return why the run must stop, or ''. Call this method often, because it also starts the probes."""
        now = time.monotonic()
        with self._lock:
            quiet, down_since, down = now - self._alive, self._down_since, self._down
            doubtful = quiet >= QUIET_SECONDS or self._suspected or down_since
            if doubtful and not self._probing and now >= self._probe_after:
                self._probing = True
                threading.Thread(target=self._probe_servers, name="kgqa-probe", daemon=True).start()
        if down_since and now - down_since >= OUTAGE_SECONDS:
            return _outage_text(down, now - down_since)
        count = len(self._row)
        if count >= MAX_IN_A_ROW or (count >= FEW_IN_A_ROW and now - self._row_since >= OUTAGE_SECONDS):
            since = _clock(now - self._row_since)
            return f"{count} questions in a row failed since {since}: {self._row[-1].answer.get('reason', '')}"
        return ""

    def final_reason(self, asked: int) -> str:
        """Return the same as `reason`, but after the last question; if the last questions failed, probe again.

        Args:
            asked: number of questions asked.
        """
        if len(self._row) == asked >= FEW_IN_A_ROW:
            return f"all {asked:,} questions asked failed: {self._row[-1].answer.get('reason', '')}"
        if not (self._suspected or self._down_since):
            return ""
        self._probe_servers()
        with self._lock:
            return _outage_text(self._down, time.monotonic() - self._down_since) if self._down_since else ""

    def cut_short(self) -> list[Record]:
        """Return the questions that timed out or were refused shortly before the outage was noticed."""
        now = time.monotonic()
        late = [record for at, record in self._cut_short if now - at <= DOUBTFUL_SECONDS and not outage_class(record)]
        return late + [record for record in self._row if not outage_class(record)]

    def _probe_servers(self) -> None:
        started = time.monotonic()
        try:
            down = self._probe(PROBE_SECONDS)
        except Exception:  # noqa: BLE001 - a store or model from a plugin may raise any exception
            down = None
        with self._lock:
            self._probing = False
            self._probe_after = time.monotonic() + PAUSE_SECONDS
            if down:
                self._down = down
                self._down_since = self._down_since or started
            elif down is not None:
                self._alive, self._down_since = max(self._alive, started), 0.0
                if self._suspected <= started:  # later failures may come from a later outage
                    self._suspected = 0.0


def _outage_text(servers: Sequence[str], seconds: float) -> str:
    return f"{' and '.join(servers)} has not answered since {_clock(seconds)} ({seconds:.0f} s)"


def _clock(seconds_ago: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(time.time() - seconds_ago))


def _cut_short(record: Record) -> bool:
    """Whether a query of the question timed out, or the language model could not be reached."""
    return any(
        isinstance(event, Timeout) or (isinstance(event, NoReply) and event.failure == "unreachable")
        for event in _events(record)
    )


def _events(record: Record) -> Iterator[Event]:
    return map(read_event, record.answer.get("trace") or ())
