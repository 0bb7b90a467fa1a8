"""A document: the text that was read from a file, and where its elements, pages and figures are in this text.

All offsets count code points in `Document.text`. This text is stored as it is; it is never normalised.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from kgqa.corpus.items import document_iri
from kgqa.errors import DocumentError

Span = tuple[int, int]
"""Begin and end in the text of a document."""
ElementKind = Literal["heading", "table_row", "link", "key_value", "definition", "list_item"]

REPLACEMENT = "\ufffd"
# what RDF literals, XML or UTF-8 cannot contain: control characters, surrogates, noncharacters
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LINE_ENDS = {"\x0b", "\x0c", "\x85"}


@dataclass(frozen=True, slots=True)
class Element:
    """A part of a document whose layout says what it means.

    Attributes:
        kind: What it is.
        begin, end: Where it is in the text of the document.
        level: The level of a heading, from 1, or the nesting of a list item, from 1; otherwise 0.
        cells: The spans of its parts. A table row has its cells, a key-value line its key and its value, a definition
            the term and what it means; a heading, a link and a list item have one span, their text without marks.
            The span of an empty cell has equal ends.
        header: For a table row, the spans of the cells of the table's header row; () if the table has none.
        target: The address that a link points to.
    """

    kind: ElementKind
    begin: int
    end: int
    level: int = 0
    cells: tuple[Span, ...] = ()
    header: tuple[Span, ...] = ()
    target: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """An image in a document.

    Attributes:
        data: The content of the image file.
        media_type: Such as `image/png`.
        begin: The offset in the text at which the image stands.
        page: Its page, from 1; None if the document has no pages.
        caption: The text that describes it; may be empty.
    """

    data: bytes
    media_type: str
    begin: int = 0
    page: int | None = None
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """The text of one document.

    Attributes:
        source: Its path in the corpus; for a record of a JSON Lines file, `PATH#ID`.
        title: Its title, or its file name.
        media_type: The media type of the file.
        digest: Hash of the content that it was read from.
        text: Its text.
        pages: The offset at which each page begins; () if it has no pages.
        elements: Headings, table rows, links and so on, by begin.
        figures: Its images.
    """

    source: str
    title: str
    media_type: str
    digest: str
    text: str
    pages: tuple[int, ...] = ()
    elements: tuple[Element, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def iri(self) -> str:
        """The IRI of the document, the same for all its versions."""
        return document_iri(self.source)

    def page(self, offset: int) -> int | None:
        """Return the page on which an offset is, from 1; None if the document has no pages."""
        return max(1, bisect_right(self.pages, offset)) if self.pages else None


def check_quote(text: str, begin: int, end: int, quote: str) -> None:
    """Check that a quote is what the text contains from `begin` to `end`.

    Raises:
        ValueError: It is not.
    """
    if not 0 <= begin <= end <= len(text) or text[begin:end] != quote:
        raise ValueError(f"the quote {quote[:40]!r} is not in the text at {begin}-{end}")


def safe_text(text: str) -> str:
    r"""Return text in which each character that cannot be stored is replaced by one other character.

    Vertical tab, form feed and next line (U+0085) become `\n`. Other control characters except `\t`, `\n` and `\r`,
    lone surrogates and noncharacters become U+FFFD. The length is the same, so offsets stay valid.
    """
    return _UNSAFE.sub(lambda found: "\n" if found[0] in _LINE_ENDS else REPLACEMENT, text)


__all__ = ["Document", "DocumentError", "Element", "ElementKind", "Figure", "Span", "check_quote", "safe_text"]
