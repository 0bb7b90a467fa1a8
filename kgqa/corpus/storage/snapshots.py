"""The snapshot of a corpus that was derived last, for all who read its records."""

from __future__ import annotations

import threading
from dataclasses import replace

from kgqa.corpus.snapshot import Snapshot, snapshot_of
from kgqa.corpus.storage.live_additions import LiveAdditions

_TEXTS = ("document", "chunk")
_OTHERS = ("entity", "statement", "hyperedge", "same", "link")


class Snapshots:
    """Derives snapshots, and keeps those of one edit. Thread-safe. `seq` is the number of an edit."""

    def __init__(self, live: LiveAdditions) -> None:
        self._live = live
        self._lock = threading.RLock()
        self._kept: dict[tuple[str, ...], tuple[int, Snapshot]] = {}

    def texts(self, seq: int) -> Snapshot:
        """Return the documents and chunks."""
        return self._of(_TEXTS, seq)

    def others(self, seq: int) -> Snapshot:
        """Return everything but documents and chunks."""
        return self._of(_OTHERS, seq)

    def all(self, seq: int) -> Snapshot:
        """Return all records."""
        texts = self.texts(seq)
        return replace(self.others(seq), documents=texts.documents, chunks=texts.chunks)

    def _of(self, kinds: tuple[str, ...], seq: int) -> Snapshot:
        with self._lock:
            if kinds not in self._kept or self._kept[kinds][0] != seq:
                self._kept.pop(kinds, None)  # before the next one is in memory
                self._kept[kinds] = seq, snapshot_of(self._live.all(seq, kinds))
            return self._kept[kinds][1]
