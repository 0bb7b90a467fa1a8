"""Marks the quotes of an answer in the chunks that they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kgqa.report.lenient_json import count_of, object_of, text_of
from kgqa.report.text.piece_texts import PieceTexts
from kgqa.text.quotes import find_quote, is_quote

MAX_CHARS = 20_000
"""Most characters of a passage that are shown."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a passage. `marked`: whether it is quoted. `ends`: numbers of the citations whose quotes end here."""

    text: str
    marked: bool = False
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that citations name. `cited`: the numbers of these citations. `missing`: of those without a mark."""

    iri: str
    title: str
    source: str
    parts: tuple[Part, ...]
    cited: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    cut: bool = False


@dataclass
class _Quoted:
    cited: list[int] = field(default_factory=list)
    places: list[tuple[int, int, int]] = field(default_factory=list)


def quoted_passages(citations: Sequence[Mapping[str, Any]], texts: PieceTexts) -> list[Passage]:
    """Return the chunks that citations of an answer object name, with the quotes in them; unknown chunks are left out.

    A quote is marked where the citation says that it stands, or where it stands in the chunk now.
    """
    found: dict[str, _Quoted] = {}
    for number, citation in enumerate(citations, 1):
        iri = chunk_of(citation)
        piece = texts.piece(iri) if iri else None
        if piece is None or piece.kind != "chunk":
            continue
        quoted = found.setdefault(iri, _Quoted())
        quoted.cited.append(number)
        if place := _place(piece.text, citation):
            quoted.places.append((*place, number))
    return [_passage(iri, quoted, texts) for iri, quoted in found.items()]


def chunk_of(citation: Mapping[str, Any]) -> str:
    """Return the IRI of the chunk in which a citation's quote stands, or else of the piece that it names."""
    return text_of(object_of(citation.get("span")).get("chunk")) or text_of(citation.get("piece"))


def _place(text: str, citation: Mapping[str, Any]) -> tuple[int, int] | None:
    quote, span = text_of(citation.get("quote")), object_of(citation.get("span"))
    if citation.get("verified") is not True:
        return None
    begin, end = count_of(span.get("begin")), count_of(span.get("end"))
    if begin is not None and end is not None and is_quote(text, begin, end, quote):
        return begin, end
    return find_quote(text, quote)


def _passage(iri: str, quoted: _Quoted, texts: PieceTexts) -> Passage:
    piece = texts.piece(iri)
    assert piece is not None
    found = {number for _, _, number in quoted.places}
    return Passage(
        iri,
        piece.title,
        piece.source,
        _parts(piece.text[:MAX_CHARS], quoted.places),
        tuple(quoted.cited),
        tuple(number for number in quoted.cited if number not in found),
        len(piece.text) > MAX_CHARS,
    )


def _parts(text: str, places: Sequence[tuple[int, int, int]]) -> tuple[Part, ...]:
    """Split a text where quotes begin and end; quotes may overlap."""
    places = [(begin, min(end, len(text)), number) for begin, end, number in places if begin < len(text)]
    cuts = sorted({0, len(text), *(at for begin, end, _ in places for at in (begin, end))})
    return tuple(
        Part(
            text[start:stop],
            any(begin <= start and stop <= end for begin, end, _ in places),
            tuple(number for _, end, number in places if end == stop),
        )
        for start, stop in pairwise(cuts)
    )
