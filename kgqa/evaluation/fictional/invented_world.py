"""Generates an invented world with questions: a few hundred entities with made-up names, in the schema of Freebase.

An invented world lets users try fictional graphs without any data. No language model knows its names.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kgqa.evaluation.datasets.questions import read_questions
from kgqa.evaluation.fictional.gold_queries import answer_objects, gold_queries_of
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.opening import open_graph
from kgqa.graph.query.text import render_term
from kgqa.model import Entity, Literal
from kgqa.storage.cache import Cache

NS = "http://rdf.freebase.com/ns/"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
QUESTIONS = "questions.jsonl"

RELATIONS = (
    ("location.country.capital", "location.country", "location.citytown", ""),
    ("location.location.containedby", "location.location", "location.location", "location.location.contains"),
    (
        "location.country.official_language",
        "location.country",
        "language.human_language",
        "language.human_language.countries_spoken_in",
    ),
    (
        "location.country.currency_used",
        "location.country",
        "finance.currency",
        "finance.currency.countries_used",
    ),
    ("people.person.place_of_birth", "people.person", "location.citytown", "location.location.people_born_here"),
    ("people.person.profession", "people.person", "people.profession", "people.profession.people_with_this_profession"),
    ("people.person.parents", "people.person", "people.person", "people.person.children"),
    ("people.person.date_of_birth", "people.person", "type.datetime", ""),
    ("film.film.directed_by", "film.film", "people.person", "film.director.film"),
    ("film.film.genre", "film.film", "film.film_genre", "film.film_genre.films_in_this_genre"),
    ("film.film.starring", "film.film", "film.performance", "film.performance.film"),
    ("film.performance.actor", "film.performance", "people.person", "film.actor.film"),
    ("film.performance.character", "film.performance", "film.film_character", "film.film_character.portrayed_in_films"),
    ("people.person.spouse_s", "people.person", "people.marriage", "people.marriage.spouse"),
    ("people.marriage.from", "people.marriage", "type.datetime", ""),
)
TYPES = {
    "location.country": "Country",
    "location.citytown": "Town",
    "location.location": "Location",
    "language.human_language": "Language",
    "finance.currency": "Currency",
    "people.person": "Person",
    "people.profession": "Profession",
    "people.marriage": "Marriage",
    "film.film": "Film",
    "film.film_genre": "Film genre",
    "film.performance": "Film performance",
    "film.film_character": "Film character",
}
MEDIATORS = ("people.marriage", "film.performance")
# the edge into a mediator and the edge out of it count as one hop
_ONTO_MEDIATORS = {
    name
    for relation, domain, range_, inverse in RELATIONS
    for name, end in ((relation, range_), (inverse, domain))
    if end in MEDIATORS
}
COUNTRIES, TOWNS_EACH, PEOPLE, FILMS, LANGUAGES, CURRENCIES, GENRES = 20, 4, 90, 36, 12, 10, 8
PROFESSIONS = ("Glassblower", "Ferrywoman", "Beekeeper", "Clockmaker", "Cartographer", "Bell founder", "Rope dancer")
_STARTS = [
    "Bel",
    "Cor",
    "Dra",
    "Eil",
    "Fan",
    "Gor",
    "Hal",
    "Ist",
    "Jor",
    "Kel",
    "Lum",
    "Mor",
    "Nar",
    "Oss",
    "Pel",
    "Quil",
    "Ras",
    "Sel",
    "Tor",
    "Ulm",
    "Vess",
    "Wen",
    "Xan",
    "Yor",
    "Zil",
]
_MIDDLES = ["a", "e", "i", "o", "u", "ae", "an", "el", "in", "or", "ul", "yr"]
_LANDS, _PLACES = ["via", "thia", "dor", "mark", "land", "rook"], ["burg", "stead", "ford", "haven", "wick", "mouth"]
_FIRST, _LAST = ["na", "ro", "lis", "mir", "tan", "dea"], ["sen", "ward", "velt", "mann", "quist", "dahl"]

# each: the question, the kind of its topics, and the relations that lead from each topic to the answer
PATHS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("What is the capital of {}?", "country", ("location.country.capital",)),
    ("Which languages are official in {}?", "country", ("location.country.official_language",)),
    ("What do people pay with in {}?", "country", ("location.country.currency_used",)),
    ("Where was {} born?", "person", ("people.person.place_of_birth",)),
    ("What does {} do for a living?", "person", ("people.person.profession",)),
    ("Who directed {}?", "film", ("film.film.directed_by",)),
    ("Who acted in {}?", "film", ("film.film.starring", "film.performance.actor")),
    ("Which films did {} act in?", "actor", ("film.actor.film", "film.performance.film")),
    ("In which country was {} born?", "person", ("people.person.place_of_birth", "location.location.containedby")),
    ("Where was the director of {} born?", "film", ("film.film.directed_by", "people.person.place_of_birth")),
    ("What is the profession of the director of {}?", "film", ("film.film.directed_by", "people.person.profession")),
    (
        "Which languages are official in the country where {} lies?",
        "town",
        ("location.location.containedby", "location.country.official_language"),
    ),
)
MEETINGS: tuple[tuple[str, str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    (
        "Which {1} was born in {0}?",
        "town",
        ("location.location.people_born_here",),
        "profession",
        ("people.profession.people_with_this_profession",),
    ),
    (
        "Which films of the genre {1} did {0} direct?",
        "director",
        ("film.director.film",),
        "genre",
        ("film.film_genre.films_in_this_genre",),
    ),
    (
        "In which countries is {0} official and do people pay with {1}?",
        "language",
        ("language.human_language.countries_spoken_in",),
        "currency",
        ("finance.currency.countries_used",),
    ),
)
EACH_PATH, EACH_MEETING = 8, 8


def invent(seed: int = 0) -> tuple[list[str], list[dict[str, Any]]]:
    """Generate a world as N-Triples lines, and its questions as objects of a question file, without answers.

    The same seed gives the same world.
    """
    maker = _Maker(random.Random(seed))
    maker.populate()
    return maker.lines(), list(maker.questions())


def world_folder(cache: Cache, *, seed: int = 0) -> Path:
    """Return the graph folder of an invented world, with `questions.jsonl` inside; create the folder if needed.

    Raises:
        StoreUnavailable: the cache cannot be written.
    """
    lines, rows = invent(seed)
    text = "".join(lines)
    digest = hashlib.sha256((text + json.dumps(rows)).encode()).hexdigest()[:12]
    place = cache.entry("demo", f"invented-{digest}")
    if not (place / QUESTIONS).exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        try:
            (making / "world.nt").write_text(text, encoding="utf-8")
            load_graph(making / "graph", [making / "world.nt"], schema="freebase", settings={"mediator_hop": "free"})
            _answered(rows, making, cache)
            shutil.rmtree(place, ignore_errors=True)
            (making / "graph").rename(place)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return place


def _answered(rows: Sequence[dict[str, Any]], making: Path, cache: Cache) -> None:
    """Write the questions with the answers that the graph gives."""
    file = making / QUESTIONS
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with open_graph(making / "graph", cache=cache) as graph:
        asked = gold_queries_of(read_questions(file), graph)
        full = [row | {"answers": answer_objects(each.true, graph)} for row, each in zip(rows, asked) if each.true]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in full)
    (making / "graph" / QUESTIONS).write_text(text, encoding="utf-8")


class _Maker:
    """Generates a world from a seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names: set[str] = set()
        self._edges: dict[str, dict[tuple[str, str], None]] = {name: {} for name, *_ in RELATIONS}
        self._dates: dict[str, dict[str, str]] = {"people.person.date_of_birth": {}, "people.marriage.from": {}}
        self._things: dict[str, dict[str, str]] = {type_: {} for type_ in TYPES}

    def populate(self) -> None:
        """Create the entities, then the relations between them."""
        chance, things = self._chance, self._things
        professions = [self._thing("people.profession", name) for name in PROFESSIONS]
        languages = [self._thing("language.human_language", self._name(["ish", "ese", "ic"])) for _ in range(LANGUAGES)]
        money = [self._thing("finance.currency", self._name(["ar", "in", "eck"])) for _ in range(CURRENCIES)]
        genres = [self._thing("film.film_genre", f"{self._name(['ian', 'esque'])} tale") for _ in range(GENRES)]
        for _ in range(COUNTRIES):
            country = self._thing("location.country", self._name(_LANDS))
            towns = [self._thing("location.citytown", self._name(_PLACES)) for _ in range(TOWNS_EACH)]
            self._tie("location.country.capital", country, towns[0])
            for town in towns:
                self._tie("location.location.containedby", town, country)
            for language in chance.sample(languages, chance.randint(1, 2)):
                self._tie("location.country.official_language", country, language)
            self._tie("location.country.currency_used", country, chance.choice(money))
        towns = list(things["location.citytown"])
        people = [self._thing("people.person", f"{self._name(_FIRST)} {self._name(_LAST)}") for _ in range(PEOPLE)]
        for number, person in enumerate(people):
            self._tie("people.person.place_of_birth", person, chance.choice(towns))
            self._tie("people.person.profession", person, chance.choice(professions))
            self._dates["people.person.date_of_birth"][person] = str(1800 + number)
            for parent in chance.sample(people[:number], min(number, 2)) if number > 20 else ():
                self._tie("people.person.parents", person, parent)
        for number in range(0, PEOPLE - 1, 4):
            marriage = self._thing("people.marriage", "")
            for person in people[number : number + 2]:
                self._tie("people.person.spouse_s", person, marriage)
            self._dates["people.marriage.from"][marriage] = str(1830 + number)
        characters = [self._thing("film.film_character", self._name(["ax", "ion", "wyn"])) for _ in range(FILMS * 2)]
        for number in range(FILMS):
            film = self._thing("film.film", f"The {self._name(['ing', 'fall', 'song'])} of {self._name(_LANDS)}")
            self._tie("film.film.directed_by", film, chance.choice(people[:30]))
            self._tie("film.film.genre", film, chance.choice(genres))
            for role, actor in enumerate(chance.sample(people[30:], 2)):
                performance = self._thing("film.performance", "")
                self._tie("film.film.starring", film, performance)
                self._tie("film.performance.actor", performance, actor)
                self._tie("film.performance.character", performance, characters[2 * number + role])

    def _name(self, endings: Sequence[str]) -> str:
        chance = self._chance
        while True:
            name = chance.choice(_STARTS) + chance.choice(_MIDDLES) + chance.choice(endings)
            if name not in self._names:
                self._names.add(name)
                return name

    def _thing(self, type_: str, name: str) -> str:
        ident = f"m.tale_{type_.rsplit('.', 1)[1]}_{len(self._things[type_]) + 1}"
        self._things[type_][ident] = name
        return ident

    def _tie(self, relation: str, subject: str, object_: str) -> None:
        self._edges[relation][subject, object_] = None

    def lines(self) -> list[str]:
        """Return the world as N-Triples lines, with schema, types, names, and every relation with its inverse."""
        return sorted(set(self._schema()) | set(self._facts()))

    def _schema(self) -> Iterator[str]:
        for type_, name in TYPES.items():
            yield _line(type_, f"{NS}type.object.name", Literal(name, language="en"))
            if type_ in MEDIATORS:
                yield _line(type_, f"{NS}freebase.type_hints.mediator", Literal("true", f"{XSD}boolean"))
        for relation, domain, range_, inverse in RELATIONS:
            for name, start, end, back in ((relation, domain, range_, inverse), (inverse, range_, domain, relation)):
                if name:
                    yield _line(name, f"{RDFS}domain", Entity(NS + start))
                    yield _line(name, f"{RDFS}range", Entity(NS + end))
                    if back:
                        yield _line(name, f"{OWL}inverseOf", Entity(NS + back))

    def _facts(self) -> Iterator[str]:
        for type_, things in self._things.items():
            for ident, name in things.items():
                yield _line(ident, f"{NS}type.object.type", Entity(NS + type_))
                if type_ in ("location.country", "location.citytown"):
                    yield _line(ident, f"{NS}type.object.type", Entity(f"{NS}location.location"))
                if name:
                    yield _line(ident, f"{NS}type.object.name", Literal(name, language="en"))
        for relation, _, _, inverse in RELATIONS:
            for subject, object_ in self._edges[relation]:
                yield _line(subject, NS + relation, Entity(NS + object_))
                if inverse:
                    yield _line(object_, NS + inverse, Entity(NS + subject))
        for relation, years in self._dates.items():
            for ident, year in years.items():
                yield _line(ident, NS + relation, Literal(year, f"{XSD}gYear"))

    def questions(self) -> Iterator[dict[str, Any]]:
        """Yield questions with topic entities and gold paths."""
        kinds = {
            "country": list(self._things["location.country"]),
            "town": list(self._things["location.citytown"]),
            "person": list(self._things["people.person"]),
            "film": list(self._things["film.film"]),
            "actor": list(dict.fromkeys(a for _, a in self._edges["film.performance.actor"])),
            "language": list(self._things["language.human_language"]),
        }
        number = 0
        for text, kind, path in PATHS:
            for topic in self._chance.sample(kinds[kind], min(EACH_PATH, len(kinds[kind]))):
                number += 1
                gold = {"gold_path": [NS + r for r in path], "hops": sum(r not in _ONTO_MEDIATORS for r in path)}
                yield self._row(number, text, [topic], {**gold, "kind": "path"})
        for text, _, path, _, other in MEETINGS:
            found = sorted(self._meeting(path[0], other[0]))
            for one, two in self._chance.sample(found, min(EACH_MEETING, len(found))):
                number += 1
                # a chain is node, relation, node, ...
                chains = [[one, NS + path[0], ""], [two, NS + other[0], ""]]
                yield self._row(number, text, [one, two], {"gold_chains": chains, "hops": 1, "kind": "conjunction"})

    def _meeting(self, first: str, second: str) -> set[tuple[str, str]]:
        """Return the pairs of topics from which the two relations lead to the same node."""
        forth = {inverse: relation for relation, _, _, inverse in RELATIONS}
        ones: dict[str, list[str]] = {}
        for subject, object_ in self._edges[forth[first]]:
            ones.setdefault(subject, []).append(object_)
        return {(one, two) for subject, two in self._edges[forth[second]] for one in ones.get(subject, ())}

    def _row(self, number: int, text: str, topics: Sequence[str], gold: dict[str, Any]) -> dict[str, Any]:
        names = {ident: name for things in self._things.values() for ident, name in things.items()}
        called = [names[topic] for topic in topics]
        return {
            "id": f"invented-{number:03}",
            "dataset": "invented",
            "question": text.format(*(name.lower() if name in PROFESSIONS else name for name in called)),
            "topic_entities": [{"id": topic, "name": name} for topic, name in zip(topics, called)],
            **gold,
        }


def _line(subject: str, relation: str, object_: Entity | Literal) -> str:
    return f"<{NS}{subject}> <{relation}> {render_term(object_)} .\n"
