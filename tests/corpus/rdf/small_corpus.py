"""A small corpus about two films, as additions, and its graphs as N-Quads lines."""

from __future__ import annotations

from collections.abc import Iterable

from kgqa.corpus.items import (
    Addition,
    ChunkItem,
    DocumentItem,
    EntityItem,
    HyperedgeItem,
    Item,
    Party,
    SameItem,
    StatementItem,
)
from kgqa.corpus.rdf.triples import quad_blocks
from kgqa.corpus.rdf.vocabulary import XSD
from kgqa.corpus.snapshot import snapshot_of
from kgqa.model.terms import Literal

BONG, BONG_JH, SONG = Party("Bong Joon-ho", "person"), Party("Director Bong", "person"), Party("Song Kang-ho", "person")
PARASITE, HOST = Party("Parasite", "film"), Party("The Host", "film")
OSCAR, SEOUL, DAEGU = Party("Oscar", "prize"), Party("Seoul", "city"), Party("Daegu", "city")
TEXT = "Bong Joon-ho, born in Daegu, directed Parasite. Song Kang-ho starred in it and won no Oscar; Bong did, in 2020."
DOCUMENT = DocumentItem("films.txt", "Films", "text/plain", "0f")
CHUNK = ChunkItem(DOCUMENT.document, 0, len(TEXT), TEXT, 1)
FACTS = (
    (BONG, "born in", DAEGU),
    (BONG, "directed", PARASITE),
    (BONG_JH, "directed", HOST),
    (SONG, "starred in", PARASITE),
    (SONG, "starred in", HOST),
    (SONG, "lives in", SEOUL),
    (PARASITE, "released in", Literal("2019", f"{XSD}gYear")),
    (HOST, "released in", Literal("2006", f"{XSD}gYear")),
    (PARASITE, "runs for", Literal("132", f"{XSD}integer")),
    (HOST, "runs for", Literal("120", f"{XSD}integer")),
)
HYPEREDGES = (
    ("Bong Joon-ho won the Oscar for Parasite.", (("winner", BONG), ("prize", OSCAR), ("film", PARASITE))),
    ("Director Bong and Song Kang-ho met in Seoul.", (("", BONG_JH), ("", SONG), ("", SEOUL))),
    ("The Host was shot in Seoul with Song Kang-ho.", (("", HOST), ("", SEOUL), ("actor", SONG))),
)


def additions() -> list[Addition]:
    """Return what a reader of the text found; places are not precise."""
    items: list[Item] = [StatementItem(*fact) for fact in FACTS]
    items += [HyperedgeItem(segment, participants, 0.5) for segment, participants in HYPEREDGES]
    items.append(EntityItem(SONG, "An actor."))
    place = {"document": DOCUMENT.document, "chunk": CHUNK.chunk}
    return [
        Addition(DOCUMENT, DOCUMENT.document),
        Addition(CHUNK, **place, begin=0, end=len(TEXT)),
        *(Addition(each, **place, begin=0, end=20, confidence=0.75, model="reader", prompt="0a") for each in items),
        Addition(SameItem(*sorted((BONG.iri, BONG_JH.iri))), reason="same person", model="rule"),
    ]


def lines_of(found: Iterable[Addition], **options) -> list[str]:
    """Return the N-Quads lines of the graphs of a corpus."""
    return b"".join(quad_blocks(snapshot_of(found), **options)).decode().rstrip("\n").split("\n")
