"""Finds who takes part in a new hyperedge without a model: entities of the corpus that its text names, new names."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from kgqa.corpus.editing.wording import wording
from kgqa.corpus.extraction.names import folded_name, words
from kgqa.corpus.items import Party
from kgqa.corpus.reader import DatabaseReader
from kgqa.corpus.records import EntityRecord
from kgqa.rank.lexical import STOPWORDS

MAX_NAME_WORDS = 10
MAX_PARTICIPANTS = 20
_KEPT = 4


class NameLinker:
    """Links the names in texts to the entities of a corpus. Thread-safe after it was created.

    Args:
        entities: the entities.
    """

    def __init__(self, entities: tuple[EntityRecord, ...]) -> None:
        self._by_name: dict[str, list[EntityRecord]] = defaultdict(list)
        for entity in entities:
            for name in {folded_name(each) for each in (entity.name, *entity.aliases)}:
                if name and name not in STOPWORDS:
                    self._by_name[name].append(entity)

    def participants(self, text: str) -> tuple[tuple[str, Party], ...]:
        """Return who takes part in what a text says, in the order of the text, each with the role "".

        The longest names win. Names with capitals that no entity has become new entities.
        """
        found: dict[str, Party] = {}
        places = [(match.start(), match.end(), folded_name(match[0])) for match in words(text)]
        at = 0
        while at < len(places):
            for count in range(min(MAX_NAME_WORDS, len(places) - at), 0, -1):
                name = " ".join(word for _, _, word in places[at : at + count] if word)
                if name in self._by_name:
                    party = self._party(name, text[places[at][0] : places[at + count - 1][1]])
                    found.setdefault(party.iri, party)
                    at += count
                    break
            else:
                at += 1
        linked = {word for party in found.values() for word in folded_name(party.name).split()}
        for each in wording(text).names:
            written = _as_written(text, each.words)
            if written and not linked.issuperset(each.words) and not (each.initial and len(each.words) == 1):
                party = Party(written)
                found.setdefault(party.iri, party)
        return tuple(("", party) for party in list(found.values())[:MAX_PARTICIPANTS])

    def _party(self, name: str, written: str) -> Party:
        """Return the party of the entity with a name; of several, the one that the corpus names most often."""
        entity = max(self._by_name[name], key=lambda each: (len(each.places), each.iri))
        names = [written, *(each for each in (entity.name, *entity.aliases) if folded_name(each) == name)]
        candidates = [Party(each, type_) for each in names for type_ in ("", *entity.types)]
        return next((each for each in candidates if each.iri in entity.members), Party(entity.name))


@lru_cache(_KEPT)
def linker_of(reader: DatabaseReader) -> NameLinker:
    """Return the linker of the entities that a reader shows; it is kept, because a batch asks one reader often."""
    return NameLinker(tuple(reader.entities()))


def _as_written(text: str, folded: tuple[str, ...]) -> str:
    """Return a name as a text writes it, from its folded words; "" if it is not found."""
    places = [(match.start(), match.end(), folded_name(match[0])) for match in words(text)]
    places = [each for each in places if each[2] != "s" or text[each[0] - 1] not in "'’"]  # as in `wording`
    for at in range(len(places) - len(folded) + 1):
        if tuple(word for _, _, word in places[at : at + len(folded)]) == folded:
            return text[places[at][0] : places[at + len(folded) - 1][1]]
    return ""
