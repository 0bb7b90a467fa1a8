"""Adjectives of size, age and time, with the words that relations use for the values that they compare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Scale = Literal["number", "day"]

_BIRTH = ("birth", "born")
_FOUNDING = ("founded", "founding", "established", "formed", "inception", "creation", "created", "built", "opened")
_RELEASE = ("release", "released", "publication", "published", "premiere", "debut", "aired")
_TIME = ("from", "start", "begin", "date", "year", "time", "point")


@dataclass(frozen=True, slots=True)
class Measure:
    """A value that a question compares.

    Attributes:
        words: Words of relations that lead to the value, the most likely first.
        scale: Whether the values are numbers or dates.
        most: Whether the largest value, or the latest date, is asked for.
        events: Whether the value is the time of an event, and not the age of a person or thing.
        phrase: The question's own words for the value; "" if the question only has an adjective.
    """

    words: tuple[str, ...]
    scale: Scale = "number"
    most: bool = True
    events: bool = False
    phrase: str = ""


_SIZE = Measure(("area", "population", "size"))
_HEIGHT = Measure(("height", "elevation", "altitude"))
_LENGTH = Measure(("length", "duration", "runtime", "height"))
_WEIGHT = Measure(("weight", "mass"))
_AGE = Measure((*_BIRTH, *_FOUNDING, *_RELEASE, *_TIME), "day")
_EVENT = Measure((*_TIME, *_RELEASE, *_FOUNDING), "day", events=True)
_WEALTH = Measure(("worth", "wealth", "income", "gdp", "revenue"))
_SPEED = Measure(("speed", "velocity"))
_PRICE = Measure(("price", "cost", "budget"))
_TEMPERATURE = Measure(("temperature",))
_POPULATION = Measure(("population", "inhabitants"))


def _rows() -> list[tuple[str, str, Measure]]:
    def least(measure: Measure) -> Measure:
        return replace(measure, most=False)

    return [
        ("largest biggest", "larger bigger", _SIZE),
        ("smallest", "smaller", least(_SIZE)),
        ("highest tallest", "higher taller", _HEIGHT),
        ("lowest", "lower", least(_HEIGHT)),
        ("longest", "longer", _LENGTH),
        ("shortest", "shorter", least(_LENGTH)),
        ("deepest", "deeper", Measure(("depth",))),
        ("widest", "wider", Measure(("width",))),
        ("narrowest", "narrower", least(Measure(("width",)))),
        ("heaviest", "heavier", _WEIGHT),
        ("lightest", "lighter", least(_WEIGHT)),
        ("oldest eldest", "older elder", least(_AGE)),
        ("youngest newest", "younger newer", _AGE),
        ("first earliest", "earlier", least(_EVENT)),
        ("last latest", "later", _EVENT),
        ("richest wealthiest", "richer wealthier", _WEALTH),
        ("poorest", "poorer", least(_WEALTH)),
        ("fastest", "faster", _SPEED),
        ("slowest", "slower", least(_SPEED)),
        ("costliest", "costlier", _PRICE),
        ("cheapest", "cheaper", least(_PRICE)),
        ("hottest warmest", "hotter warmer", _TEMPERATURE),
        ("coldest", "colder", least(_TEMPERATURE)),
    ]


SUPERLATIVES = {word: measure for words, _, measure in _rows() for word in words.split()}
COMPARATIVES = {word: measure for _, words, measure in _rows() for word in words.split()}
LONG_ADJECTIVES = {
    "populous": _POPULATION,
    "populated": _POPULATION,
    "expensive": _PRICE,
    "recent": _EVENT,
    "wealthy": _WEALTH,
    "affluent": _WEALTH,
}
"""Adjectives that are compared with `more` and `most`."""
ORDINALS = {
    word: number
    for number, words in enumerate(
        ("second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th", "seventh 7th", "eighth 8th", "ninth 9th",
         "tenth 10th"),
        start=2,
    )
    for word in words.split()
}  # fmt: skip


def named_measure(phrase: str, *, most: bool = True) -> Measure:
    """Return the measure that a question names, as in "the average elevation" or "the most official languages"."""
    return Measure(tuple(phrase.lower().split()[-1:]), most=most, phrase=phrase.lower())
