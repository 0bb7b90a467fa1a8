"""What a reader of a format returns, and what it is built with: text with offsets, elements, images."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from kgqa.corpus.documents.document import Element, ElementKind, Figure, Span, safe_text
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError

CELL_SEPARATOR = " | "
_SPACES = re.compile(r"[ \t\r\n\f\v\u00a0]+")
MAX_TARGET = 2_000


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file; see `kgqa.corpus.documents.document.Document`. `title`: "" if the file has none."""

    text: str
    title: str = ""
    pages: tuple[int, ...] = ()
    elements: tuple[Element, ...] = ()
    figures: tuple[Figure, ...] = ()


class TextBuilder:
    """Builds the text of a document piece by piece, and the elements that refer to it.

    White space between words becomes one space, except in preformatted text; the text has no blanks at the ends of
    lines and no more than one empty line in sequence.

    Attributes:
        length: The length of the text so far.
    """

    def __init__(self, limits: Limits) -> None:
        self.length = 0
        self._limits = limits
        self._pieces: list[str] = []
        self._begins: list[int] = []
        self._elements: list[Element] = []
        self._pending = ""
        """White space and separators that are added before the next word, if one follows."""

    def add(self, text: str, *, preformatted: bool = False) -> None:
        """Add text to the present line."""
        if preformatted:
            if text:
                self._append(safe_text(text))
            return
        words = _SPACES.sub(" ", text)
        if words.startswith(" "):
            self._pending = self._pending or " "
        if stripped := safe_text(words.strip(" ")):
            self._append(stripped)
            if words.endswith(" "):
                self._pending = " "

    def _append(self, text: str) -> None:
        pending = self._pending if self.length else ""
        self._pending = ""
        self._begins.append(self.length + len(pending))
        self._pieces += [pending, text]
        self.length = self._begins[-1] + len(text)
        if self.length > self._limits.characters:
            raise DocumentError(f"the text has more than {self._limits.characters:,} characters")

    def separate(self, separator: str) -> None:
        """Put a line break or an empty line before the next text, unless there is an empty line already."""
        if self._pending.count("\n") < separator.count("\n"):
            self._pending = separator

    def next_cell(self) -> None:
        """Put a separator of table cells before the next text."""
        self._pending = self._pending.rstrip(" ") + CELL_SEPARATOR

    def mark(self) -> int:
        """Return a mark for the place at which the next text begins."""
        return len(self._begins)

    def span(self, mark: int) -> Span:
        """Return the span of the text that was added after a mark; an empty span if there is none."""
        return (self._begins[mark] if mark < len(self._begins) else self.length, self.length)

    def element(
        self,
        kind: ElementKind,
        span: Span,
        *,
        level: int = 0,
        cells: tuple[Span, ...] = (),
        header: tuple[Span, ...] = (),
        target: str = "",
    ) -> None:
        """Add an element. An element without text is left out."""
        if span[0] < span[1]:
            if len(self._elements) >= self._limits.elements:
                raise DocumentError(f"it has more than {self._limits.elements:,} elements")
            target = safe_text(target.strip())[:MAX_TARGET]
            # an empty first cell has the place at which the text before the row ends
            inside = tuple((max(begin, span[0]), max(end, span[0])) for begin, end in cells)
            self._elements.append(Element(kind, *span, level, inside, header, target))

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def elements(self) -> list[Element]:
        """Return the elements so far."""
        return self._elements


class FigureList:
    """Collects the images of a document, as many as the limits allow; an image that occurs twice is kept once."""

    def __init__(self, limits: Limits) -> None:
        self.figures: list[Figure] = []
        self._limits = limits
        self._bytes = 0
        self._seen: set[bytes] = set()

    @property
    def is_full(self) -> bool:
        """Whether no more images can be added."""
        return len(self.figures) >= self._limits.figures

    def add(self, data: bytes, begin: int, *, page: int | None = None, caption: str = "") -> None:
        """Add an image, unless it is of an unknown type or exceeds a limit."""
        kind = media_type(data)
        digest = hashlib.sha256(data).digest()
        if not kind or self.is_full or digest in self._seen or len(data) > self._limits.figure_bytes:
            return
        if self._bytes + len(data) <= self._limits.all_figure_bytes:
            self._seen.add(digest)
            self._bytes += len(data)
            self.figures.append(Figure(data, kind, begin, page, safe_text(" ".join(caption.split()))))


_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type(data: bytes) -> str:
    """Return the media type of an image that language models accept, by its first bytes; "" for other data."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), "")


def sorted_elements(elements: list[Element], limits: Limits) -> tuple[Element, ...]:
    """Return elements in the order of the text, outer ones first.

    Raises:
        DocumentError: There are too many.
    """
    if len(elements) > limits.elements:
        raise DocumentError(f"it has more than {limits.elements:,} elements")
    return tuple(sorted(elements, key=lambda each: (each.begin, -each.end, each.kind)))
