"""How far hyperedges are trusted, and which contradict each other, for those who look at a corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.disputes import disputes_of
from kgqa.corpus.editing.live_hyperedges import edited_trusts
from kgqa.corpus.editing.trust import CORPUS


@dataclass(frozen=True)
class Standing:
    """What edits say about live hyperedges, by their IRIs.

    Attributes:
        trusts: How far those are trusted that only edits state.
        conflicts: What contradicts a hyperedge.
    """

    trusts: Mapping[str, str] = field(default_factory=dict)
    conflicts: Mapping[str, set[str]] = field(default_factory=dict)

    def trust(self, iri: str) -> str:
        """Return how far a hyperedge is trusted."""
        return self.trusts.get(iri, CORPUS)


def standing_of(corpus: Corpus) -> Standing:
    """Return the standing of the hyperedges of a corpus."""
    database, seq = corpus.database, corpus.reader.seq
    conflicts: dict[str, set[str]] = defaultdict(set)
    for one, other in disputes_of(database, seq).hyperedges:
        conflicts[one].add(other)
        conflicts[other].add(one)
    return Standing(edited_trusts(database, seq), dict(conflicts))
