"""Decides which entities of the last turns a reference may mean, by their types in the graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.conversation.references import Reference
from kgqa.methods.conversation.turns import Turn
from kgqa.model import Entity, Named, Step, Value
from kgqa.rank.lexical import terms
from kgqa.text.words import clean, type_words

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
SPOUSES = frozenset(["spouse", "husband", "wife", "partner", "married"])
"""Words of a relation that leads back to the person from whom it came."""
GENDERS = {"male": "male", "man": "male", "female": "female", "woman": "female"}
_KIN = re.compile(
    r"\s*who(?: is| was| are| were|['’]s) (?:the |.+['’]s? )"
    r"(?:(?P<male>husband|father|son|brother)|(?P<female>wife|mother|daughter|sister))s?(?: of .+)?",
    re.IGNORECASE,
)
_ADDITION = re.compile(r" (?:of|in|for|or|with|from|by) ")
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
        genders: "male" or "female", for persons of whom the graph or a question says it.
    """

    turns: Sequence[Turn]
    types: Mapping[Entity, Sequence[str]]
    genders: Mapping[Value, str] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: KnowledgeGraph, turns: Sequence[Turn]) -> Referents:
        """Look up the types of the entities of the last turns. Raises StoreError if a query fails."""
        turns = turns[-TURNS:]
        named = [each.value for turn in turns for group in turn.groups for each in group]
        entities = list(dict.fromkeys(each for each in named if isinstance(each, Entity)))
        types = types_in_words(graph, entities)
        persons = [entity for entity in entities if not types[entity] or _has(types[entity], PERSONS)]
        return cls(turns, types, {**genders_in_questions(turns), **genders_of(graph, persons)})

    def choose(self, reference: Reference) -> tuple[Named, ...]:
        """Return the entities that a reference may mean, most likely first; none if nothing fits.

        A person may be an answer or a topic of a question, if both fit; so may several, if there is only one answer.
        A plural means the last several entities, although a later turn is about one of them.
        """
        if reference.kind == "numbered":
            for turn in reversed(self.turns):
                if turn.answers:
                    at = reference.number
                    return turn.answers[at:][:1] if at < 0 else turn.answers[at : at + 1]
            return ()
        tests = (_has_type, _may_be_called) if reference.kind == "noun" else (None,)
        for test in tests:
            found = [each for turn in reversed(self.turns) if (each := self._in_turn(reference, turn, test))[0]]
            # after a question about a person, "they" are no languages
            about_person = bool(found) and self._is_person(found[0][0][0].value)
            several = [
                (first, second)
                for first, second in found
                if (len(first) > 1 or self._are_persons(first, second))
                and (not about_person or self._is_person(first[0].value))
            ]
            for first, second in (several if reference.plural else []) or found:
                if reference.kind == "person" or (reference.kind == "several" and len(first) == 1):
                    return tuple(dict.fromkeys((*first, *(each for each in second if self._alike(each, first[0])))))
                return first
        return ()

    def _in_turn(
        self, reference: Reference, turn: Turn, test: Callable[[str, Sequence[str]], bool] | None
    ) -> tuple[tuple[Named, ...], tuple[Named, ...]]:
        """Return the entities of a turn that a reference may mean: those of the likely group, and the others."""
        groups = [tuple(each for each in group if self._fits(reference, each.value, test)) for group in turn.groups]
        if any(sure := [tuple(each for each in group if self._is_sure(reference, each)) for group in groups]):
            groups = sure
        if reference.noun in SPOUSES and set(turn.question.lower().split()) & SPOUSES:
            groups.reverse()
        first, second = groups
        return (first, second) if first else (second, first)

    def _are_persons(self, first: Sequence[Named], second: Sequence[Named]) -> bool:
        """Return whether there are persons in both groups: a couple."""
        return all(any(self._is_person(each.value) for each in group) for group in (first, second))

    def _is_sure(self, reference: Reference, named: Named) -> bool:
        """Return whether the gender of a person is known to be that of the reference."""
        return bool(reference.gender) and self.genders.get(named.value) == reference.gender

    def _alike(self, one: Named, other: Named) -> bool:
        """Return whether both are persons, or neither is."""
        return self._is_person(one.value) == self._is_person(other.value)

    def _is_person(self, value: Value) -> bool:
        return isinstance(value, Entity) and _has(self.types.get(value, ()), PERSONS)

    def _fits(self, reference: Reference, value: Value, is_called: Callable[[str, Sequence[str]], bool] | None) -> bool:
        """Return whether a reference may mean an entity, as far as its types tell."""
        types = self.types.get(value, ()) if isinstance(value, Entity) else ()
        if is_called is not None:
            return is_called(reference.noun, types)
        gender = self.genders.get(value, "")
        if reference.gender and gender and gender != reference.gender:
            return False
        if not types or reference.kind == "several":
            return True
        person = _has(types, PERSONS)
        place = _has(types, PLACES) and not person
        return {"person": person, "thing": not person, "any": not person, "place": place}[reference.kind]


def types_in_words(graph: KnowledgeGraph, entities: Iterable[Entity]) -> dict[Entity, list[str]]:
    """Return the types of each entity in words: their labels where relations have labels, else the end of their ids."""
    found: dict[Entity, list[str]] = {entity: [] for entity in entities}
    values = (
        graph.paths.hop(found, [Step(graph.schema.types[0], "out")], limit=_MAX_TYPES) if graph.schema.types else {}
    )
    every = list(dict.fromkeys(each for types in values.values() for each in types if isinstance(each, Entity)))
    labels = graph.labels(every) if graph.schema.wording == "label" else {}
    words = {each: clean(labels.get(each, "")) or type_words(each.iri, graph.schema) for each in every}
    for entity, types in values.items():
        found[entity] = list(dict.fromkeys(words[each] for each in types if isinstance(each, Entity) and words[each]))
    return found


def genders_of(graph: KnowledgeGraph, persons: Sequence[Entity]) -> dict[Value, str]:
    """Return the gender of each person that the graph calls male or female. Raises StoreError if a query fails."""
    found: dict[Value, str] = {}
    for relation in graph.schema.gender if persons else ():
        values = graph.paths.hop(persons, [Step(relation, "out")], limit=2)
        names = {each.value: each.name for each in graph.named({each for ends in values.values() for each in ends})}
        for person, ends in values.items():
            words = {GENDERS.get(clean(names[each]).lower().split(" ")[-1], "") for each in ends}
            if len(words) == 1 and (word := words.pop()):
                found.setdefault(person, word)
    return found


def genders_in_questions(turns: Iterable[Turn]) -> dict[Value, str]:
    """Return the genders of the answers to questions such as "Who is the wife of X?"."""
    asked = [(turn, _KIN.fullmatch(turn.question)) for turn in turns]
    return {
        each.value: "female" if match["female"] else "male" for turn, match in asked if match for each in turn.answers
    }


def _has(types: Iterable[str], kinds: frozenset[str]) -> bool:
    """Return whether a type is of some kinds, by its main word: a human language is a language, no human."""
    return any((_main_word(each.lower()) in kinds) for each in types)


def _main_word(type_: str) -> str:
    """Return the word of a type that says what it is: language of human language, anthem of anthem of a country."""
    return _singular(_ADDITION.split(type_, maxsplit=1)[0].split(" ")[-1])


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
