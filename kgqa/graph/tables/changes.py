"""Values derived from a view of a store, which follow its edits, and the triples that changed since a version."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

from kgqa.graph.editing import present_triples
from kgqa.graph.store import EditReport, Store
from kgqa.model import Entity, Triple

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


T = TypeVar("T")


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

    def get(self, name: str, compute: Callable[[], T], follow: Callable[[T, Changes], T | None] | None = None) -> T:
        """Return a value for the current version.

        Other threads may still use the value of an earlier version, so `follow` must not change it.

        Args:
            compute: computes the value from the graph.
            follow: computes the value from that of an earlier version and the changes since; None if it cannot.
        """
        version, known = self._current(), self._known.get(name)
        if known is not None and version in (known[0], known[0] + "+"):
            return cast(T, known[1])
        with self._lock:
            for _ in range(ATTEMPTS):
                version, known = self._current(), self._known.get(name)
                if known is not None and known[0] == version:
                    return cast(T, known[1])
                changes = self._changes(known[0]) if known and follow else None
                followed = follow(known[1], changes) if known and follow and changes else None
                value = compute() if followed is None else followed
                # a value that was read during an edit belongs to no version
                if self._current() == version:
                    self._known[name] = (version, value)
                    break
            return value
