"""Decides which entities of the last turns a reference may mean, by their types in the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.conversation.references import Reference
from kgqa.methods.conversation.turns import Turn
from kgqa.model import Entity, Named, Step, Value
from kgqa.rank.lexical import terms
from kgqa.words import clean, type_words

PERSONS = frozenset(
    [
        "person",
        "people",
        "human",
        "man",
        "woman",
        "actor",
        "actress",
        "artist",
        "author",
        "athlete",
        "composer",
        "director",
        "king",
        "minister",
        "musician",
        "painter",
        "player",
        "poet",
        "politician",
        "president",
        "queen",
        "scientist",
        "singer",
        "writer",
    ]
)
PLACES = frozenset(
    [
        "place",
        "location",
        "city",
        "town",
        "citytown",
        "village",
        "country",
        "nation",
        "state",
        "region",
        "province",
        "county",
        "district",
        "island",
        "continent",
        "capital",
        "settlement",
        "municipality",
        "territory",
        "river",
        "mountain",
        "lake",
        "sea",
    ]
)
THINGS = frozenset(
    [
        "album",
        "anthem",
        "award",
        "band",
        "book",
        "building",
        "club",
        "company",
        "currency",
        "film",
        "game",
        "language",
        "match",
        "movie",
        "museum",
        "novel",
        "party",
        "prize",
        "religion",
        "school",
        "series",
        "show",
        "song",
        "team",
        "university",
        "war",
        "work",
    ]
)
_SAME = {"movie": "film", "nation": "country", "town": "city"}
TURNS = 3
"""How many of the last turns a reference may reach back."""
_MAX_TYPES = 50


@dataclass(frozen=True, slots=True)
class Referents:
    """What the references of a question may mean.

    Attributes:
        turns: The turns so far, the latest last.
        types: The types of their entities, in words; none if the graph does not say.
    """

    turns: Sequence[Turn]
    types: Mapping[Entity, Sequence[str]]

    @classmethod
    def of(cls, graph: KnowledgeGraph, turns: Sequence[Turn]) -> Referents:
        """Look up the types of the entities of the last turns. Raises StoreError if a query fails."""
        turns = turns[-TURNS:]
        entities = [each.value for turn in turns for group in turn.groups for each in group]
        return cls(turns, types_in_words(graph, (each for each in entities if isinstance(each, Entity))))

    def choose(self, reference: Reference) -> tuple[Named, ...]:
        """Return the entities that a reference may mean, most likely first; none if nothing fits."""
        if reference.kind == "numbered":
            for turn in reversed(self.turns):
                if turn.answers:
                    at = reference.number
                    return turn.answers[at:][:1] if at < 0 else turn.answers[at : at + 1]
            return ()
        tests = (_has_type, _may_be_called) if reference.kind == "noun" else (None,)
        for test in tests:
            for turn in reversed(self.turns):
                for group in turn.groups:
                    if fitting := tuple(each for each in group if self._fits(reference, each.value, test)):
                        return fitting
        return ()

    def _fits(self, reference: Reference, value: Value, is_called: Callable[[str, Sequence[str]], bool] | None) -> bool:
        """Return whether a reference may mean an entity, as far as its types tell."""
        types = self.types.get(value, ()) if isinstance(value, Entity) else ()
        if is_called is not None:
            return is_called(reference.noun, types)
        if not types or reference.kind in ("several", "any"):
            return True
        person = _has(types, PERSONS)
        return {"person": person, "thing": not person, "place": _has(types, PLACES) and not person}[reference.kind]


def types_in_words(graph: KnowledgeGraph, entities: Iterable[Entity]) -> dict[Entity, list[str]]:
    """Return the types of each entity in words: their labels where relations have labels, else the end of their ids."""
    found: dict[Entity, list[str]] = {entity: [] for entity in entities}
    values = graph.along(found, [Step(graph.schema.types[0], "out")], limit=_MAX_TYPES) if graph.schema.types else {}
    every = list(dict.fromkeys(each for types in values.values() for each in types if isinstance(each, Entity)))
    labels = graph.labels(every) if graph.schema.wording == "label" else {}
    words = {each: clean(labels.get(each, "")) or type_words(each.iri, graph.schema) for each in every}
    for entity, types in values.items():
        found[entity] = list(dict.fromkeys(words[each] for each in types if isinstance(each, Entity) and words[each]))
    return found


def _has(types: Iterable[str], kinds: frozenset[str]) -> bool:
    return any(word.lower() in kinds for each in types for word in each.split())


def _has_type(noun: str, types: Sequence[str]) -> bool:
    """Return whether a type has the name of a noun, such as city."""
    wanted = terms(_SAME.get(_singular(noun), noun))
    return any(set(wanted) & set(terms(each)) for each in types)


def _may_be_called(noun: str, types: Sequence[str]) -> bool:
    """Return whether an entity of these types may be called by a well-known noun: a type may have another word for it.

    An entity without types may have any name.
    """
    general = next((kinds for kinds in (PERSONS, PLACES, THINGS) if _singular(noun) in kinds), None)
    if general is None or not types:
        return general is not None
    return general is not THINGS and _has(types, general) and (general is PERSONS) == _has(types, PERSONS)


def _singular(noun: str) -> str:
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") else noun
