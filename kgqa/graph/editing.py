"""What all stores share in editing: the history of edits, and what an edit has to change."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from kgqa.graph.query.templates import render
from kgqa.graph.store import EditReport, Store, count_value
from kgqa.model import Entity, Literal, Triple, Value

Item = TypeVar("Item")
PRESENT_LINKS, PRESENT_LITERALS, PRESENT_CHARS = 500, 50, 200_000
"""Limits of the triples whose presence is asked in one query: their number, by kind of object, and their characters."""
MAX_EDITS, MAX_TRIPLES = 10_000, 100_000
"""Numbers of edits, and of their triples, that are kept. What was derived from an older version is computed again."""


class EditHistory:
    """Numbers the edits of a store. Thread-safe.

    The version of some graphs is the number of the last edit that changed one of them. `graphs` are IRIs, "" for the
    default graph; None stands for all graphs of the store.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._edits: deque[EditReport] = deque()
        """The last edits; the number of the newest is `_number`."""
        self._number = self._triples = self._known_from = 0
        self._last: dict[str, int] = {}

    def version_of(self, graphs: Collection[str] | None) -> str:
        """Return the version of some graphs."""
        # called for each use of a table; a loop is faster than max() over a list
        number, last = self._known_from, self._last
        for latest in (self._number,) if graphs is None else map(last.get, graphs):
            if latest is not None and latest > number:
                number = latest
        return str(number)

    def add(
        self, graph: str, added: Iterable[Triple], removed: Iterable[Triple], *, fingerprint: str = ""
    ) -> EditReport:
        """Record an edit and return its report. An edit that changed nothing gives no new version."""
        adds, removes = tuple(added), tuple(removed)
        with self._lock:
            if not (adds or removes):
                return EditReport(graph, (), (), self.version_of((graph,)), fingerprint)
            self._number += 1
            self._last = {**self._last, graph: self._number}
            self._edits.append(EditReport(graph, adds, removes, str(self._number), fingerprint))
            self._triples += len(adds) + len(removes)
            report = self._edits[-1]
            while len(self._edits) > MAX_EDITS or self._triples > MAX_TRIPLES:
                oldest = self._edits.popleft()
                self._triples -= len(oldest.added) + len(oldest.removed)
            return report

    def forget(self) -> None:
        """Give all graphs a new version, because triples changed in a way that is not known."""
        with self._lock:
            self._number += 1
            self._known_from = self._number
            self._edits.clear()
            self._triples = 0

    def since(self, version: str, graphs: Collection[str] | None) -> list[EditReport] | None:
        """Return the edits of some graphs after a version, oldest first; None if they are not all known."""
        with self._lock:
            if version == self.version_of(graphs):
                return []
            later = self._number - int(version) if version.isdecimal() else -1
            if not 0 <= later <= len(self._edits):
                return None
            edits = islice(self._edits, len(self._edits) - later, None)
            return [report for report in edits if graphs is None or report.graph in graphs]


def net_changes(
    adds: Iterable[Triple], removes: Iterable[Triple], *, present: Callable[[list[Triple]], Collection[Triple]]
) -> tuple[list[Triple], list[Triple]]:
    """Return what an edit has to add and to remove: no triple twice, none without an effect.

    Args:
        present: returns those of the given triples that are in the graph.
    """
    wanted = dict.fromkeys(adds)
    unwanted = [triple for triple in dict.fromkeys(removes) if triple not in wanted]
    there = present([*wanted, *unwanted])
    return [triple for triple in wanted if triple not in there], [triple for triple in unwanted if triple in there]


def present_triples(store: Store, graph: str, triples: Sequence[Triple]) -> set[Triple]:
    """Return those of the triples that are in a graph, "" for the default graph, asked in batches."""
    view = (Entity(graph),) if graph else ()
    found: set[Triple] = set()
    for literals, most in ((False, PRESENT_LINKS), (True, PRESENT_LITERALS)):
        asked = [triple for triple in triples if isinstance(triple.object, Literal) == literals]
        for batch in batches(asked, most, PRESENT_CHARS):
            query = render("present_triples", view=view, literals=literals, triples=list(map(terms, batch)))
            found.update(batch[count_value(row[0])] for row in store.select(query, fresh=True))
    return found


def triple_chars(triple: Triple) -> int:
    """Return the number of characters of a triple's terms."""
    return len(triple.subject.iri) + len(triple.relation) + len(str(triple.object))


def batches(
    items: Sequence[Item], most: int, most_chars: int, *, length: Callable[[Any], int] = triple_chars
) -> Iterator[Sequence[Item]]:
    """Split items into batches of at most `most` items and a total length of `most_chars`, or of one longer item."""
    start = size = 0
    for index, item in enumerate(items):
        chars = length(item)
        if index > start and (index - start == most or size + chars > most_chars):
            yield items[start:index]
            start, size = index, 0
        size += chars
    if items:
        yield items[start:]


def terms(triple: Triple) -> tuple[Entity, Entity, Value]:
    """Return the subject, relation and object of a triple as terms of a query."""
    return triple.subject, Entity(triple.relation), triple.object
