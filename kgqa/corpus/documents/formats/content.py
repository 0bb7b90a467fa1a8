"""What a reader of a format returns, and a builder of texts with offsets."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.corpus.documents.document import Element, Figure


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file; see `kgqa.corpus.documents.document.Document`. `title`: "" if the file has none."""

    text: str
    title: str = ""
    pages: tuple[int, ...] = ()
    elements: tuple[Element, ...] = ()
    figures: tuple[Figure, ...] = ()
