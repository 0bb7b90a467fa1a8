"""The units of numbers: of a relation, of a node that holds a number and its unit, of a datatype, or in a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kgqa.conditions import XSD
from kgqa.graph.tables.changes import VALUE, Pattern, Select, matches
from kgqa.graph.tables.labels import FindLabels
from kgqa.model import Entity, Literal, RelationPath, Value
from kgqa.schema import Schema
from kgqa.words import clean, local_name, short_words, split_words

_IN_BRACKETS = re.compile(r"[(\[]\s*(?:in\s+)?([^()\[\]]{1,20}?)\s*[)\]]$")
_NAMED = frozenset(
    {"metre", "metres", "meter", "meters", "kilometre", "kilometres", "kilometer", "kilometers", "km", "centimetre",
     "centimetres", "centimeter", "centimeters", "cm", "millimetre", "millimetres", "mm", "mile", "miles", "foot",
     "feet", "inch", "inches", "kilogram", "kilograms", "kg", "gram", "grams", "tonne", "tonnes", "pound", "pounds",
     "litre", "litres", "liter", "liters", "hectare", "hectares", "acre", "acres", "percent", "kelvin", "celsius",
     "fahrenheit", "watt", "watts", "volt", "volts", "hertz", "pascal", "usd", "eur", "gbp"}
)  # fmt: skip
"""The last words of names of relations that are units, as in `height_meters`."""
_UNTYPED = (XSD, "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.opengis.net/")


def units_of(
    path: RelationPath,
    walks: Sequence[Sequence[Value]],
    *,
    schema: Schema,
    relation_labels: Mapping[str, str],
    select: Select,
    find_labels: FindLabels,
) -> tuple[str, ...]:
    """Return the units of the numbers at the end of a path, sorted; more than one if they differ, none if unknown.

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
    holders = dict.fromkeys(walk[-2] for walk in walks if len(walk) > 1)
    patterns: list[Pattern] = [(node, Entity(unit), VALUE, 0) for unit in beside for node in holders]
    patterns += [(subject, Entity(predicate), VALUE, 0) for predicate in schema.units_of_relations]
    found = {unit for values in (matches(select, patterns) if patterns else ()) for unit in values}
    labels = find_labels([unit for unit in found if isinstance(unit, Entity)])
    names = {
        clean(unit.value if isinstance(unit, Literal) else labels.get(unit) or schema.short_id(unit.iri))
        for unit in found
    }
    return tuple(sorted(names or _by_datatype(walks) or _by_name(short_words(relation, schema, relation_labels))))


def _by_datatype(walks: Sequence[Sequence[Value]]) -> set[str]:
    ends = [walk[-1] for walk in walks]
    datatypes = {end.datatype for end in ends if isinstance(end, Literal)}
    known = {datatype for datatype in datatypes if datatype and not datatype.startswith(_UNTYPED)}
    return {split_words(local_name(datatype)) for datatype in known} if known == datatypes else set()


def _by_name(words: str) -> set[str]:
    if found := _IN_BRACKETS.search(words):
        return {found[1]}
    last = words.split()[-1:]
    return set(last) & _NAMED if len(words.split()) > 1 else set()
