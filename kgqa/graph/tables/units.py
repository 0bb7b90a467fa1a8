"""The units of numbers: of a relation, of a node that holds a number and its unit, of a datatype, or in a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgqa.graph.tables.declarations import Select
from kgqa.graph.tables.labels import FindLabels, values_of
from kgqa.model import Entity, Literal, RelationPath, Value
from kgqa.model.conditions import XSD
from kgqa.schema import Schema
from kgqa.text.words import clean, local_name, short_words, split_words

_IN_BRACKETS = re.compile(r"[(\[]\s*(in\s+)?([^()\[\]]{1,30}?)\s*[)\]]$")
_CLEAR = frozenset(
    {"metres", "meters", "kilometres", "kilometers", "km", "centimetres", "centimeters", "cm", "millimetres",
     "millimeters", "mm", "miles", "feet", "inches", "kilograms", "kg", "grams", "tonnes", "pounds", "litres", "liters",
     "hectares", "acres", "percent", "kelvin", "celsius", "fahrenheit", "watts", "volts", "hertz", "usd", "eur", "gbp",
     "ft", "mph", "km/h", "m/s", "km²", "km2", "m²", "m2", "m³", "m3", "km³", "km3", "cm²", "cm³", "kg/m³", "g/cm³",
     "°c", "°f", "%", "€", "$", "£"}
)  # fmt: skip
"""Units that mean nothing else at the end of a relation's name: plurals, as in `height_meters`, and symbols."""
_AFTER_MEASURE = frozenset(
    {"metre", "meter", "kilometre", "kilometer", "centimetre", "centimeter", "millimetre", "millimeter", "mile", "foot",
     "inch", "kilogram", "gram", "tonne", "pound", "litre", "liter", "hectare", "acre", "watt", "volt", "pascal",
     "m", "g", "l"}
)  # fmt: skip
"""Units that mean something else in other names, as in `left foot`: they are units after "in" or a measure."""
_MEASURES = frozenset(
    {"altitude", "area", "capacity", "depth", "diameter", "distance", "elevation", "height", "length", "mass", "power",
     "pressure", "radius", "range", "size", "thickness", "voltage", "volume", "weight", "width", "in"}
)  # fmt: skip
_POWERS = frozenset({"square", "sq", "cubic"})
_SCALES = frozenset({"thousand", "thousands", "million", "millions", "billion", "billions"})
_UNTYPED = (XSD, "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.opengis.net/")


@dataclass(frozen=True, slots=True)
class Units:
    """The units of the numbers at the end of a path.

    `of_holders`: for each number that was read, the units of the nodes that hold it. `declared`, `named`: the units
    that the graph gives to the relation, and that in its name.
    """

    of_holders: Mapping[Value, frozenset[str]]
    declared: frozenset[str]
    named: frozenset[str]

    def of(self, number: Value) -> frozenset[str]:
        """Return the units of a number: none if unknown, several if several nodes hold it.

        A number that was not read has no unit if others have one from their holders, because its own may differ.
        """
        if held := self.of_holders.get(number):
            return held
        if number not in self.of_holders and any(self.of_holders.values()):
            return frozenset()
        return self.declared or _by_datatype(number) or self.named


def units_of(
    path: RelationPath,
    walks: Sequence[Sequence[Value]],
    *,
    schema: Schema,
    relation_labels: Mapping[str, str],
    select: Select,
    find_labels: FindLabels,
) -> Units:
    """Find the units of the numbers at the end of a path.

    Args:
        path: a path that ends in numbers.
        walks: some walks along the path.
        select: renders a template of queries/ and runs the query.
        find_labels: returns the labels of entities.

    Raises:
        StoreTimeout, PartialResult: the units could not be read in time, or not completely.
        StoreError: other errors of `Store.select`.
    """
    relation = path.steps[-1].relation
    subject = Entity(schema.label_subject(relation))
    beside = [unit for amount, unit in schema.units_of_values if amount == relation]
    holders = [node for walk in walks for node in walk[-2:-1] if isinstance(node, Entity)]
    rows = values_of(list(dict.fromkeys(holders)), beside, select=select)
    rows += values_of([subject], schema.units_of_relations, select=select)
    labels = find_labels([unit for *_, unit in rows if isinstance(unit, Entity)])
    units: dict[Value | None, frozenset[str]] = {}
    for node, _, unit in rows:
        text = unit.value if isinstance(unit, Literal) else labels.get(unit) or schema.short_id(unit.iri)
        units[node] = units.get(node, frozenset()) | {clean(text)}
    of_holders: dict[Value, frozenset[str]] = {}
    for *_, holder, number in walks:
        of_holders[number] = of_holders.get(number, frozenset()) | units.get(holder, frozenset())
    named = frozenset(_by_name(short_words(relation, schema, relation_labels)))
    return Units(of_holders, units.get(subject, frozenset()), named)


def _by_datatype(number: Value) -> frozenset[str]:
    datatype = number.datatype if isinstance(number, Literal) else ""
    known = datatype and not datatype.startswith(_UNTYPED)
    return frozenset({split_words(local_name(datatype))} if known else ())


def _by_name(words: str) -> set[str]:
    """Return the unit in the name of a relation: `height (in m)`, `height meters`, `area square miles`."""
    if found := _IN_BRACKETS.search(words):
        before, unit = [*words[: found.start()].split(), *(found[1] or "").split()], found[2].split()
    else:
        every = words.split()
        start = -2 if every[-2:-1] and every[-2].lower() in _POWERS else -1
        before, unit = every[:start], every[start:]
    lower = [word.lower() for word in before]
    if not lower or len(unit) > 2 or any(word.lower() not in _POWERS for word in unit[:-1]):
        return set()
    if "per" in lower or lower[-1] in _SCALES | _POWERS | _CLEAR | _AFTER_MEASURE:
        return set()  # a part of a larger unit: people per mile, million usd, acre feet
    last = unit[-1] if unit[-1] in ("M", "MM") else unit[-1].lower()  # M and MM are millions
    known = last in _CLEAR or (last in _AFTER_MEASURE and lower[-1] in _MEASURES)
    return {" ".join(unit)} if known else set()
