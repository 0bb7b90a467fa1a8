"""What can be told of names on a server that has too many to fetch and no graph of names."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from kgqa.errors import NamesNotIndexed
from kgqa.graph.names.index import LooseMatch, NameMatch
from kgqa.graph.names.reading import Limit
from kgqa.graph.names.server.full_text import ServerNames
from kgqa.graph.store import Store
from kgqa.model import Entity
from kgqa.schema import Schema


class UnindexedNames:
    """Knows the names of entities, but no entities of names. See `names.Names`.

    Args:
        count: how many names there are, None where they could not be counted in time.
        outdated: whether an older version made a graph of names, which is not used.

    Raises:
        NamesNotIndexed: whatever has to find entities.
    """

    longest = 0

    def __init__(
        self, store: Store, schema: Schema, view: Sequence[Entity], *, count: int | None, outdated: bool = False
    ) -> None:
        self.count = 1 if count is None else count
        self.counted = count is not None
        self._server = ServerNames(store, schema, view)
        many = "more names than could be counted in time" if count is None else f"{count:,} names"
        index = "only an index of them by an older version of kgqa" if outdated else "no index of them"
        found = f"{store.location} has {many} and {index}. Make one: kgqa virtuoso index."
        if count == 0:
            found = (
                f"{store.location} has no names by the schema {schema.name}. Give a schema that says which predicates give "
                "them, [names] label: kgqa ask --schema FILE."
            )
        self._message = f"{found} Until then name entities by their ids: kgqa ask --topic ID"

    def within(self, limit: Limit) -> UnindexedNames:
        bound = copy.copy(self)
        bound._server = self._server.within(limit)
        return bound

    @property
    def labelled(self) -> int:
        return self._server.labelled

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        raise NamesNotIndexed(self._message)

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        raise NamesNotIndexed(self._message)

    def initials_from(self, beginning: str, *, limit: int = 50) -> list[NameMatch]:
        raise NamesNotIndexed(self._message)

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        raise NamesNotIndexed(self._message)

    def words_from(self, beginning: str, *, limit: int = 500) -> dict[str, int]:
        raise NamesNotIndexed(self._message)

    def holding(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        raise NamesNotIndexed(self._message)

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        raise NamesNotIndexed(self._message)

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        return self._server.names_of(entities)

    def close(self) -> None:
        self._server.close()
