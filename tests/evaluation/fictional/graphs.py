"""Random small graphs in Freebase's vocabulary, and measures of them."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st

NS = "http://rdf.freebase.com/ns/"
NAME, TYPE = "type.object.name", "type.object.type"
INVERSE = "http://www.w3.org/2002/07/owl#inverseOf"
MARK = "freebase.type_hints.mediator"
TRUE = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'

SCHEMA = [
    ("film.film.director", INVERSE, "film.director.film"),
    ("film.film.starring", INVERSE, "film.performance.film"),
    ("film.performance.actor", INVERSE, "film.actor.film"),
    ("film.performance", MARK, TRUE),
    ("people.marriage.spouse", INVERSE, "people.person.marriage"),
    ("people.marriage", MARK, TRUE),
]


def line(subject: str, relation: str, object_: str) -> str:
    relation = relation if relation.startswith("http") else NS + relation
    object_ = object_ if object_.startswith('"') else f"<{NS}{object_}>"
    return f"<{NS}{subject}> <{relation}> {object_} .\n"


@st.composite
def random_graphs(draw) -> list[str]:
    """Draw N-Triples lines of films, people, performances and marriages with two spouses."""
    films = [f"m.f{n}" for n in range(draw(st.integers(2, 8)))]
    people = [f"m.p{n}" for n in range(draw(st.integers(2, 8)))]
    triples = set(SCHEMA)
    for film in films:
        triples |= {(film, TYPE, "film.film"), (film, NAME, f'"Film {film}"@en')}
    for person in people:
        triples |= {(person, TYPE, "people.person"), (person, NAME, f'"Person {person}"@en')}
        triples.add((person, "people.person.gender", draw(st.sampled_from(["m.g0", "m.g1"]))))
        triples.add((person, "people.person.born", f'"{1900 + draw(st.integers(0, 5))}"'))
    pairs = st.tuples(st.sampled_from(films), st.sampled_from(people))
    for film, person in draw(st.lists(pairs, max_size=14)):
        triples.add((film, "film.film.director", person))
        if draw(st.integers(0, 9)):  # sometimes the inverse is missing
            triples.add((person, "film.director.film", film))
    for number, (film, person) in enumerate(draw(st.lists(pairs, max_size=10))):
        cast = f"m.c{number}"
        triples |= {(cast, TYPE, "film.performance"), (film, "film.film.starring", cast)}
        triples |= {(cast, "film.performance.film", film), (cast, "film.performance.actor", person)}
        triples |= {(person, "film.actor.film", cast), (cast, "film.performance.character", f"m.h{number % 4}")}
    couples = st.lists(st.sampled_from(people), min_size=2, max_size=2, unique=True)
    for number, couple in enumerate(draw(st.lists(couples, max_size=6))):
        marriage = f"m.w{number}"
        triples |= {(marriage, TYPE, "people.marriage"), (marriage, "people.marriage.type", f"m.k{number % 2}")}
        for spouse in couple:
            triples |= {(marriage, "people.marriage.spouse", spouse), (spouse, "people.person.marriage", marriage)}
    knows = st.tuples(st.sampled_from(people), st.sampled_from(people))
    for first, second in draw(st.lists(knows, max_size=8)):
        triples |= {(first, "people.person.sibling", second), (second, "people.person.sibling", first)}
    return sorted(line(*triple) for triple in triples)


def parts(lines) -> list[tuple[str, str, str]]:
    return [tuple(each.rstrip("\n").removesuffix(" .").split(" ", 2)) for each in lines]


def degrees(lines) -> Counter:
    """Count how often each node is subject and object of each relation."""
    found: Counter = Counter()
    for subject, relation, object_ in parts(lines):
        found[subject, relation, "out"] += 1
        found[object_, relation, "in"] += 1
    return found


def of_relation(lines, *names: str) -> set[tuple[str, str, str]]:
    wanted = {f"<{NS}{name}>" for name in names}
    return {triple for triple in parts(lines) if triple[1] in wanted}


def mirrored(lines, relation: str, inverse: str) -> set[tuple[str, str]]:
    """Return the pairs of nodes joined both by a relation and by its inverse."""
    forward = {(s, o) for s, _, o in of_relation(lines, relation)}
    return forward & {(o, s) for s, _, o in of_relation(lines, inverse)}
