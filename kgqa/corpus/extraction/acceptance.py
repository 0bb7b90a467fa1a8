"""Decides which facts of a model's reply are kept: those whose names and quotes stand in the text.

Each fact is judged for itself: what is wrong with one does not affect the others.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kgqa.corpus.documents.document import Span
from kgqa.corpus.extraction import replies
from kgqa.corpus.extraction.names import NameFinder
from kgqa.corpus.extraction.places import PlaceFinder
from kgqa.corpus.extraction.replies import RawReply, field_of
from kgqa.corpus.extraction.requests import ExtractionRequest
from kgqa.corpus.extraction.rules.values import read_value
from kgqa.corpus.extraction.sentences import element_borders
from kgqa.corpus.items import Addition, EntityItem, HyperedgeItem, Item, Party, StatementItem, item_key, normal_name
from kgqa.model.terms import Literal
from kgqa.text.quotes import find_quote
from kgqa.text.words import clean

MAX_NAME_CHARS = 200
MAX_WORDS_CHARS = 100
"""Longest relation, role or type."""
MAX_SEGMENT_CHARS = 2_000
MAX_QUOTE_CHARS = 2_000
MAX_PARTICIPANTS = 50
ENTITIES_PER_FACT = 4
MAX_REJECTED = 200
"""Most rejected facts of a chunk that are listed; the others are counted."""
_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…)\s*")
_MARKUP = re.compile(
    r"<\|[^|<>]{0,40}\|>|</?(?:think|tool_call|tool|system|user|assistant|answer)\b[^<>]{0,40}>", re.IGNORECASE
)
# overrides of the direction of writing, which can make a text look like another one
_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_VALUE_TYPES = {
    "",
    "date",
    "year",
    "month",
    "day",
    "time",
    "number",
    "count",
    "quantity",
    "amount",
    "percentage",
    "age",
}
_VALUE_TYPES |= {"price", "population", "money", "value", "duration", "distance", "length", "height", "weight", "area"}
"""Types of entities that are written as literals, if they are dates or numbers."""


class Rejected(Exception):
    """A fact cannot be kept; the message says why."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who found the facts: the name of the model, and the hash of the prompt."""

    model: str
    prompt: str


