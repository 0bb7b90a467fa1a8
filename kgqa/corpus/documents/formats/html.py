"""Reads HTML: its visible text, and headings, links, tables, lists and definitions."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from kgqa.corpus.documents.document import Span, safe_text
from kgqa.corpus.documents.formats.content import Content, FigureList, TextBuilder, sorted_elements
from kgqa.corpus.documents.formats.lines import key_value_lines
from kgqa.corpus.documents.formats.plain_text import decode
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError

_TAGS = {
    "block": "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption"
    " figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol optgroup option p pre search"
    " section summary table tbody td tfoot th thead tr ul",
    "paragraph": "blockquote dl figure h1 h2 h3 h4 h5 h6 ol p pre table ul",
    "layout": "blockquote dl figure form h1 h2 h3 h4 h5 h6 ol pre table ul",
    "hidden": "applet audio canvas datalist embed head iframe input math noscript object param script select style svg"
    " template textarea title track video",
}
_BLOCKS, _PARAGRAPHS, _LAYOUT, _HIDDEN = (frozenset(_TAGS[kind].split()) for kind in _TAGS)
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_NOT_DOCUMENTS = re.compile(r"\s*(?:javascript|data|vbscript|blob)\s*:", re.IGNORECASE)
_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})|<\?xml[^>]{0,200}?encoding=[\"']([\w.:-]{1,40})",
    re.IGNORECASE,
)
_DATA_IMAGE = re.compile(r"data:image/[\w.+-]{1,40}(;base64)?,", re.IGNORECASE)
_MAX_COLUMNS = 1_000


def read_html(data: bytes, limits: Limits) -> Content:
    """Read an HTML file without scripts, styles and hidden parts. Nothing that it refers to is fetched.

    Raises:
        DocumentError: It is not text, too long, or nested more deeply than the parser allows (256 levels).
    """
    from lxml import etree

    declared = _CHARSET.search(data[:2048])
    text = decode(data, limits, declared=(declared[1] or declared[2]).decode("ascii") if declared else "")
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=False, recover=True
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.LxmlError as error:
        if getattr(error, "code", 0) == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from error
        raise DocumentError("it is not HTML") from error
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise DocumentError("it is nested too deeply, or one of its texts is too long")
    if root is None:
        return Content("")
    return _Reader(limits).read(root)


class _Reader:
    """Walks through the elements of a page and builds its text."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._builder = TextBuilder(limits)
        self._figures = FigureList(limits)
        self._preformatted = 0
        self._cells = 0
        """Greater than 0 in a cell of a table, whose text is one line."""
        self._list_level = 0
        self._items: list[int] = []
        """Marks of the open list items whose first line has not ended."""
        self._term: Span | None = None
        self._definition: int | None = None
        """Mark of the open definition of the term."""

    def read(self, root: Any) -> Content:
        """Return the content of a page."""
        head = root.find("head")
        title = "" if head is None else " ".join("".join(head.itertext("title")).split())
        self._node(root)
        elements = self._builder.elements()
        text = self._builder.text
        if not title:
            heading = next((each for each in elements if each.kind == "heading"), None)
            title = text[heading.begin : heading.end] if heading else ""
        tables = [(each.begin, each.end) for each in elements if each.kind in ("table_row", "definition")]
        elements += key_value_lines(text, skip=tables, paragraphs=True)
        return Content(
            text, safe_text(title), (), sorted_elements(elements, self._limits), tuple(self._figures.figures)
        )

    def _node(self, node: Any) -> None:
        """Add the text of an element, without the text after it."""
        tag = node.tag
        if not isinstance(tag, str) or tag in _HIDDEN or _is_hidden(node):
            return
        block = tag in _BLOCKS
        nested = self._list_level and tag in ("ul", "ol")
        separator = "\n\n" if tag in _PARAGRAPHS and not nested else "\n"
        if block:
            self._separate(separator)
        if tag == "br":
            self._separate("\n")
        elif tag == "img":
            self._image(node)
        elif tag == "table" and next(node.iterdescendants(*_LAYOUT), None) is None:
            self._table(node)
        else:
            self._marked(tag, node)
        if block:
            self._separate(separator)

    def _separate(self, separator: str) -> None:
        if self._cells:
            self._builder.add(" ")
        else:
            self._builder.separate(separator)

    def _children(self, node: Any) -> None:
        self._builder.add(node.text or "", preformatted=bool(self._preformatted))
        for child in node:
            self._node(child)
            self._builder.add(child.tail or "", preformatted=bool(self._preformatted))

    def _marked(self, tag: str, node: Any) -> None:
        """Add the text of an element, and the element of the document that it stands for."""
        builder = self._builder
        mark = builder.mark()
        if tag in ("ul", "ol", "menu"):
            self._end_item()
            self._list_level += 1
            self._children(node)
            self._list_level -= 1
        elif tag == "li":
            self._items.append(mark)
            open_items = len(self._items)
            self._children(node)
            if len(self._items) == open_items:
                self._end_item()
        elif tag == "pre" and not self._cells:
            self._preformatted += 1
            self._children(node)
            self._preformatted -= 1
        elif tag in ("dt", "dd"):
            self._end_definition()  # a parser may put an element into the one before it that has no end tag
            self._definition = mark if tag == "dd" and self._term else None
            self._children(node)
            if tag == "dd":
                self._end_definition()
        else:
            self._children(node)
        span = builder.span(mark)
        if tag == "a":
            target = node.get("href", "")
            if target and not _NOT_DOCUMENTS.match(target):
                builder.element("link", span, cells=(span,), target=target)
        elif tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            builder.element("heading", span, level=int(tag[1]), cells=(span,))
        elif tag == "dt":
            self._term = span if span[0] < span[1] else None
        elif tag == "dl":
            self._term = None

    def _end_item(self) -> None:
        if self._items:
            span = self._builder.span(self._items.pop())
            self._builder.element("list_item", span, level=max(1, self._list_level), cells=(span,))

    def _end_definition(self) -> None:
        if self._term and self._definition is not None:
            span = self._builder.span(self._definition)
            if span[0] < span[1]:
                self._builder.element("definition", (self._term[0], span[1]), cells=(self._term, span))
        self._definition = None

    def _image(self, node: Any) -> None:
        begin = self._builder.mark()
        alternative = node.get("alt", "")
        self._builder.add(alternative)
        source = node.get("src", "")
        prefix = _DATA_IMAGE.match(source, 0, 60)
        if prefix and len(source) < 3 * self._limits.figure_bytes and not self._figures.is_full:
            encoded = source[prefix.end() :]
            try:
                data = base64.b64decode(encoded) if prefix[1] else unquote_to_bytes(encoded)
            except (binascii.Error, ValueError):
                return
            self._figures.add(data, self._builder.span(begin)[0], caption=alternative)

    def _table(self, table: Any) -> None:
        """Add a table: each row is a line, and its cells are separated by `|`."""
        caption = table.find("caption")
        if caption is not None:
            self._node(caption)
        header: tuple[Span, ...] = ()
        for number, row in enumerate(table.iter("tr")):
            parent = row.getparent()
            if _is_hidden(row) or _is_hidden(parent):
                continue
            self._builder.separate("\n")
            mark = self._builder.mark()
            cells, all_headings = self._row(row)
            if cells and (parent.tag == "thead" or (all_headings and (number == 0 or not header))):
                header = cells
            else:
                self._builder.element("table_row", self._builder.span(mark), cells=cells, header=header)
        self._builder.separate("\n\n")

    def _row(self, row: Any) -> tuple[tuple[Span, ...], bool]:
        """Add a row; return the spans of its cells, one for each column, and whether all cells are headings."""
        cells: list[Span] = []
        all_headings = True
        self._cells += 1
        for cell in row:
            if cell.tag not in ("td", "th") or _is_hidden(cell):
                continue
            if cells:
                self._builder.next_cell()
            mark = self._builder.mark()
            self._children(cell)
            columns = min(_columns(cell), _MAX_COLUMNS - len(cells))
            cells += [self._builder.span(mark)] * columns
            all_headings = all_headings and cell.tag == "th"
        self._cells -= 1
        return tuple(cells), all_headings


def _columns(cell: Any) -> int:
    span = cell.get("colspan", "1").strip()
    return max(1, int(span)) if span.isdecimal() and len(span) < 5 else 1


def _is_hidden(node: Any) -> bool:
    attributes = node.attrib
    return bool(attributes) and (
        "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or _HIDDEN_STYLE.search(attributes.get("style", "")) is not None
    )
