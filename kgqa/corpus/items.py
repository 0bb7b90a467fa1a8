"""The items that a corpus is made of, as they were read from text, and where they were read.

An item is one claim: that a chunk, an entity, a statement or a hyperedge exists, that two names mean the same entity,
or that an entity is the same as one of a knowledge graph. Items are immutable and named by their content: equal items
have equal keys. An edit adds items (`Addition`) and hides them; what a corpus contains follows from the set of its
edits (`kgqa.corpus.edit_log`).
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

from kgqa.model.terms import Literal

ENTITY = "urn:kgqa:entity:"
RELATION = "urn:kgqa:relation:"
TYPE = "urn:kgqa:type:"
ROLE = "urn:kgqa:role:"
DOCUMENT = "urn:kgqa:document:"
CHUNK = "urn:kgqa:chunk:"
STATEMENT = "urn:kgqa:statement:"
HYPEREDGE = "urn:kgqa:hyperedge:"
COMMUNITY = "urn:kgqa:community:"
EDIT = "urn:kgqa:edit:"
"""Prefixes of the IRIs of what a corpus contains."""
_MAX_SLUG = 60
_LETTERS = re.compile(r"[a-z0-9]+")


def digest(*parts: str, length: int = 16) -> str:
    """Return a hash of texts, `length` hex digits; equal for equal sequences of texts only."""
    joined = "\0".join([f"{len(part)}:{part}" for part in parts])  # a list is faster here
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:length]


@lru_cache(1 << 16)
def normal_name(name: str) -> str:
    """Return the form in which names are compared: NFKC, case-folded, single spaces, no quotes around it."""
    # most names are ASCII, for which these steps change nothing but the case
    folded = name.lower() if name.isascii() else unicodedata.normalize("NFKC", name).casefold()
    text = " ".join(folded.split())
    text = text.strip("\"'“”‘’«»„` ") or text
    return text if text == name else normal_name(text)  # so that the normal form of a normal form is the same


@lru_cache(1 << 16)
def slug(text: str) -> str:
    """Return the letters and digits of a normalised text, joined by `_`, for the readable part of an IRI.

    Only ASCII letters and digits are kept, so that the IRI is valid and the same everywhere; "" if there are none.
    """
    plain = normal_name(text)
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode().lower()
    return "_".join(_LETTERS.findall(plain))[:_MAX_SLUG].strip("_")


@lru_cache(1 << 17)
def name_iri(prefix: str, name: str, *more: str) -> str:
    """Return the IRI of a name: readable, and different for names that differ in their normal forms."""
    readable = slug(name)
    return f"{prefix}{readable}{'.' if readable else ''}{digest(normal_name(name), *map(normal_name, more), length=10)}"


@dataclass(frozen=True, slots=True)
class Party:
    """An entity as a text names it. `type`: what it is, in one or two words; "" if unknown."""

    name: str
    type: str = ""

    @property
    def iri(self) -> str:
        """The IRI of this name and type. Resolution may find that several of these IRIs mean one entity."""
        return name_iri(ENTITY, self.name, self.type)


@dataclass(frozen=True, slots=True)
class DocumentItem:
    """One version of a document. `digest`: hash of its content. `source`: its path or address in the corpus."""

    kind: ClassVar = "document"
    source: str
    title: str
    media_type: str
    digest: str

    @property
    def document(self) -> str:
        """The IRI of the document, the same for all its versions."""
        return document_iri(self.source)


@dataclass(frozen=True, slots=True)
class ChunkItem:
    """A part of a document's text, `text[begin:end]` in code points. `page`: from 1; None if there are no pages."""

    kind: ClassVar = "chunk"
    document: str
    begin: int
    end: int
    text: str
    page: int | None = None

    @property
    def chunk(self) -> str:
        """The IRI of the chunk; it changes with its place and its text."""
        return _chunk_iri(self.document, self.begin, self.text)


@dataclass(frozen=True, slots=True)
class EntityItem:
    """An entity that a text names. `description`: one sentence about it; may be empty."""

    kind: ClassVar = "entity"
    party: Party
    description: str = ""


@dataclass(frozen=True, slots=True)
class StatementItem:
    """A fact: subject, relation in words, and an entity or a literal as object."""

    kind: ClassVar = "statement"
    subject: Party
    relation: str
    object: Party | Literal


