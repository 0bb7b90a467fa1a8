"""The triples that appeared in a view of a store, or vanished from it, since an earlier version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from kgqa.graph.editing import present_triples
from kgqa.graph.query.templates import Variable
from kgqa.graph.store import EditReport, Rows, Store, count_value
from kgqa.model import Entity, Literal, Triple, Value

MAX_CHANGES = 10_000
"""Number of edited triples above which tables are derived anew."""
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
    """Return the changes of a view since a version; None if what was derived from that version must be derived anew.

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
