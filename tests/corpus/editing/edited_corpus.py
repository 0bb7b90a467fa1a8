"""A small corpus with hyperedges, and overlays on it, for tests of edits."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.items import Party
from tests.corpus.small_corpus import insert, new_editor

FACTS = ("Ada met Babbage London", "Ada wrote notes Engine 1843", "Byron left England Venice")
WEB = "http://web.example/page"


def build(path: Path, *facts: str) -> Path:
    """Create a published corpus with a document of these facts, each with at least three entities."""
    with new_editor(path) as editor:
        insert(editor, "one.txt", *(facts or FACTS))
        editor.publish()
    return path


def clock():
    """Return a function that returns later and later times."""
    seconds = count()
    return lambda: f"2026-02-01T00:{next(seconds) // 60 % 60:02}:{next(seconds) % 60:02}.000Z"


def overlay(corpus: Corpus, *, session="s1", question="Where?", **more) -> Overlay:
    return Overlay(corpus, session=session, question=question, agent="model", **{"now": clock(), **more})


def parties(*names: str) -> tuple[tuple[str, Party], ...]:
    return tuple(("", Party(name)) for name in names)


def shown(number: int, text: str, trust: str = "web", iri: str = WEB) -> ShownText:
    return ShownText(number, iri, text, trust)


def iri_of(reader, segment: str) -> str:
    """Return the IRI of the live hyperedge with a segment, read from a corpus or another reader."""
    (found,) = [each.iri for each in reader.hyperedges() if each.segment == segment]
    return found


def segments(path: Path) -> set[str]:
    with Corpus.open(path) as corpus:
        return {each.segment for each in corpus.reader.hyperedges()}
