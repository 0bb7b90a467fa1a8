"""Counters of the service in the text format of Prometheus."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from pathlib import Path

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper limits of the histogram of durations, in seconds."""


class Metrics:
    """Requests by method, route and status with their durations, and questions by method and status. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._sums: Counter[str] = Counter()
        self._questions: Counter[tuple[str, str]] = Counter()
        self._tokens = 0
        self._cost = 0.0

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds[route][bisect_left(BUCKETS, seconds)] += 1
            self._sums[route] += seconds  # type: ignore[assignment]

    def question(self, method: str, status: str, tokens: int, cost: float) -> None:
        """Count an answered question."""
        with self._lock:
            self._questions[method, status] += 1
            self._tokens += tokens
            self._cost += cost

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """Return all metrics. `gauges`: for each name, its meaning and present value."""
        with self._lock:
            lines = _family("kgqa_requests_total", "counter", "Requests by method, route and status.")
            for (method, route, status), count in sorted(self._requests.items()):
                lines.append(f'kgqa_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
            lines += _family("kgqa_request_seconds", "histogram", "Duration of requests by route.")
            for route, counts in sorted(self._seconds.items()):
                total = 0
                for limit, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                    total += count
                    lines.append(f'kgqa_request_seconds_bucket{{route="{route}",le="{limit}"}} {total}')
                lines.append(f'kgqa_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
                lines.append(f'kgqa_request_seconds_count{{route="{route}"}} {total}')
            lines += _family("kgqa_questions_total", "counter", "Questions by method and status of the answer.")
            for (method, answer), count in sorted(self._questions.items()):
                lines.append(f'kgqa_questions_total{{method="{method}",status="{answer}"}} {count}')
            lines += [
                *_family("kgqa_tokens_total", "counter", "Tokens of language models."),
                f"kgqa_tokens_total {self._tokens}",
            ]
            lines += [
                *_family("kgqa_cost_usd_total", "counter", "Cost of language models."),
                f"kgqa_cost_usd_total {self._cost:.6f}",
            ]
        for name, (meaning, value) in gauges.items():
            lines += [*_family(name, "gauge", meaning), f"{name} {value:g}"]
        lines += [
            *_family("process_resident_memory_bytes", "gauge", "Resident memory."),
            f"process_resident_memory_bytes {_memory()}",
        ]
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]


def _memory() -> int:
    """Return the resident memory of this process in bytes; 0 if the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
