"""Finds the ends of many relation paths, in one query for up to `BATCH` paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import PartialResult, QueryRejected, ResultCapped, StoreCrashed, StoreTimeout
from kgqa.graph.charged_queries import ChargedQueries
from kgqa.graph.query.patterns import PathPattern
from kgqa.graph.query.templates import render_part
from kgqa.graph.store import count_value
from kgqa.model import Candidate, Value

BATCH = 20
"""Most paths per query. Virtuoso rejects queries with many more branches."""
BATCH_TIME = 0.25
"""Share of the time limit of a query that a batch may take. Then its paths are looked up one by one."""
SINGLY = (StoreTimeout, PartialResult, ResultCapped, QueryRejected, StoreCrashed)
"""Errors of a batch after which its paths are looked up one by one, because a single path may be the cause."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The distinct entities and literals at the end of a path.

    `approximate` is true if some are missing because of a limit.
    """

    values: tuple[Value, ...]
    approximate: bool


Key = tuple[Any, ...]


class KnownEnds:
    """The ends of paths that are already known in a question, with the limit of their look-up. Thread-safe."""

    def __init__(self) -> None:
        self._found: dict[Key, tuple[Ends, int | None]] = {}

    def get(self, key: Key, limit: int | None) -> Ends | None:
        """Return the ends of a path, at most `limit`; None if they are not known, or not enough of them."""
        found, looked_up = self._found.get(key, (None, None))
        if found is None or (found.approximate and (limit is None or (looked_up or 0) < limit)):
            return None
        ends = _ends(found.values, limit)
        return Ends(ends.values, ends.approximate or found.approximate)

    def put(self, key: Key, ends: Ends, limit: int | None) -> None:
        """Keep the ends of a path that was looked up with this limit."""
        self._found[key] = (ends, limit)


class EndsFinder:
    """Finds the ends of paths.

    Args:
        pattern: returns the pattern of a candidate.
        queries: runs the queries.
        call_each: calls a function for each item, and returns errors of the types `tolerated` in place of results; see
            `CallPool.map`.
        row_cap: number of rows at which results of the store are cut off; None if they are not.
        timeout: maximum seconds for the query of a single path.
        known: ends that need not be looked up; the ends found are added.
    """

    def __init__(
        self,
        pattern: Callable[[Candidate], PathPattern],
        queries: ChargedQueries,
        call_each: Callable[..., list[Any]],
        *,
        row_cap: int | None,
        timeout: float,
        known: KnownEnds,
    ) -> None:
        self._pattern = pattern
        self._queries = queries
        self._call_each = call_each
        self._row_cap = row_cap
        self._timeout = timeout
        self._known = known

    def find(
        self, candidates: Sequence[Candidate], *, limit: int | None, tolerated: tuple[type[Exception], ...]
    ) -> list[Any]:
        """Return the ends of each candidate, or the error of its query if that is tolerated. See `ends_of`."""
        by_key = {_key(candidate): candidate for candidate in candidates}
        found: dict[Key, Any] = {key: self._known.get(key, limit) for key in by_key}
        new = [key for key, ends in found.items() if ends is None]
        walks = [self._pattern(by_key[key]) for key in new]
        for key, ends in zip(new, self._look_up(walks, limit, tolerated)):
            found[key] = ends
            if isinstance(ends, Ends):
                self._known.put(key, ends, limit)
        return [found[_key(candidate)] for candidate in candidates]

    def _look_up(
        self, walks: Sequence[PathPattern], limit: int | None, tolerated: tuple[type[Exception], ...]
    ) -> list[Any]:
        size = BATCH
        if limit is not None and self._row_cap is not None:
            size = max(1, min(size, self._row_cap // (limit + 2)))
        every = [range(start, min(start + size, len(walks))) for start in range(0, len(walks), size)]
        batches = [batch for batch in every if len(batch) > 1]
        results = self._call_each(
            lambda batch: self._batch([walks[number] for number in batch], limit), batches, tolerated=SINGLY
        )
        found: dict[int, Any] = {}
        for batch, result in zip(batches, results):
            found |= {} if isinstance(result, SINGLY) else dict(zip(batch, result))
        rest = [number for number in range(len(walks)) if number not in found]
        singly = self._call_each(lambda number: self._single(walks[number], limit), rest, tolerated=tolerated)
        found |= dict(zip(rest, singly))
        return [found[number] for number in range(len(walks))]

    def _single(self, walk: PathPattern, limit: int | None) -> Ends:
        rows = self._queries.select("ends", walk=walk, limit=None if limit is None else limit + 1)
        return _ends((row[0] for row in rows), limit)

    def _batch(self, walks: Sequence[PathPattern], limit: int | None) -> list[Ends]:
        rows = self._queries.select_briefly(
            "ends_of",
            seconds=BATCH_TIME * self._timeout,
            end=walks[0].end,
            parts=[render_part("_nested", walk=walk) for walk in walks],
            limit=None if limit is None else limit + 1,
        )
        found: list[list[Value | None]] = [[] for _ in walks]
        for number, value in rows:
            found[count_value(number)].append(value)
        return [_ends(values, limit) for values in found]


def _ends(values: Iterable[Value | None], limit: int | None) -> Ends:
    every = tuple(value for value in values if value is not None)
    return Ends(every[:limit], approximate=limit is not None and len(every) > limit)


def _key(candidate: Candidate) -> Key:
    return candidate.path, candidate.joins, candidate.restricted, candidate.conditions
