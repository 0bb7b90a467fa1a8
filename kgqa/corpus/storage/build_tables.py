"""What a corpus remembers beside the log: replies of models, summaries of communities, and single values."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kgqa.corpus.storage.connection import Connections
from kgqa.corpus.storage.rows import look_up


class BuildTables:
    """Reads and writes these tables. Values are stored at once, or with the transaction that is open."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def replies(self, extractor: str, digests: Collection[str]) -> dict[str, str]:
        """Return the stored replies of an extractor (`Extractor.key`) by the hash of the text; some may be missing."""
        query = "SELECT digest, reply FROM replies WHERE extractor = :extractor AND digest IN (??)"
        with self._connections.reading() as run:
            return {
                str(digest): str(reply)
                for digest, reply in look_up(run, query, list(digests), {"extractor": extractor})
            }  # fmt: skip

    def put_replies(self, extractor: str, replies: Mapping[str, str]) -> None:
        """Store replies of an extractor by the hash of the text."""
        with self._connections.transaction() as run:
            run.executemany(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?)",
                [(digest, extractor, reply) for digest, reply in replies.items()],
            )

    def summaries(self, hashes: Collection[str]) -> dict[str, tuple[str, str, str]]:
        """Return title, summary and model of communities by the hashes of their members."""
        query = "SELECT members_hash, title, summary, model FROM summaries WHERE members_hash IN (??)"
        with self._connections.reading() as run:
            rows = look_up(run, query, list(hashes))
            return {str(key): (str(title), str(summary), str(model)) for key, title, summary, model in rows}

    def put_summary(self, members_hash: str, title: str, summary: str, model: str = "") -> None:
        """Store the summary of a community."""
        with self._connections.transaction() as run:
            run.execute("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?)", (members_hash, title, summary, model))

    def state(self, key: str) -> str:
        """Return a stored value; "" if there is none."""
        with self._connections.reading() as run:
            row = run.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
            return str(row[0]) if row else ""

    def put_state(self, key: str, value: str) -> None:
        """Store a value."""
        with self._connections.transaction() as run:
            run.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (key, value))
