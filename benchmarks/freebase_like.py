"""Generates a graph of any size with the structure of Freebase, to measure exploration and loading.

The graph contains:

- types whose sizes follow a power law, and schema triples;
- a few hundred relations between types, with their inverses;
- relations from half of all entities to few objects; these objects are hubs with tens of thousands of edges;
- mediators with six edges;
- literals, names in two languages, and aliases.

    python benchmarks/freebase_like.py 5000000 big.nt [--seed 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

NS = "http://rdf.freebase.com/ns/"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
INVERSE = "http://www.w3.org/2002/07/owl#inverseOf"
TYPES, RELATIONS, MEDIATORS, TEXTS = 120, 260, 30, 60
TRIPLES_AN_ENTITY = 25
HUBS = (("people.person.gender", 2), ("people.person.nationality", 150), ("people.person.profession", 400))
"""Relations from half of all entities to few objects, with the number of objects."""
SYLLABLES = [
    "ba",
    "co",
    "di",
    "fu",
    "ga",
    "hel",
    "in",
    "jor",
    "ka",
    "lu",
    "mer",
    "no",
    "os",
    "pe",
    "qui",
    "ras",
    "su",
    "tan",
    "ul",
    "ver",
    "wi",
    "xan",
    "yo",
    "zel",
]
BLOCK = 50_000


class Writer:
    """Writes lines in blocks and counts them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.lines = 0

    def edges(self, subjects: np.ndarray, relation: str, objects: np.ndarray) -> None:
        for start in range(0, len(subjects), BLOCK):
            pairs = zip(subjects[start : start + BLOCK].tolist(), objects[start : start + BLOCK].tolist())
            self._write([f"<{NS}m.0{s:x}> <{NS}{relation}> <{NS}m.0{o:x}> ." for s, o in pairs])

    def texts(self, lines: Iterator[str]) -> None:
        block: list[str] = []
        for line in lines:
            block.append(line)
            if len(block) == BLOCK:
                self._write(block)
                block = []
        self._write(block)

    def _write(self, block: list[str]) -> None:
        if block:
            self._out.write("\n".join(block) + "\n")
            self.lines += len(block)


def falling(count: int, power: float) -> np.ndarray:
    """Return a share for each of `count` ranks, proportional to rank ** -power; shape (count,)."""
    weights = np.arange(1, count + 1) ** -power
    return weights / weights.sum()


