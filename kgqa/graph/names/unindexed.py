"""Names of a graph on a server that has no index of names and too many names to read."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from kgqa.errors import NamesNotIndexed
from kgqa.graph.names.entity_names import EntityNameReader
from kgqa.graph.names.interface import LooseMatch, NameMatch
from kgqa.graph.names.name_reader import Limit
from kgqa.graph.store import Store
from kgqa.hints import hint_text
from kgqa.model import Entity
from kgqa.schema import Schema


class UnindexedNames:
    """Implements `Names` without an index: returns the names of an entity, but cannot find entities by name.

    Args:
        count: the number of names; None if counting took too long.

    Raises:
        NamesNotIndexed: raised by all methods that find entities by name.
    """

    longest = 0

    def __init__(self, store: Store, schema: Schema, view: Sequence[Entity], *, count: int | None) -> None:
        self.count = 1 if count is None else count
        self.counted = count is not None
        self._reader = EntityNameReader(store, schema, view)
        many = "more names than could be counted in time" if count is None else f"{count:,} names"
        problem = f"{store.location} has {many} but no full-text index of them. Build an index: kgqa virtuoso index."
        if count == 0:
            problem = (
                f"{store.location} has no triples with the label predicates of the schema {schema.name}. Use a schema "
                "that lists the graph's label predicates under [names] label: kgqa ask --schema FILE."
            )
        self._message = hint_text(f"{problem} Until then, give the id of the question's topic: kgqa ask --topic ID")

    def within(self, limit: Limit) -> UnindexedNames:
        bound = copy.copy(self)
        bound._reader = self._reader.within(limit)
        return bound

    def for_text(self, text: str) -> UnindexedNames:
        return self

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

    def similar_words(self, words: Sequence[str]) -> dict[str, dict[str, int]]:
        raise NamesNotIndexed(self._message)

    def containing(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        raise NamesNotIndexed(self._message)

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        raise NamesNotIndexed(self._message)

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        return self._reader.names_of(entities)

    def close(self) -> None:
        self._reader.close()
