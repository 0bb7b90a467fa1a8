"""How many records of each kind a corpus has. Counting reads all of it, so the database keeps the numbers."""

from __future__ import annotations

import json
from contextlib import suppress

from kgqa.corpus.reader import DatabaseReader

COUNTS = "counts"
"""The key under which the database keeps the numbers, with the number of the edit after which they hold."""
KINDS = ("documents", "chunks", "entities", "statements", "hyperedges", "communities")


def counts_of(reader: DatabaseReader, stored: str = "") -> dict[str, int]:
    """Return the numbers of records. `stored` is what the database keeps; it is used if nothing has changed since."""
    with suppress(ValueError, TypeError, KeyError):
        data = json.loads(stored)
        if data["seq"] == reader.seq:
            return {kind: int(data[kind]) for kind in KINDS}
    return {kind: sum(1 for _ in getattr(reader, kind)()) for kind in KINDS}


def counts_text(reader: DatabaseReader, stored: str = "") -> str:
    """Return the text that the database keeps."""
    return json.dumps({"seq": reader.seq, **counts_of(reader, stored)})
