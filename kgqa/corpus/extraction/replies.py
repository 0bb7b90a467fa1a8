"""Reads the JSON replies of models that extract facts. The readers never raise, whatever the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kgqa.llm.replies.json_values import Reading, find_key, json_values, key_name, last_part
from kgqa.llm.replies.reply import Reply, schema_of

ENTITIES = ("entities", "named entities", "nodes")
TRIPLES = ("triples", "facts", "relations", "relationships", "statements", "edges")
HYPEREDGES = ("hyperedges", "segments", "facts")
SUBJECT = ("subject", "head", "source", "s")
RELATION = ("relation", "predicate", "relationship", "r", "p")
OBJECT = ("object", "tail", "target", "o")
NAME = ("name", "entity", "text", "entity name")
TYPE = ("type", "entity type", "category", "label")
SUMMARY = ("summary", "description", "entity summary", "entity description")
QUOTE = ("quote", "evidence", "source text", "span")
SEGMENT = ("segment", "text", "statement", "knowledge segment")
PARTICIPANTS = ("participants", "entities", "parties", "nodes")
"""Names of keys, with the one that prompts ask for first."""
MAX_ITEMS = 1_000
"""Most items of one list that are looked at."""


@dataclass(frozen=True)
class _Entity:
    name: str
    type: str


@dataclass(frozen=True)
class _Triple:
    subject: str
    relation: str
    object: str
    quote: str


@dataclass(frozen=True)
class _Triples:
    entities: tuple[_Entity, ...]
    triples: tuple[_Triple, ...]


@dataclass(frozen=True)
class _OpenTriples:
    triples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Names:
    named_entities: tuple[str, ...]


@dataclass(frozen=True)
class _Participant:
    name: str
    type: str
    role: str


@dataclass(frozen=True)
class _Seen:
    segment: str
    participants: tuple[_Participant, ...]
    completeness: float
    confidence: float


@dataclass(frozen=True)
class _Hyperedge(_Seen):
    quote: str


@dataclass(frozen=True)
class _Hyperedges:
    hyperedges: tuple[_Hyperedge, ...]


@dataclass(frozen=True)
class _SeenHyperedges:
    hyperedges: tuple[_Seen, ...]


@dataclass(frozen=True)
class _ScoredParticipant:
    name: str
    type: str
    summary: str
    confidence: float


@dataclass(frozen=True)
class _ScoredSegment:
    segment: str
    completeness: float
    participants: tuple[_ScoredParticipant, ...]


@dataclass(frozen=True)
class _ScoredSegments:
    hyperedges: tuple[_ScoredSegment, ...]


@dataclass(frozen=True, slots=True)
class RawReply:
    """The lists of a reply as they came: anything that JSON can hold."""

    facts: tuple[Any, ...] = ()
    entities: tuple[Any, ...] = ()


def read_lists(text: str, facts: tuple[str, ...], entities: tuple[str, ...] = ()) -> Reading[RawReply]:
    """Read a JSON object with a list of facts and maybe a list of entities; or the facts alone, with or without a list.

    Args:
        text: The reply.
        facts: The names that the list of facts may have; the prompt asks for the first one.
        entities: The names that the list of entities may have; () if none is asked for.
    """
    try:
        return _read_lists(text, facts, entities)
    except RecursionError:
        return Reading(None, problem="The JSON is nested too deeply.")


def _read_lists(text: str, facts: tuple[str, ...], entities: tuple[str, ...]) -> Reading[RawReply]:
    name = facts[0].replace(" ", "_")
    expected = f'Reply with a JSON object with the list "{name}".'
    values = json_values(last_part(text))
    if not values:
        return Reading(None, problem=f"It contains no JSON. {expected}")
    for each in reversed(values):  # the last one that has a list of facts
        repaired = each.repaired or len(values) > 1
        if isinstance(each.value, list):
            return Reading(RawReply(tuple(each.value[:MAX_ITEMS])), repaired)
        found, value = find_key(each.value, facts)
        if not found:
            continue
        if not isinstance(value, list):
            return Reading(None, problem=f'The value of "{name}" is not a list. {expected}')
        known = find_key(each.value, entities)[1] if entities else None
        named = tuple(known[:MAX_ITEMS]) if isinstance(known, list) else ()
        return Reading(RawReply(tuple(value[:MAX_ITEMS]), named), repaired)
    items = tuple(each.value for each in values if any(field_of(each.value, names) for names in (SUBJECT, SEGMENT)))
    if items:  # one fact, or one in each line, without a list
        return Reading(RawReply(items[:MAX_ITEMS]), repaired=True)
    return Reading(None, problem=f'The JSON has no list "{name}". {expected}')


REPLIES: Mapping[str, Reply[RawReply]] = {
    "corpus/triples": Reply(partial(read_lists, facts=TRIPLES, entities=ENTITIES), schema_of(_Triples)),
    "corpus/hyperedges": Reply(partial(read_lists, facts=HYPEREDGES), schema_of(_Hyperedges)),
    "corpus/image": Reply(partial(read_lists, facts=HYPEREDGES), schema_of(_SeenHyperedges)),
    "corpus/segments": Reply(partial(read_lists, facts=HYPEREDGES), schema_of(_ScoredSegments)),
    "corpus/segments_image": Reply(partial(read_lists, facts=HYPEREDGES), schema_of(_ScoredSegments)),
    "corpus/entities": Reply(partial(read_lists, facts=("named entities", "entities")), schema_of(_Names)),
    "corpus/openie": Reply(partial(read_lists, facts=TRIPLES), schema_of(_OpenTriples)),
}
"""The forms of the replies to the prompts; items of all forms are accepted, see `acceptance`."""


def field_of(item: Any, names: tuple[str, ...]) -> Any:
    """Return the value of the first of these keys that an object has; None if it has none, or is not an object."""
    if not isinstance(item, Mapping):
        return None
    keys = {key_name(key): value for key, value in item.items()}
    return next((keys[name] for name in names if name in keys), None)
