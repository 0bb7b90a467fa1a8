"""The names that are compared, prepared once per entity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kgqa.corpus.records import EntityRecord
from kgqa.corpus.resolution.normal_forms import comparison_form, wording_form


@dataclass(frozen=True)
class Name:
    """The name of one entity before resolution.

    Attributes:
        iri: IRI of the entity (`Party.iri`).
        text: Its most frequent spelling.
        type: Its type in words; "" if unknown.
        spellings: All its spellings; they differ in case only.
        documents: IRIs of the documents that contain it.
    """

    iri: str
    text: str
    type: str
    spellings: tuple[str, ...]
    documents: frozenset[str]

    @cached_property
    def form(self) -> str:
        """The comparison form."""
        return comparison_form(self.text)

    @cached_property
    def wording(self) -> str:
        """The wording form of the spelling with the most capitals, so that `US` is recognised."""
        return wording_form(max(self.spellings, key=lambda text: (sum(map(str.isupper, text)), text)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the wording form."""
        return tuple(self.wording.split())

    @property
    def is_proper(self) -> bool:
        """Whether a spelling has a capital letter, or letters without case."""
        letters = (char for text in self.spellings for char in text if char.isalpha())
        return any(not char.islower() for char in letters)

    @property
    def is_acronym(self) -> bool:
        """Whether a spelling has at least two letters and all of them are capitals."""
        return any(text.isupper() and sum(map(str.isalpha, text)) > 1 for text in self.spellings)


def name_of(entity: EntityRecord) -> Name:
    """Return the name of an entity before resolution."""
    documents = frozenset(place.document for place in entity.places if place.document)
    spellings = tuple(sorted({entity.name, *entity.aliases}))
    return Name(entity.iri, entity.name, entity.types[0] if entity.types else "", spellings, documents)


def blocks(names: Iterable[Name], key: Callable[[Name], str]) -> Mapping[str, list[Name]]:
    """Return names by a key, in their order; names with the key "" are left out."""
    found: dict[str, list[Name]] = defaultdict(list)
    for name in names:
        if value := key(name):
            found[value].append(name)
    return found