class Acceptor:
    """Collects the facts of one chunk.

    Args:
        request: The chunk.
        origin: Who found the facts.
        limit: The maximum number of facts.
        place: The place of facts without a quote, as offsets in the chunk, for facts that were read from an image.
            Their names need not stand in the text.
    """

    def __init__(self, request: ExtractionRequest, origin: Origin, limit: int, *, place: Span | None = None) -> None:
        self._request = request
        self._origin = origin
        self._limit = limit
        self._place = place
        self._finder = PlaceFinder(request.chunk.text, element_borders(request.document, request.chunk))
        self._title = NameFinder(request.document.title[:MAX_NAME_CHARS])
        self._types: dict[str, str] = {}
        self._found: dict[str, Addition] = {}
        self._facts = 0
        self._more = 0
        self._rejected: list[str] = []

    @property
    def additions(self) -> tuple[Addition, ...]:
        return tuple(self._found.values())

    @property
    def rejected(self) -> tuple[str, ...]:
        more = (f"{self._more:,} more",) if self._more else ()
        return (*self._rejected, *more)

    def triples(self, reply: RawReply) -> None:
        """Add entities, and triples that are objects or lists of three texts and maybe a quote."""
        self._entities(reply.entities)
        self._each(reply.facts, self._triple)

    def hyperedges(self, reply: RawReply, *, scored: bool = False) -> None:
        """Add segments with their participants.

        `scored`: as EvoGraph-R1 publishes them: completeness up to 10, a summary of each participant and a confidence
        up to 100 in it, and no quote.
        """
        self._each(reply.facts, partial(self._hyperedge, scored=scored))

    def names(self, values: Iterable[Any]) -> list[str]:
        """Add entities that are given by their names only, and return the names that were accepted."""
        before = len(self._found)
        self._entities(tuple(values))
        added = list(self._found.values())[before:]
        return [each.item.party.name for each in added if isinstance(each.item, EntityItem)]

    def _each(self, facts: Iterable[Any], add: Any) -> None:
        for fact in facts:
            try:
                if self._facts >= self._limit:
                    raise Rejected(f"more than {self._limit:,} facts")
                add(fact)
            except Rejected as error:
                self._reject(fact, str(error))

    def _reject(self, fact: Any, why: str) -> None:
        if len(self._rejected) < MAX_REJECTED:
            self._rejected.append(f"{_shown(fact)}: {why}")
        else:
            self._more += 1

    def _entities(self, values: Iterable[Any]) -> None:
        for number, value in enumerate(values):
            try:
                if number >= self._limit * ENTITIES_PER_FACT:
                    raise Rejected(f"more than {self._limit * ENTITIES_PER_FACT:,} entities")
                name = _name(value if isinstance(value, str) else field_of(value, replies.NAME))
                type_ = _type(field_of(value, replies.TYPE))
                place = self._known_place(name)
                self._types.setdefault(normal_name(name), type_)
                if read_value(name, type_) is None or type_ not in _VALUE_TYPES:
                    self._add(EntityItem(self._party(name)), place)
            except Rejected as error:
                self._reject(value, str(error))

    def _triple(self, fact: Any) -> None:
        if isinstance(fact, list):
            if len(fact) not in (3, 4):
                raise Rejected(f"{len(fact)} {'part' if len(fact) == 1 else 'parts'}, not 3")
            parts = [*fact, None][:4]
        else:
            keys = (replies.SUBJECT, replies.RELATION, replies.OBJECT, replies.QUOTE)
            parts = [field_of(fact, names) for names in keys]
        subject, object_ = _name(parts[0]), _name(parts[2])
        relation = _words(parts[1], "relation")
        if normal_name(subject) == normal_name(object_):
            raise Rejected("subject and object are the same")
        places = self._known_place(subject), self._known_place(object_)
        span = self._fact_span(parts[3], relation, subject, object_)
        value = self._value(object_, relation)
        self._facts += 1
        self._add(EntityItem(self._party(subject)), places[0])
        if isinstance(value, Party):
            self._add(EntityItem(value), places[1])
        self._add(StatementItem(self._party(subject), relation, value), span)

    def _hyperedge(self, fact: Any, *, scored: bool) -> None:
        segment = _text(field_of(fact, replies.SEGMENT), "segment", MAX_SEGMENT_CHARS)
        listed = field_of(fact, replies.PARTICIPANTS)
        if not isinstance(listed, list) or not listed:
            raise Rejected("it has no participants")
        participants: dict[tuple[str, str], tuple[str, Party]] = {}
        found: dict[Party, tuple[str, Span | None, float | None]] = {}
        for each in listed[:MAX_PARTICIPANTS]:
            try:
                name = _name(each if isinstance(each, str) else field_of(each, replies.NAME))
                place = self._known_place(name)
            except Rejected as error:
                self._reject(each, str(error))
                continue
            self._types.setdefault(normal_name(name), _type(field_of(each, replies.TYPE)))
            role, party = _optional_words(field_of(each, ("role",))), self._party(name)
            participants.setdefault((role, normal_name(name)), (role, party))
            summary = _optional_text(field_of(each, replies.SUMMARY)) if scored else ""
            found[party] = summary, place, _share(field_of(each, ("confidence", "confidence score")), 100)
        if not participants:
            raise Rejected("none of its participants is in the text")
        if scored:
            span = self._around([place for _, place, _ in found.values()])
        else:
            span = self._quote_span(field_of(fact, replies.QUOTE), [party.name for _, party in participants.values()])
        self._facts += 1
        for party, (summary, place, confidence) in found.items():
            self._add(EntityItem(party, summary), place, confidence if scored else None)
        completeness = _share(field_of(fact, ("completeness", "completeness score")), 10 if scored else 1)
        edge = HyperedgeItem(segment, tuple(participants.values()), completeness)
        self._add(edge, span, confidence=_share(field_of(fact, ("confidence",))))

    def _around(self, places: Iterable[Span | None]) -> Span:
        """Return the part of the chunk that has the places in it; all of it without a place."""
        known = [place for place in places if place is not None]
        if not known:
            return 0, len(self._finder.text)
        return min(begin for begin, _ in known), max(end for _, end in known)

    def _party(self, name: str) -> Party:
        return Party(name, self._types.get(normal_name(name), ""))

    def _value(self, name: str, relation: str) -> Party | Literal:
        """Return a date or a number as a literal, anything else as an entity."""
        type_ = self._types.get(normal_name(name), "")
        literal = read_value(name, f"{type_} {relation}") if type_ in _VALUE_TYPES else None
        return literal or self._party(name)

    def _known_place(self, name: str) -> Span | None:
        """Return where a name stands in the chunk; None if it stands only in the title of the document.

        Raises:
            Rejected: It stands in neither.
        """
        place = self._finder.name_place(name)
        if place is None and self._place is not None:
            return self._place
        if place is None and name not in self._title:
            raise Rejected(f"the name {name[:60]!r} is not in the text")
        return place

    def _fact_span(self, quote: Any, relation: str, subject: str, object_: str) -> Span:
        """Return the span of the quote; without a quote, that of the sentence with both names."""
        if quote is not None:
            return self._quote_span(quote, [subject, object_])
        span = self._finder.fact_place(subject, object_, relation)
        if span is None or NameFinder(self._finder.text[slice(*span)]).find(object_) is None:
            raise Rejected("no sentence states it")
        return span

    def _quote_span(self, quote: Any, names: list[str]) -> Span:
        if self._place is not None:
            return self._place
        text = _text(quote, "quote", MAX_QUOTE_CHARS)
        span = self._find_quote(text)
        if span is None:
            raise Rejected("the quote is not in the text")
        quoted = NameFinder(self._finder.text[slice(*span)])
        if not any(name in quoted for name in names):
            raise Rejected("the quote contains none of the names")
        return span

    def _find_quote(self, quote: str) -> Span | None:
        """Return where a quote stands: letter by letter, otherwise word by word.

        A quote that was shortened with dots is found if its parts stand one after the other.
        """
        text = self._finder.text
        if exact := find_quote(text, quote) or self._finder.names.find(quote):
            return exact
        parts = [part for part in _ELLIPSIS.split(quote) if part.strip()]
        places: list[Span] = []
        for part in parts if len(parts) < 10 else ():
            place = self._finder.names.find(part, places[-1][1] if places else 0)
            if place is None:
                return None
            places.append(place)
        return (places[0][0], places[-1][1]) if places else None

    def _add(self, item: Item, place: Span | None, confidence: float | None = None) -> None:
        chunk = self._request.chunk
        begin, end = (place[0] + chunk.begin, place[1] + chunk.begin) if place else (0, 0)
        model, prompt = self._origin.model, self._origin.prompt
        self._found.setdefault(
            item_key(item), Addition(item, chunk.document, chunk.chunk, begin, end, confidence, model, prompt)
        )


