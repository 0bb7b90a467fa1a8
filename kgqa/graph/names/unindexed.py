"""Names on a server that has too many to read and no index of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from kgqa.errors import NamesNotIndexed
from kgqa.graph.names.interface import LooseMatch, NameMatch
from kgqa.graph.names.name_reader import Limit
from kgqa.graph.names.server.entity_names import EntityNameReader
from kgqa.graph.store import Store
from kgqa.model import Entity
from kgqa.schema import Schema


class UnindexedNames:
    """Looks up the names of entities, but cannot find entities by name, see `Names`.

    Args:
        count: the number of names, None where counting took too long.
        outdated: whether there is an index by an older version of kgqa, which is not used.

    Raises:
        NamesNotIndexed: by every method that finds entities.
    """

    longest = 0

    def __init__(
        self, store: Store, schema: Schema, view: Sequence[Entity], *, count: int | None, outdated: bool = False
    ) -> None:
        self.count = 1 if count is None else count
        self.counted = count is not None
        self._reader = EntityNameReader(store, schema, view)
        many = "more names than could be counted in time" if count is None else f"{count:,} names"
        index = "only an index by an older version of kgqa" if outdated else "no index of them"
        problem = f"{store.location} has {many} and {index}. Build one: kgqa virtuoso index."
        if count == 0:
            problem = (
                f"{store.location} has no names by the schema {schema.name}. Use a schema that lists the predicates of "
                "names under [names] label: kgqa ask --schema FILE."
            )
        self._message = f"{problem} Until then name topics by their ids: kgqa ask --topic ID"

    def within(self, limit: Limit) -> UnindexedNames:
        bound = copy.copy(self)
        bound._reader = self._reader.within(limit)
        return bound

    @property
    def labelled(self) -> int:
        return self._reader.labelled

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        raise NamesNotIndexed(self._message)

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        raise NamesNotIndexed(self._message)

    def initials_with_prefix(self, prefix: str, *, limit: int = 50) -> list[NameMatch]:
        raise NamesNotIndexed(self._message)

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        raise NamesNotIndexed(self._message)

    def words_with_prefix(self, prefix: str, *, limit: int = 500) -> dict[str, int]:
        raise NamesNotIndexed(self._message)

    def containing(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        raise NamesNotIndexed(self._message)

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        raise NamesNotIndexed(self._message)

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        return self._reader.names_of(entities)

    def close(self) -> None:
        self._reader.close()
