"""Typed fields of the records in a question file: strings, ids, lists, gold answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kgqa.evaluation.datasets.questions import MAX_ANSWERS, GoldAnswer, list_of

XSD = "http://www.w3.org/2001/XMLSchema#"
NO_GOLD = "no_gold"
"""Value of `support` for a question without a gold answer."""
NOT_SCORED = "not_scored"
"""Value of `support` for a question that the official scorer leaves out."""

_MID = re.compile(r"[mg]\.[0-9a-z_]+\Z")
T = TypeVar("T")
Record = Mapping[str, Any]
"""One JSON object of a question file."""


def text_of(record: Record, key: str) -> str:
    """Return the text under a key of a record, stripped; empty if absent or null. Numbers are converted to text.

    Raises:
        ValueError: the value is neither a string nor a number.
    """
    value = record.get(key)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f'"{key}" must be a text')
    return str(value).strip()


def needed(record: Record, *keys: str) -> str:
    """Return the first non-empty string under these keys; numbers are ignored.

    Raises:
        ValueError: no key has a non-empty string.
    """
    for key in keys:
        value = record.get(key)
        if isinstance(value, str) and (text := value.strip()):
            return text
    raise ValueError(" or ".join(f'"{key}"' for key in keys) + " must be a non-empty text")


def ident(record: Record, *keys: str) -> str:
    """Return the first non-empty id under these keys; an id may be a string or a number.

    Raises:
        ValueError: no key has an id.
    """
    for key in keys:
        if text := text_of(record, key):
            return text
    raise ValueError(" or ".join(f'"{key}"' for key in keys) + " must be an id")


def objects_of(record: Record, key: str) -> list[Record]:
    """Return the list of objects under a key of a record; [] if absent or null.

    Raises:
        ValueError: the value is not a list of objects.
    """
    return list_of(record, key, dict, "objects")


def texts_of(record: Record, key: str) -> list[str]:
    """Return the list of strings under a key of a record, without nulls; [] if absent or null.

    Raises:
        ValueError: the value is not a list of strings.
    """
    value = record.get(key)
    if isinstance(value, list):
        record = {key: [item for item in value if item is not None]}
    return list_of(record, key, str, "strings")


def distinct(items: Iterator[T] | Sequence[T]) -> tuple[T, ...]:
    """Remove repeated items, keeping the order."""
    return tuple(dict.fromkeys(items))


def answers_of(items: Iterator[GoldAnswer] | Sequence[GoldAnswer]) -> tuple[GoldAnswer, ...]:
    """Remove repeated gold answers, and gold answers without id and name.

    Raises:
        ValueError: there are more than `MAX_ANSWERS` answers.
    """
    found = distinct([item for item in items if item.id or item.name])
    if len(found) > MAX_ANSWERS:
        raise ValueError(f"more than {MAX_ANSWERS:,} answers")
    return found


def freebase_id(text: str) -> str:
    """Convert a Freebase id (`m.0abc`, `/m/0abc`, `ns:m.0abc` or an IRI) to the form `m.0abc`; '' for other texts."""
    text = text.strip().removeprefix("http://").removeprefix("https://")
    for start in ("rdf.freebase.com/ns/", "www.freebase.com/", "fb:", "ns:", "/"):
        text = text.removeprefix(start)
    text = text.replace("/", ".", 1) if text[:2] in ("m/", "g/") else text
    return text if _MID.match(text) else ""


def entity_or_value(argument: str, name: str = "", aliases: Sequence[str] = ()) -> GoldAnswer:
    """Build an answer from the id of an entity, or from the text of a value."""
    ident = freebase_id(argument)
    return GoldAnswer(ident, name if ident else name or argument, "", distinct(aliases))


def typed_value(text: str) -> GoldAnswer:
    """Build an answer from a value such as `1969^^http://www.w3.org/2001/XMLSchema#gYear`; the datatype is optional."""
    value, _, datatype = text.partition("^^")
    datatype = datatype.strip("<>")
    if datatype.startswith("xsd:"):
        datatype = XSD + datatype.removeprefix("xsd:")
    return GoldAnswer("", value.strip('"'), datatype if "://" in datatype else "")


def row_with(record: Record, sparql: str, topics: Sequence[str]) -> dict[str, Any]:
    """Add the gold query and the topics to a record; later, gold paths are read from them."""
    return {**record, "sparql": sparql, "topic_entities": [{"id": topic} for topic in topics]}
