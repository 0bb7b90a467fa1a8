"""The interface of name indexes, which find entities by name, and the matches that they return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kgqa.graph.names.name_reader import Limit
from kgqa.model import Entity

MAX_SEARCH_CHARS = 1000
MAX_SEARCH_WORDS = 32
MAX_NAMESAKES = 200
"""The largest number of entities returned for one text.

In Freebase, some initials are shared by hundreds of thousands of entities."""


@dataclass(frozen=True, slots=True)
class NameMatch:
    """An entity found by name.

    Attributes:
        kind: `label` or `alias`.
        exact: whether the searched text equals the whole name.
    """

    entity: Entity
    name: str
    kind: str
    exact: bool


@dataclass(frozen=True, slots=True)
class LooseMatch:
    """A name that nearly equals a text, and how the two differ.

    `how` is the kind of difference: `article` (the text Bible finds The Bible), `bracket` (Alien finds Alien (film)),
    `comma` (Stockholm finds Stockholm, Sweden), `squeezed` (superbowl finds Super Bowl) or `initials` (uk finds United
    Kingdom).
    """

    match: NameMatch
    how: str


class Names(Protocol):
    """Finds entities by name. Thread-safe.

    Equally good matches are sorted: labels before aliases, then by the IRI of the entity.

    Attributes:
        count: the number of names. labelled: the number of entities with a label.
        longest: the number of words in the longest name, or a larger number.
    """

    @property
    def count(self) -> int: ...

    @property
    def labelled(self) -> int: ...

    @property
    def longest(self) -> int: ...

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        """Find, for each normalised text, the entities with a label or alias whose normalised form equals the text.

        At most MAX_NAMESAKES entities are returned per text.
        """
        ...

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        """Find, for each normalised text, at most MAX_NAMESAKES entities with a near-identical name."""
        ...

    def initials_with_prefix(self, prefix: str, *, limit: int = 50) -> list[NameMatch]:
        """Find names whose initials begin with `prefix`, shortest first: `us` finds United States of America.

        A server's index does not know initials and finds nothing.
        """
        ...

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """Return the number of names that contain each of these normalised words; omit words that are in no name."""
        ...

    def similar_words(self, words: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return, for each normalised word, words of names that may be another form of the word.

        For a word that no name contains, the result also has words that may be the correct spelling. Each word has the
        number of names that contain it, on a server at least some of them; frequent words come first.
        """
        ...

    def containing(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        """Find names that contain any of these normalised words, best BM25 score first; an entity may occur twice."""
        ...

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        """Return all labels and aliases of each of these entities, labels first."""
        ...

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        """Find entities whose name contains all words of a text; the last word may be the beginning of a longer one.

        If there are none, find entities whose name contains any of the words. Names that equal the whole text come
        first; the other names are sorted by BM25 score.
        """
        ...

    def for_text(self, text: str) -> Names:
        """Return this index for the words of one text: a server also searches for the words as they are written."""
        ...

    def within(self, limit: Limit) -> Names:
        """Return this index for one question, with `limit` as the time limit of each query to a server."""
        ...

    def close(self) -> None:
        """Release files and memory."""
        ...