@dataclass(frozen=True, slots=True)
class HyperedgeItem:
    """A segment of knowledge and all entities that take part in it, each with its role (may be empty).

    `completeness`: how much of what the text says about it the segment contains, from 0 to 1; None if unknown.
    """

    kind: ClassVar = "hyperedge"
    segment: str
    participants: tuple[tuple[str, Party], ...]
    completeness: float | None = None


@dataclass(frozen=True, slots=True)
class SameItem:
    """Two entity IRIs (`Party.iri`) that mean the same entity; `left` < `right`."""

    kind: ClassVar = "same"
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class LinkItem:
    """An entity IRI (`Party.iri`) that means an entity of a knowledge graph, by its IRI there."""

    kind: ClassVar = "link"
    entity: str
    target: str


Item = DocumentItem | ChunkItem | EntityItem | StatementItem | HyperedgeItem | SameItem | LinkItem
KINDS: dict[str, type[Any]] = {
    each.kind: each for each in (DocumentItem, ChunkItem, EntityItem, StatementItem, HyperedgeItem, SameItem, LinkItem)
}


@dataclass(frozen=True, slots=True)
class Addition:
    """An item that an edit adds, and where and how it was found.

    Attributes:
        item: The item.
        document: IRI of the document that it was read from; "" for an item of another origin.
        chunk: IRI of the chunk; "" without a document.
        begin, end: Where it stands in the text of the document, in code points; both 0 if unknown.
        confidence: From 0 to 1; None if unknown.
        model: The language model, or the rule, that found it.
        prompt: Hash of the prompt.
        reason: Why two entities are the same, or what the addition rests on.
    """

    item: Item
    document: str = ""
    chunk: str = ""
    begin: int = 0
    end: int = 0
    confidence: float | None = None
    model: str = ""
    prompt: str = ""
    reason: str = ""


@lru_cache(1 << 12)  # one after another asks for the IRI of the same chunk
def _chunk_iri(document: str, begin: int, text: str) -> str:
    return f"{CHUNK}{digest(document, str(begin), text)}"


@lru_cache(1 << 12)
def document_iri(source: str) -> str:
    """Return the IRI of the document at a path or address."""
    return f"{DOCUMENT}{digest(source)}"


_FIELDS = {each: tuple(field.name for field in fields(each)) for each in KINDS.values()}
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def item_key(item: Item) -> str:
    """Return the hash that names an item by its content."""
    return key_of_text(item.kind, item_text(item))


def key_of_text(kind: str, text: str) -> str:
    """Return `item_key` of the item of a kind that has the text `item_text`."""
    return digest(kind, text, length=24)


def item_text(item: Item) -> str:
    """Return an item as canonical JSON."""
    return _encode({name: _plain(getattr(item, name)) for name in _FIELDS[type(item)]})


def item_from(kind: str, text: str) -> Item:
    """Read an item from its kind and the result of `item_text`.

    Raises:
        ValueError: The text is not an item of this kind.
    """
    try:
        data, form = json.loads(text), _FORMS[kind]
        if len(data) != len(form):
            raise KeyError("other fields")
        make: Callable[..., Item] = KINDS[kind]
        return make(**{name: read(data[name]) for name, read in form})
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not an item of the kind {kind[:40]!r}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Party):
        return [value.name, value.type]
    if isinstance(value, Literal):
        return {"value": value.value, "datatype": value.datatype, "language": value.language}
    if isinstance(value, tuple):
        return [[role, _plain(party)] for role, party in value]
    return value


def _object(value: Any) -> Party | Literal:
    return Literal(**dict(zip(value, map(_text, value.values())))) if isinstance(value, dict) else _party(value)


def _participants(value: Any) -> tuple[tuple[str, Party], ...]:
    return tuple([(_text(role), _party(party)) for role, party in value])


def _party(value: Any) -> Party:
    name, kind = value
    return Party(_text(name), _text(kind))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("not a whole number")
    return value


def _page(value: Any) -> int | None:
    return None if value is None else _whole(value)


def _share(value: Any) -> float | None:
    if value is not None and type(value) not in (int, float):
        raise TypeError("not a number")
    return value  # type: ignore[no-any-return]


_READERS: dict[str, Callable[[Any], Any]] = {
    "subject": _party,
    "party": _party,
    "object": _object,
    "participants": _participants,
    "begin": _whole,
    "end": _whole,
    "page": _page,
    "completeness": _share,
}
_FORMS: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {
    kind: [(name, _READERS.get(name, _text)) for name in sorted(_FIELDS[each])] for kind, each in KINDS.items()
}
"""The fields of each kind of item, in the order of `item_text`, and what reads them."""
