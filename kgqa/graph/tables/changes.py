"""Values derived from a view of a store, which follow its edits, and the triples that changed since a version."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from kgqa.graph.editing import present_triples
from kgqa.graph.query.templates import Variable
from kgqa.graph.store import EditReport, Rows, Store, count_value
from kgqa.model import Entity, Literal, Triple, Value

MAX_CHANGES = 10_000
"""Number of edited triples above which tables are computed again."""
ATTEMPTS = 5
PATTERNS_PER_QUERY = 100
MAX_CHARS = 200_000
"""Number of characters of all literals above which each pattern gets a query of its own."""
VALUE, OTHER = Variable("value"), Variable("other")
Pattern = tuple[Value | Variable, Entity | Variable, Value | Variable, int]
"""Subject, predicate and object, of which one is VALUE, and the largest number of distinct values (0: all)."""
Select = Callable[..., Rows]
"""Renders a template of queries/ and runs the query."""


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
        if edits is None or sum(len(edit.added) + len(edit.removed) for edit in edits) > MAX_CHANGES:
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


def matches(select: Select, patterns: Sequence[Pattern]) -> list[list[Value]]:
    """Return, for each pattern, the distinct values that match it."""
    found: list[list[Value]] = [[] for _ in patterns]
    texts = (term.value for pattern in patterns for term in pattern[:3] if isinstance(term, Literal))
    size = PATTERNS_PER_QUERY if sum(map(len, texts)) < MAX_CHARS else 1
    for start in range(0, len(patterns), size):
        for number, value in select("matches", patterns=patterns[start : start + size]):
            if value is not None:
                found[start + count_value(number)].append(value)
    return found


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Known:
    version: str
    value: Any
    complete: bool


class VersionedValues:
    """Keeps values by name, each for the latest version of a graph for which it was wanted. Thread-safe.

    Args:
        version: returns the current version; see `Store.version_of`.
        changes: returns the changes since a version; None if values must be computed again.
        complete: returns whether the value just computed covers the whole graph. Others are not followed by edits.
    """

    def __init__(
        self,
        version: Callable[[], str],
        changes: Callable[[str], Changes | None],
        *,
        complete: Callable[[], bool],
    ) -> None:
        self._current = version
        self._changes = changes
        self._complete = complete
        self._lock = threading.RLock()
        self._known: dict[str, _Known] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether a value that covers the whole graph is known for some version."""
        known = self._known.get(name)
        return known is not None and known.complete

    def get(self, name: str, compute: Callable[[], T], follow: Callable[[T, Changes], T | None] | None = None) -> T:
        """Return a value for the current version.

        Other threads may still use the value of an earlier version, so `follow` must not change it.

        Args:
            compute: computes the value from the graph.
            follow: computes the value from that of an earlier version and the changes since; None if it cannot.
        """
        version, known = self._current(), self._known.get(name)
        if known is not None and (known.version == version or known.version + "+" == version):
            found: T = known.value
            return found
        with self._lock:
            value: T | None = None
            for _ in range(ATTEMPTS):
                version, known = self._current(), self._known.get(name)
                if known is not None and known.version == version:
                    value = known.value
                    break
                value = self._followed(known, follow) if known and follow else None
                complete = value is not None
                if value is None:
                    value = compute()
                    complete = follow is not None and self._complete()
                # a value that was read during an edit belongs to no version
                if self._current() == version:
                    self._known[name] = _Known(version, value, complete)
                    break
            assert value is not None
            return value

    def _followed(self, known: _Known, follow: Callable[[T, Changes], T | None]) -> T | None:
        changes = self._changes(known.version) if known.complete else None
        return None if changes is None else follow(known.value, changes)
