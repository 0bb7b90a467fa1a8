"""Groups of names that mean the same entity, joined only where nothing contradicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kgqa.corpus.resolution.names import Name
from kgqa.corpus.resolution.types import types_agree


class Groups:
    """A partition of names. Names of types that do not agree, or that were taken apart, never get into one group."""

    def __init__(self, names: Iterable[Name], apart: Iterable[tuple[str, str]] = ()) -> None:
        self._parent: dict[str, str] = {}
        self._types: dict[str, frozenset[str]] = {}
        self._enemies: dict[str, frozenset[str]] = defaultdict(frozenset)
        for name in names:
            self._parent[name.iri] = name.iri
            self._types[name.iri] = frozenset((name.type,)) if name.type else frozenset()
        for one, other in apart:
            self._enemies[one] |= {other}
            self._enemies[other] |= {one}

    def root(self, iri: str) -> str:
        """Return the name of the group of an IRI: the smallest IRI in it."""
        root = iri
        while (above := self._parent.setdefault(root, root)) != root:
            root = above
        while (above := self._parent[iri]) != root:
            self._parent[iri], iri = root, above
        return root

    def conflict(self, one: str, other: str) -> str:
        """Return why the groups of two IRIs must not be joined; "" if they may be."""
        left, right = self.root(one), self.root(other)
        for a in self._types.get(left, ()):
            for b in self._types.get(right, ()):
                if not types_agree(a, b):
                    return f"the types {a} and {b} do not agree"
        if any(self.root(each) == right for each in self._enemies.get(left, ())):
            return "they were taken apart"
        return ""

    def join(self, one: str, other: str) -> bool:
        """Join the groups of two IRIs, and return whether they were two groups; conflicts are not looked at."""
        low, high = sorted((self.root(one), self.root(other)))
        if low == high:
            return False
        self._parent[high] = low
        self._types[low] = self._types.get(low, frozenset()) | self._types.pop(high, frozenset())
        if high in self._enemies:
            self._enemies[low] |= self._enemies.pop(high)
        return True
