"""Pronounceable invented names, each used once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_FIRST = [
    "Mira",
    "Toma",
    "Selin",
    "Orin",
    "Katla",
    "Bruno",
    "Ines",
    "Davor",
    "Lena",
    "Pavo",
    "Runa",
    "Emil",
    "Sanna",
    "Iven",
    "Petra",
    "Jonas",
    "Nadia",
    "Marek",
    "Alma",
    "Teo",
]
_HEADS = [
    "Bel",
    "Cor",
    "Dal",
    "Fen",
    "Gar",
    "Hol",
    "Jor",
    "Kel",
    "Lin",
    "Mar",
    "Nor",
    "Ost",
    "Pel",
    "Ros",
    "Sel",
    "Tar",
    "Vel",
    "Wen",
    "Zim",
    "Ard",
]
_TAILS = [
    "ander",
    "berg",
    "court",
    "dale",
    "evan",
    "field",
    "grove",
    "hart",
    "imov",
    "kin",
    "land",
    "moor",
    "ner",
    "orsky",
    "port",
    "quist",
    "rand",
    "stad",
    "tov",
    "well",
]


class Names:
    """Makes names with a generator of random numbers; no name is made twice."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def new(self, make: Callable[[], str]) -> str:
        """Return the first name that is new.

        Raises:
            ValueError: after many attempts, no name is new.
        """
        for _ in range(500):
            name = make()
            if name.casefold() not in self._used:
                self._used.add(name.casefold())
                return name
        raise ValueError("too many names of one kind")

    def person(self) -> str:
        """Return the name of a person, such as Mira Belander."""
        return self.new(lambda: f"{self._rng.choice(_FIRST)} {self.word()}")

    def place(self) -> str:
        """Return the name of a place or a company, such as Corfield."""
        return self.new(self.word)

    def filled(self, pattern: str, *choices: Sequence[str]) -> str:
        """Return a pattern with {0}, {1}, ... replaced by random choices."""
        return self.new(lambda: pattern.format(*map(self._rng.choice, choices)))

    def word(self) -> str:
        """Return an invented word, perhaps one that was returned before."""
        return self._rng.choice(_HEADS) + self._rng.choice(_TAILS)


def some(rng: random.Random, items: Sequence[str], least: int, most: int) -> list[str]:
    """Return some of the items, in random order."""
    return rng.sample(items, min(len(items), rng.randint(least, most)))
