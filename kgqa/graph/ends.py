"""Finds the ends of many relation paths and the walks along them, in one query for up to `BATCH` paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kgqa.graph.batches import TIME_SHARE, CallEach, in_batches
from kgqa.graph.charged_queries import ChargedQueries
from kgqa.graph.query.patterns import Node, PathPattern
from kgqa.graph.query.templates import render_part
from kgqa.graph.store import Row, count_value
from kgqa.model import Candidate, Value

BATCH = 20
"""Most paths per query. Virtuoso rejects queries with many more branches."""
Errors = tuple[type[Exception], ...]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Ends:
    """The distinct entities and literals at the end of a path.

    `approximate` is true if some are missing because of a limit.
    """

    values: tuple[Value, ...]
    approximate: bool


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


@dataclass(frozen=True, slots=True)
class EndsFinder:
    """Finds the ends of paths, and walks along them.

    Attributes:
        pattern: returns the pattern of a candidate.
        queries: runs the queries.
        call_each: calls a function for each item.
        row_cap: number of rows at which results of the store are cut off; None if they are not.
        timeout: maximum seconds for the query of a single path.
        known: ends that need not be looked up; the ends found are added.
    """

    pattern: Callable[[Candidate], PathPattern]
    queries: ChargedQueries
    call_each: CallEach
    row_cap: int | None
    timeout: float
    known: KnownEnds = field(default_factory=KnownEnds)

    def find(self, candidates: Sequence[Candidate], *, limit: int | None, tolerated: Errors) -> list[Any]:
        """Return the ends of each candidate, or the error of its query. See `KnowledgeGraph.ends_of`."""
        by_key = {_key(candidate): candidate for candidate in candidates}
        found: dict[Key, Any] = {key: self.known.get(key, limit) for key in by_key}
        new = [key for key, ends in found.items() if ends is None]
        most = None if limit is None else limit + 1
        looked_up = self._in_batches(
            [self.pattern(by_key[key]) for key in new],
            lambda walks: [
                _ends((row[-1] for row in rows), limit)
                for rows in self._batch("_nested", walks, [walk.nodes[-1:] for walk in walks], most, self.timeout)
            ],
            lambda walk: _ends((row[0] for row in self.queries.select("ends", walk=walk, limit=most)), limit),
            most,
            tolerated,
        )
        for key, ends in zip(new, looked_up):
            found[key] = ends
            if isinstance(ends, Ends):
                self.known.put(key, ends, limit)
        return [found[_key(candidate)] for candidate in candidates]

    def walks(
        self, candidates: Sequence[Candidate], *, limit: int, timeout: float | None, tolerated: Errors
    ) -> list[Any]:
        """Return walks along each candidate's path, or the error of its query. See `KnowledgeGraph.walks_of`."""
        seconds = min(timeout or self.timeout, self.timeout)
        found = self._in_batches(
            [self.pattern(candidate) for candidate in candidates],
            lambda walks: self._batch("_walk", walks, [walk.nodes[1:] for walk in walks], limit, seconds),
            lambda walk: walks_along(walk, self.queries, limit=limit, timeout=timeout),
            limit,
            tolerated,
        )
        return [
            [(candidate.path.topic, *walk) for walk in walks] if isinstance(walks, list) else walks
            for candidate, walks in zip(candidates, found)
        ]

    def _in_batches(
        self,
        walks: Sequence[PathPattern],
        batch: Callable[[Sequence[PathPattern]], list[Any]],
        single: Callable[[PathPattern], Any],
        most: int | None,
        tolerated: Errors,
    ) -> list[Any]:
        size = BATCH
        if most is not None and self.row_cap is not None:
            size = max(1, min(size, (self.row_cap - 1) // most))  # the rows of a batch stay below the row cap
        return in_batches(walks, batch, single, size=size, call_each=self.call_each, tolerated=tolerated)

    def _batch(
        self,
        pattern: str,
        walks: Sequence[PathPattern],
        variables: Sequence[tuple[Node, ...]],
        most: int | None,
        timeout: float,
    ) -> list[list[Row]]:
        """Return rows of the variables of each path, at most `most` per path; its template is queries/PATTERN.rq."""
        columns = {name: column for column, name in enumerate(dict.fromkeys(name for own in variables for name in own))}
        rows = self.queries.select_within(
            TIME_SHARE * timeout,
            "paths",
            recorded=False,
            variables=list(columns),
            parts=[(render_part(pattern, walk=walk), own) for walk, own in zip(walks, variables)],
            limit=most,
        )
        found: list[list[Row]] = [[] for _ in walks]
        for number, *row in rows:
            path = count_value(number)
            found[path].append(tuple(row[columns[name]] for name in variables[path]))
        return found


def walks_along(
    walk: PathPattern,
    queries: ChargedQueries,
    *,
    limit: int,
    timeout: float | None,
    ends: Sequence[Value] | None = None,
) -> list[tuple[Value, ...]]:
    """Return some walks along one path, without the topic. See `KnowledgeGraph.walks_along`."""
    rows = queries.select_within(timeout, "walks", walk=walk, variables=walk.nodes[1:], ends=ends, limit=limit)
    return cast(list[tuple[Value, ...]], rows.rows)  # the pattern binds every node, so no value is None


def _ends(values: Iterable[Value | None], limit: int | None) -> Ends:
    every = tuple(value for value in values if value is not None)
    return Ends(every[:limit], approximate=limit is not None and len(every) > limit)


def _key(candidate: Candidate) -> Key:
    return candidate.path, candidate.joins, candidate.restricted, candidate.conditions
