"""Overhead of kgqa in comparison with the bare engine: groups of calls, their bounds, and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common import percentile
from freebase_slice import MAX_HOPS, Kind

LONG_MS = 2.0
FEW_ROWS = 100


@dataclass(frozen=True, slots=True)
class Timing:
    """Median times of a call in ms."""

    method: str
    kind: Kind
    hop: int
    queries: int
    rows: int
    kgqa: float
    store: float
    bare: float

    @property
    def group(self) -> str:
        if self.bare / self.queries <= LONG_MS:
            return "short"
        return "few rows" if self.rows / self.queries <= FEW_ROWS else "many rows"

    def overhead(self, way: str) -> float:
        """Return the extra time: in ms per query for short queries, otherwise as a share of the bare time."""
        extra = getattr(self, way) - self.bare
        return extra / self.queries if self.group == "short" else extra / self.bare


BOUNDS = {
    "few rows": (0.30, f"over {LONG_MS:g} ms, up to {FEW_ROWS} rows"),
    "many rows": (0.60, f"over {LONG_MS:g} ms, more than {FEW_ROWS} rows"),
    "short": (1.0, f"up to {LONG_MS:g} ms"),
}


def verdicts(timings: list[Timing]) -> list[dict[str, Any]]:
    """Compare each group's p50 overhead with its bound; `within` is None for an empty group."""
    found = []
    for group, (limit, words) in BOUNDS.items():
        members = [timing for timing in timings if timing.group == group]
        p50 = {way: percentile([t.overhead(way) for t in members], 0.5) for way in ("kgqa", "store")}
        p95 = percentile([t.overhead("kgqa") for t in members], 0.95)
        found.append(
            {"group": words, "calls": len(members), "unit": "ms" if group == "short" else "share", "limit": limit}
            | {"p50": p50["kgqa"], "p50_store": p50["store"], "p95": p95}
            | {"within": p50["kgqa"] <= limit if members else None}
        )
    return found


def ratios(timings: list[Timing]) -> list[dict[str, Any]]:
    """Return percentiles of time / bare time by method; `store` is the part of the worker process and its pipe."""
    found = []
    for method in ("next_steps", "ends"):
        chosen = [timing for timing in timings if timing.method == method]
        line: dict[str, Any] = {"method": method, "calls": len(chosen)}
        for way in ("kgqa", "store"):
            every = [getattr(timing, way) / timing.bare for timing in chosen]
            line |= {f"{way}_p{p}": percentile(every, p / 100) for p in (50, 95)}
        found.append(line)
    return found


def latencies(timings: list[Timing]) -> list[dict[str, Any]]:
    """Return p50 and p95 of whole calls in ms, by method, kind of topic and hop."""
    found = []
    for method in ("next_steps", "ends"):
        for kind in ("ordinary", "hub"):
            for hop in range(1, MAX_HOPS + 1):
                chosen = [t for t in timings if (t.method, t.kind, t.hop) == (method, kind, hop)]
                line: dict[str, Any] = {"method": method, "topics": kind, "hop": hop, "calls": len(chosen)}
                line["rows_p50"] = percentile([t.rows for t in chosen], 0.5)
                for way in ("kgqa", "bare"):
                    line |= {f"{way}_p{p}": percentile([getattr(t, way) for t in chosen], p / 100) for p in (50, 95)}
                found.append(line)
    return found