def _name(value: Any) -> str:
    text = _text(value, "name", MAX_NAME_CHARS)
    if not any(character.isalnum() for character in text):
        raise Rejected("the name has no letters or digits")
    return text


def _words(value: Any, what: str) -> str:
    text = " ".join(_text(value, what, MAX_WORDS_CHARS).replace("_", " ").split())
    if not any(character.isalnum() for character in text):
        raise Rejected(f"the {what} has no letters")
    return text


def _optional_words(value: Any) -> str:
    """Return a role; "" if it is missing or cannot be used."""
    try:
        return _words(value, "role")
    except Rejected:
        return ""


def _type(value: Any) -> str:
    """Return a type in small letters; "" if it is missing or cannot be used."""
    return _optional_words(value).lower()


def _text(value: Any, what: str, longest: int) -> str:
    """Return a text without blanks around it.

    Raises:
        Rejected: It is missing or too long, or contains control characters or the marks of a chat.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and what == "name":
        value = str(value)
    if not isinstance(value, str):
        raise Rejected(f"the {what} is missing" if value is None else f"the {what} is not a text")
    if len(value) > longest:
        raise Rejected(f"the {what} is longer than {longest:,} characters")
    text = " ".join(value.split())
    if not text:
        raise Rejected(f"the {what} is empty")
    if any(character in _OVERRIDES or unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise Rejected(f"the {what} contains control characters")
    if _MARKUP.search(text):
        raise Rejected(f"the {what} contains the marks of a chat")
    return text


def _optional_text(value: Any) -> str:
    """Return a text of some sentences; "" if it is missing or cannot be used."""
    try:
        return _text(value, "summary", MAX_SEGMENT_CHARS)
    except Rejected:
        return ""


def _share(value: Any, most: float = 1) -> float | None:
    """Return a number from 0 to `most` as a share of it; None for anything else."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):
        return None
    return number / most if 0 <= number <= most else None


def _shown(fact: Any) -> str:
    """Return a fact as one line for a message."""
    if isinstance(fact, dict):
        fact = [value for value in list(fact.values())[:5] if isinstance(value, (str, int, float))]
    text = " | ".join(str(part)[:200] for part in fact[:5]) if isinstance(fact, list) else str(fact)[:200]
    text = clean(text)
    return text if len(text) <= 160 else f"{text[:159]}…"
