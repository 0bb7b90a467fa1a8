"""The index of names of one graph, opened once for all questions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from kgqa.graph.endpoint.store import MIN_RETRY_FACTOR
from kgqa.graph.names.interface import Names
from kgqa.graph.names.name_reader import IndexedGraph, Limit, Name, name_predicates
from kgqa.graph.names.selection import UnindexedNames, open_names
from kgqa.graph.names.sqlite_index import SqliteNames
from kgqa.graph.query.templates import render
from kgqa.graph.tables.changes import ATTEMPTS, Changes
from kgqa.model import Entity, Literal, Triple
from kgqa.text.words import local_words

LONGEST_WAIT = 600.0
UNCOUNTED_SECONDS = 600.0
"""Seconds after a failed count of names during which the count is repeated only for questions with more time.

Such a question must have at least MIN_RETRY_FACTOR times as many seconds left as the question of the failed count."""


class EditedGraph(IndexedGraph, Protocol):
    """A graph whose index of names follows its edits."""

    def version(self) -> str: ...

    def changes_since(self, version: str) -> Changes | None: ...


class SharedNames:
    """Opens the index of names on first use, and changes it after edits of the graph. Thread-safe.

    Attributes:
        note: a message to the user about the index; empty if there is nothing to say.
    """

    def __init__(self, graph: EditedGraph) -> None:
        self.note = ""
        self._graph = graph
        # not the lock of the other tables, which questions need while the index is opened, which may take minutes
        self._opening = threading.Lock()
        self._known: tuple[str, Names] | None = None
        self._opened: tuple[float, float] = (0.0, 0.0)  # when, and for a question with how many seconds

    def within(self, limit: Limit) -> Names:
        """Return the index of names, and open it if necessary, within the time that `limit` allows.

        Raises:
            BudgetExhausted: the question has no more time.
            StoreError: the names cannot be read.
        """
        if (names := self._current(limit)) is not None:
            return names
        with _held(self._opening, limit):  # another question may be opening the index
            for _ in range(ATTEMPTS):
                if self._known:
                    self._follow(*self._known)
                if (names := self._current(limit)) is not None:
                    break
                version, seconds = self._graph.version(), limit() or LONGEST_WAIT
                if self._known and self._known[0] != version:
                    names = self._known[1]  # edits go on, and a new index would not be newer
                    continue
                names, self.note = open_names(self._graph, limit=limit)
                self._opened = (time.monotonic(), seconds)
                if self._graph.version() == version:
                    self._known = (version, names)
                    break
            assert names is not None
            return names

    def save(self, folder: Path) -> None:
        """Write the index, if it is open and up to date, into a folder that has none."""
        with self._opening:
            if self._known and self._known[0] == self._graph.version() and isinstance(self._known[1], SqliteNames):
                self._known[1].save(folder)

    def close(self) -> None:
        """Close the index."""
        with self._opening:
            if self._known:
                self._known[1].close()
            self._known = None

    def _current(self, limit: Limit) -> Names | None:
        """Return the index if it is open and up to date, else None.

        For some time after a failed count of names, questions with little time get an index without a count.
        """
        known = self._known
        if known is None or known[0] != self._graph.version().removesuffix("+"):
            return None
        if isinstance(known[1], UnindexedNames) and not known[1].counted:
            since, seconds = self._opened
            recent = time.monotonic() - since < UNCOUNTED_SECONDS
            return known[1] if recent and (limit() or LONGEST_WAIT) < MIN_RETRY_FACTOR * seconds else None
        return known[1]

    def _follow(self, version: str, names: Names) -> None:
        """Change the open index by the edits since a version, or else forget it.

        A forgotten index is not closed, because other questions may be using it.
        """
        self._known = None
        changes = self._graph.changes_since(version)
        if changes is None:
            return
        added, removed = self._names_in(changes.added), self._names_in(changes.removed)
        if isinstance(names, SqliteNames) and (names.of_iris or not names.count):
            if added or not names.count:
                return  # an index of IRIs is replaced by one of names, or the other way round
            added, removed = self._changed_iris(changes, names)
        if not (added or removed) or (isinstance(names, SqliteNames) and names.follow(added, removed)):
            self._known = (changes.version, names)

    def _names_in(self, triples: tuple[Triple, ...]) -> list[Name]:
        return [
            (triple.subject.iri, triple.object.value, kind)
            for kind, predicate in name_predicates(self._graph.schema)
            for triple in triples
            if triple.relation == predicate and isinstance(triple.object, Literal)
        ]

    def _changed_iris(self, changes: Changes, names: Names) -> tuple[list[Name], list[Name]]:
        """Return the nodes to add to an index of IRIs and those to remove from it."""
        ends = (node for triple in changes.triples for node in (triple.subject, triple.object))
        nodes = sorted({node for node in ends if isinstance(node, Entity)}, key=str)
        rows = self._graph.store.select(render("present_nodes", view=self._graph.view, nodes=nodes), fresh=True)
        there, known = {row[0] for row in rows}, names.names_of(nodes)
        words: dict[Entity, Name] = {node: (node.iri, local_words(node.iri), "iri") for node in nodes}
        return (
            [words[node] for node in nodes if node in there and not known[node]],
            [words[node] for node in nodes if node not in there and known[node]],
        )


@contextmanager
def _held(lock: Any, limit: Limit) -> Iterator[None]:
    """Hold a lock during the block; wait for the lock no longer than `limit` allows."""
    while not lock.acquire(timeout=min(limit() or LONGEST_WAIT, LONGEST_WAIT)):
        pass
    try:
        yield
    finally:
        lock.release()
