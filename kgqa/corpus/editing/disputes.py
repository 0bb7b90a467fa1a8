"""Which edits and hyperedges of a corpus contradict each other."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.corpus.storage.database import Database


@dataclass(frozen=True)
class Disputes:
    """Pairs of live hyperedges, and pairs of edits, that contradict each other; each pair sorted."""

    hyperedges: frozenset[tuple[str, str]] = frozenset()
    edits: frozenset[tuple[str, str]] = frozenset()


def disputes_of(database: Database, seq: int) -> Disputes:
    """Return what contradicts each other after edit `seq`."""
    return Disputes()
