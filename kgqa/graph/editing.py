"""What all stores share in editing: the history of edits, what an edit has to change, and values that follow edits."""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar, cast

from kgqa.graph.query.text import render
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

    def add(self, graph: str, added: Iterable[Triple], removed: Iterable[Triple]) -> EditReport:
        """Record an edit and return its report. An edit that changed nothing gives no new version."""
        report = EditReport(graph, tuple(added), tuple(removed))
        with self._lock:
            if report.triples:
                self._number += 1
                self._last = {**self._last, graph: self._number}
                self._edits.append(report)
                self._triples += report.triples
            while len(self._edits) > MAX_EDITS or self._triples > MAX_TRIPLES:
                self._triples -= self._edits.popleft().triples
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
    adds: Iterable[Item], removes: Iterable[Item], *, present: Callable[[list[Item]], Collection[Item]]
) -> tuple[list[Item], list[Item]]:
    """Return what an edit has to add and to remove: nothing twice, nothing without an effect.

    Args:
        adds, removes: triples, or their lines; one in both is there afterwards.
        present: returns those of the given ones that are in the graph.
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
        for batch in batches(asked, most, PRESENT_CHARS, length=triple_chars):
            query = render("present_triples", view=view, literals=literals, triples=list(map(terms, batch)))
            found.update(batch[count_value(row[0])] for row in store.select(query, fresh=True))
    return found


def triple_chars(triple: Triple) -> int:
    """Return the number of characters of a triple's terms."""
    return len(triple.subject.iri) + len(triple.relation) + len(str(triple.object))


def batches(
    items: Sequence[Item], most: int, most_chars: float = math.inf, *, length: Callable[[Any], int] = lambda item: 0
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


MAX_CHANGES = 10_000
"""Number of edited triples above which tables are computed again."""
ATTEMPTS = 5


@dataclass(frozen=True)
class Changes:
    """The difference between two versions of a view.

    Attributes:
        version: The later version.
        added: The triples that only the later version has.
        removed: The triples that only the earlier version has.
    """

    version: str
    added: tuple[Triple, ...]
    removed: tuple[Triple, ...]

    @property
    def triples(self) -> tuple[Triple, ...]:
        return self.added + self.removed

    @cached_property
    def relations(self) -> frozenset[str]:
        """The relations of all added and removed triples."""
        return frozenset(triple.relation for triple in self.triples)

    def subjects(self, predicates: Collection[str]) -> set[Entity]:
        """Return the subjects of all added and removed triples with one of these predicates."""
        return {triple.subject for triple in self.triples if triple.relation in predicates}


def changes_since(version: str, store: Store, view: Sequence[Entity]) -> Changes | None:
    """Return the changes of a view since a version; None if what was derived from that version must be computed again.

    A triple that stands in several graphs of the view appears with the first and vanishes with the last of them.

    Raises:
        StoreError: see `Store.select`.
    """
    graphs = [graph.iri for graph in view]
    for _ in range(ATTEMPTS):
        now = store.version_of(graphs)
        edits = store.edits_since(version, graphs)
        if edits is None or sum(edit.triples for edit in edits) > MAX_CHANGES:
            return None
        if not view and any(edit.graph for edit in edits):
            return None  # whether an unrestricted query sees a triple twice depends on the store
        net = _visible(edits, store, view) if len(view) > 1 else _net(edits)
        if store.version_of(graphs) == now:
            sides = ([triple for triple, sign in net.items() if sign == wanted] for wanted in (1, -1))
            # without queries, the changes do not depend on an edit that is being made
            return Changes(now if len(view) > 1 else now.removesuffix("+"), *map(tuple, sides))
    return None


def _net(edits: Iterable[EditReport]) -> Counter[Triple]:
    """Return 1 for each triple that all edits together add, -1 for each that they remove, else 0."""
    net: Counter[Triple] = Counter()
    for edit in edits:
        net.subtract(edit.removed)
        net.update(edit.added)
    return net


def _visible(edits: Sequence[EditReport], store: Store, view: Sequence[Entity]) -> Counter[Triple]:
    """Return the same as `_net` for a view of several graphs, in which a triple counts once."""
    net = {graph: _net(edit for edit in edits if edit.graph == graph.iri) for graph in view}
    triples = list(dict.fromkeys(triple for counts in net.values() for triple in counts))
    before: set[Triple] = set()
    after: set[Triple] = set()
    for graph in view:
        there = present_triples(store, graph.iri, triples)
        after |= there
        before |= {triple for triple in triples if (triple in there) - net[graph][triple]}
    return Counter({triple: (triple in after) - (triple in before) for triple in triples})


class VersionedValues:
    """Keeps values by name, each for the latest version of a graph for which it was wanted. Thread-safe.

    Args:
        version: returns the current version; see `Store.version_of`.
        changes: returns the changes since a version; None if values must be computed again.
    """

    def __init__(self, version: Callable[[], str], changes: Callable[[str], Changes | None]) -> None:
        self._current = version
        self._changes = changes
        self._lock = threading.RLock()
        self._known: dict[str, tuple[str, Any]] = {}

    def known(self, name: str) -> Any:
        """Return the latest value, of any version; None if there is none."""
        return self._known.get(name, ("", None))[1]

    def get(
        self, name: str, compute: Callable[[], Item], follow: Callable[[Item, Changes], Item | None] | None = None
    ) -> Item:
        """Return a value for the current version.

        Other threads may still use the value of an earlier version, so `follow` must not change it.

        Args:
            compute: computes the value from the graph.
            follow: computes the value from that of an earlier version and the changes since; None if it cannot.
        """
        version, known = self._current(), self._known.get(name)
        if known is not None and version in (known[0], known[0] + "+"):
            return cast(Item, known[1])
        with self._lock:
            for _ in range(ATTEMPTS):
                version, known = self._current(), self._known.get(name)
                if known is not None and known[0] == version:
                    return cast(Item, known[1])
                changes = self._changes(known[0]) if known and follow else None
                followed = follow(known[1], changes) if known and follow and changes else None
                value = compute() if followed is None else followed
                # a value that was read during an edit belongs to no version
                if self._current() == version:
                    self._known[name] = (version, value)
                    break
            return value
