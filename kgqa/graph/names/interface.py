"""The interface of name indexes: finding entities by name, and the matches it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kgqa.graph.names.name_reader import Limit
from kgqa.model import Entity

MAX_SEARCH_CHARS = 1000
MAX_SEARCH_WORDS = 32
MAX_NAMESAKES = 200
"""The most entities returned for one text: in Freebase hundreds of thousands share some initials."""


@dataclass(frozen=True, slots=True)
class NameMatch:
    """An entity found by name. `kind` is `label` or `alias`; `exact`: the text is the whole name."""

    entity: Entity
    name: str
    kind: str
    exact: bool


@dataclass(frozen=True, slots=True)
class LooseMatch:
    """A name that nearly equals a text.

    `how` is `article` (Bible for The Bible), `bracket` (Alien for Alien (film)), `comma` (Stockholm for Stockholm,
    Sweden), `squeezed` (superbowl for Super Bowl) or `initials` (uk for United Kingdom).
    """

    match: NameMatch
    how: str


class Names(Protocol):
    """Finds entities by name. Thread-safe.

    Among equally good matches labels come before aliases, then entities are ordered by IRI.

    Attributes:
        count: the number of names. labelled: the number of entities with a label.
        longest: the most words in a name.
    """

    @property
    def count(self) -> int: ...

    @property
    def labelled(self) -> int: ...

    @property
    def longest(self) -> int: ...

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        """Find the first MAX_NAMESAKES entities with a name or alias that, normalised, equals each normalised text."""
        ...

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        """Find the first MAX_NAMESAKES entities with a near-identical name for each normalised text."""
        ...

    def initials_with_prefix(self, prefix: str, *, limit: int = 50) -> list[NameMatch]:
        """Find names whose initials begin with a text, shortest first: `us` for United States of America."""
        ...

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """Count the names that contain each of these normalised words; words in no name are omitted."""
        ...

    def words_with_prefix(self, prefix: str, *, limit: int = 500) -> dict[str, int]:
        """Return the most frequent words of names with this prefix, and the number of names that contain each."""
        ...

    def containing(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        """Find names that contain any of these normalised words, best first by BM25; entities may repeat."""
        ...

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        """Return all labels and aliases of each of these entities, labels first."""
        ...

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        """Find entities whose name contains all words of a text, the last one as a prefix; else any of the words.

        Whole names come first, then the order is by BM25.
        """
        ...

    def within(self, limit: Limit) -> Names:
        """Return the same index for one question, with each query to a server within `limit`."""
        ...

    def close(self) -> None:
        """Release files and memory."""
        ...