def name_of(number: int) -> str:
    """Return a name of two words; the same number always gives the same name."""
    words = []
    for part in (number, number // 7 + 3):
        a, rest = divmod(part * 2654435761 % 2**32, len(SYLLABLES))
        words.append(
            (SYLLABLES[rest] + SYLLABLES[a % len(SYLLABLES)] + SYLLABLES[a // 31 % len(SYLLABLES)]).capitalize()
        )
    return " ".join(words)


def generate(triples: int, out: TextIO, *, seed: int = 1) -> int:
    """Write about `triples` lines of N-Triples; return their number."""
    random = np.random.default_rng(seed)
    entities = max(1000, triples // TRIPLES_AN_ENTITY)
    type_of = random.choice(TYPES, size=entities, p=falling(TYPES, 0.8))
    members = [np.flatnonzero(type_of == number) for number in range(TYPES)]
    members = [group if len(group) else np.array([number]) for number, group in enumerate(members)]
    write = Writer(out)
    type_name = [f"area{number // 8}.kind{number}" for number in range(TYPES)]
    write.texts(_names_and_types(entities, type_of, type_name))
    everybody = np.arange(entities)
    for relation, few in HUBS:
        chosen = everybody[random.random(entities) < 0.5]
        objects = members[0][
            random.choice(min(few, len(members[0])), size=len(chosen), p=falling(min(few, len(members[0])), 0.7))
        ]
        write.edges(chosen, relation, objects)
        write.edges(objects, f"{relation}_of", chosen)
        write.texts(iter([f"<{NS}{relation}> <{INVERSE}> <{NS}{relation}_of> ."]))
    left = triples - write.lines
    for number, share in enumerate(falling(RELATIONS, 0.7)):
        source, target = random.integers(TYPES, size=2)
        count = max(3, int(0.75 * left * share / 2))
        subjects, objects = _distinct(
            _draw(random, members[source], count, 0.6), _draw(random, members[target], count, 0.8)
        )
        name, back = f"{type_name[source]}.link{number}", f"{type_name[target]}.link{number}_by"
        write.edges(subjects, name, objects)
        write.edges(objects, back, subjects)
        write.texts(
            iter(
                [
                    f"<{NS}{name}> <{INVERSE}> <{NS}{back}> .",
                    f"<{NS}{name}> <{RDFS}range> <{NS}{type_name[target]}> .",
                ]
            )
        )
    _mediators(write, random, members, type_name, int(0.35 * left))
    _literals(write, random, members, type_name, triples - write.lines)
    return write.lines


def _distinct(subjects: np.ndarray, objects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct pairs."""
    _, kept = np.unique(subjects.astype(np.int64) << 32 | objects, return_index=True)
    return subjects[kept], objects[kept]


def _draw(random: np.random.Generator, pool: np.ndarray, count: int, power: float) -> np.ndarray:
    """Draw `count` members of a pool; the first members are drawn far more often. Shape (count,)."""
    ranks = (random.random(count) ** (1.0 / (1.0 - power)) * len(pool)).astype(int)
    return pool[np.minimum(ranks, len(pool) - 1)]


def _names_and_types(entities: int, type_of: np.ndarray, type_name: list[str]) -> Iterator[str]:
    for number in range(entities):
        node = f"<{NS}m.0{number:x}>"
        yield f"{node} <{NS}type.object.type> <{NS}{type_name[type_of[number]]}> ."
        yield f'{node} <{NS}type.object.name> "{name_of(number)}"@en .'
        if number % 4 == 0:
            yield f'{node} <{NS}type.object.name> "{name_of(number)} 東京"@ja .'
        if number % 6 == 0:
            yield f'{node} <{NS}common.topic.alias> "{name_of(number + 1)} the {number}th"@en .'


def _mediators(write: Writer, random: np.random.Generator, members: list, type_name: list[str], triples: int) -> None:
    first = 0
    for number, share in enumerate(falling(MEDIATORS, 0.6)):
        source, target, third = random.integers(TYPES, size=3)
        count = max(3, int(triples * share / 6))
        kind = f"event.cvt{number}"
        subjects = _draw(random, members[source], count, 0.6).tolist()
        objects = _draw(random, members[target], count, 0.6).tolist()
        places = _draw(random, members[third], count, 0.6).tolist()
        write.texts(
            iter(
                [
                    f'<{NS}{kind}> <{NS}freebase.type_hints.mediator> "true" .',
                    f"<{NS}{type_name[source]}.took_part{number}> <{RDFS}range> <{NS}{kind}> .",
                ]
            )
        )
        write.texts(_of_mediators(kind, f"{type_name[source]}.took_part{number}", subjects, objects, places, first))
        first += count


def _of_mediators(kind: str, relation: str, subjects: list, objects: list, places: list, first: int) -> Iterator[str]:
    for number, (subject, object_, place) in enumerate(zip(subjects, objects, places), start=first):
        node = f"<{NS}m.1{number:x}>"
        yield f"<{NS}m.0{subject:x}> <{NS}{relation}> {node} ."
        yield f"{node} <{NS}type.object.type> <{NS}{kind}> ."
        yield f"{node} <{NS}{kind}.subject> <{NS}m.0{subject:x}> ."
        yield f"{node} <{NS}{kind}.partner> <{NS}m.0{object_:x}> ."
        yield f"{node} <{NS}{kind}.place> <{NS}m.0{place:x}> ."
        yield f'{node} <{NS}{kind}.from> "{1900 + number % 120}"^^<{XSD}gYear> .'


def _literals(write: Writer, random: np.random.Generator, members: list, type_name: list[str], triples: int) -> None:
    for number in range(TEXTS):
        source = int(random.integers(TYPES))
        subjects = _draw(random, members[source], max(1, triples // TEXTS), 0.3).tolist()
        values = random.integers(1 << 30, size=len(subjects)).tolist()  # Duplicate pairs are rare.
        relation = f"<{NS}{type_name[source]}.value{number}>"
        write.texts(f"<{NS}m.0{s:x}> {relation} {_value(number, v)} ." for s, v in zip(subjects, values))


def _value(kind: int, number: int) -> str:
    return (
        f'"{1700 + number % 320}-{1 + number % 12:02d}-{1 + number % 28:02d}"^^<{XSD}date>',
        f'"{number % 10_000_000}"^^<{XSD}integer>',
        f'"note {number}"@en',
    )[kind % 3]


def ready_file(place: Path, triples: int, *, seed: int = 1) -> Path:
    """Return the path `place`; generate the file if it does not exist."""
    file = place / f"freebase-like-{triples}-{seed}.nt"
    if not file.is_file():
        place.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".part")
        with open(temporary, "w", encoding="utf-8", buffering=1 << 22) as out:
            generate(triples, out, seed=seed)
        temporary.replace(file)
    return file


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("triples", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with open(given.file, "w", encoding="utf-8", buffering=1 << 22) as out:
        print(f"{generate(given.triples, out, seed=given.seed):,} lines")
