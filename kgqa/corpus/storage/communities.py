"""The communities of a corpus in SQLite, and which of them stand in its graph."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kgqa.corpus.items import digest
from kgqa.corpus.records import CommunityRecord
from kgqa.corpus.storage.connection import Connections
from kgqa.errors import CorpusError
from kgqa.storage.loading import parse_json

_COLUMNS = "iri, level, parent, members, members_hash, title, summary"


@dataclass(frozen=True, slots=True)
class CommunityChange:
    """What the graph of communities lacks. `removes`: communities that may stand in it and must not."""

    adds: tuple[CommunityRecord, ...]
    removes: tuple[CommunityRecord, ...]

    def __bool__(self) -> bool:
        return bool(self.adds or self.removes)


class CommunityTable:
    """Reads and writes communities. A replaced community is kept until it is known to be gone from the graph."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def all(self) -> Iterator[CommunityRecord]:
        """Yield the communities, by IRI."""
        yield from self._read("wanted ORDER BY iri")

    def replace(self, communities: Iterable[CommunityRecord]) -> None:
        """Store the communities in place of all earlier ones."""
        rows = []
        for each in communities:
            members = json.dumps(each.members, ensure_ascii=False)
            values = (each.parent, members, each.members_hash, each.title, each.summary)
            rows.append((each.iri, digest(str(each.level), *values), each.level, *values))
        with self._connections.transaction() as run:
            run.execute("UPDATE communities SET wanted = 0")
            run.executemany(
                """INSERT INTO communities VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 0)
                ON CONFLICT (iri, content) DO UPDATE SET wanted = 1""",
                rows,
            )

    def change(self) -> CommunityChange:
        """Return what must change in the graph. A community in `adds` may be there in part."""
        removes = tuple(self._read("NOT wanted ORDER BY iri, content"))
        adds = self._read(
            "wanted AND (NOT written OR iri IN (SELECT iri FROM communities WHERE NOT wanted)) ORDER BY iri"
        )
        return CommunityChange(tuple(adds), removes)

    def confirm(self) -> None:
        """Record that the graph has the communities of the table."""
        with self._connections.transaction() as run:
            run.execute("DELETE FROM communities WHERE NOT wanted")
            run.execute("UPDATE communities SET written = 1 WHERE NOT written")

    def forget_graph(self) -> None:
        """Record that the graph has no communities."""
        with self._connections.transaction() as run:
            run.execute("DELETE FROM communities WHERE NOT wanted")
            run.execute("UPDATE communities SET written = 0 WHERE written")

    def _read(self, test: str) -> Iterator[CommunityRecord]:
        with self._connections.reading() as run:
            for row in run.execute(f"SELECT {_COLUMNS} FROM communities WHERE {test}"):
                yield _record(*row)


def _record(
    iri: Any, level: Any, parent: Any, members: Any, members_hash: Any, title: Any, summary: Any
) -> CommunityRecord:
    try:
        names: tuple[str, ...] = parse_json(str(members), tuple[str, ...])
        return CommunityRecord(
            str(iri), int(level), str(parent), names, str(members_hash), str(title), str(summary)
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise CorpusError(f"The corpus is damaged: a community cannot be read ({error}).") from error
