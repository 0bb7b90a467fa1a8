"""Reads DOCX files: paragraphs, headings, lists, tables, links and images, in the order of the text."""

from __future__ import annotations

import io
import re
from typing import Any

from kgqa.corpus.documents.document import Span, safe_text
from kgqa.corpus.documents.formats.archives import check_archive
from kgqa.corpus.documents.formats.content import Content, FigureList, TextBuilder, sorted_elements
from kgqa.corpus.documents.formats.lines import key_value_lines
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_HEADING = re.compile(r"heading ?([1-9])$|(title)$", re.IGNORECASE)
# what is deleted, a second version of the same content, or not text
_LEFT_OUT = frozenset(
    [
        f"{_W}{name}"
        for name in ("del", "moveFrom", "delText", "instrText", "pPr", "sectPr", "tblPr", "tblGrid", "trPr", "tcPr")
    ]
    + [f"{_MC}Fallback"]
)
_MAX_COLUMNS = 1_000
_MAX_STYLES = 10


def read_docx(data: bytes, limits: Limits) -> Content:
    """Read a DOCX file. Text that is hidden or marked as deleted is left out.

    Raises:
        DocumentError: It is damaged, protected by a password, or larger than the limits.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentError("it is protected by a password, or in the old DOC format")
    check_archive(data, limits)
    import docx
    from docx.opc.exceptions import OpcError
    from lxml import etree

    try:
        document = docx.Document(io.BytesIO(data))
        return _Reader(document, limits).read()
    except (OpcError, etree.LxmlError, KeyError, ValueError, AttributeError, IndexError, TypeError) as error:
        raise DocumentError(f"it is not a valid DOCX file: {str(error)[:100]}") from error


class _Reader:
    """Walks through the XML of one document."""

    def __init__(self, document: Any, limits: Limits) -> None:
        self._document = document
        self._limits = limits
        self._builder = TextBuilder(limits)
        self._figures = FigureList(limits)
        self._styles: dict[str, tuple[int, int]] = {"": (0, 0)}
        self._style_elements = {each.get(f"{_W}styleId"): each for each in document.styles.element.iter(f"{_W}style")}
        self._in_cell = False

    def read(self) -> Content:
        """Return the content of the document."""
        self._blocks(self._document.element.body)
        text = self._builder.text
        elements = self._builder.elements()
        title = (self._document.core_properties.title or "").strip()
        if not title:
            heading = next((each for each in elements if each.kind == "heading"), None)
            title = text[heading.begin : heading.end] if heading else ""
        rows = [(each.begin, each.end) for each in elements if each.kind == "table_row"]
        elements += key_value_lines(text, skip=rows, paragraphs=True)
        return Content(
            text, safe_text(title), (), sorted_elements(elements, self._limits), tuple(self._figures.figures)
        )

    def _blocks(self, parent: Any) -> None:
        """Add the paragraphs and tables in an element, also those in content controls."""
        for child in parent:
            if child.tag == f"{_W}p":
                self._paragraph(child)
            elif child.tag == f"{_W}tbl":
                self._table(child)
            elif isinstance(child.tag, str) and child.tag not in _LEFT_OUT:
                self._blocks(child)

    def _paragraph(self, paragraph: Any) -> None:
        builder = self._builder
        heading, item = self._layout(paragraph)
        is_item = item > 0 and not heading
        builder.separate("\n" if is_item else "\n\n")
        mark = builder.mark()
        self._inline(paragraph)
        span = builder.span(mark)
        if heading:
            builder.element("heading", span, level=heading, cells=(span,))
        elif is_item:
            builder.element("list_item", span, level=item, cells=(span,))
        builder.separate("\n" if is_item else "\n\n")

    def _layout(self, paragraph: Any) -> tuple[int, int]:
        """Return the level of a heading and the level of a list item; 0 for a paragraph that is none."""
        properties = paragraph.find(f"{_W}pPr")
        if properties is None:
            return 0, 0
        style = _value(properties.find(f"{_W}pStyle"))
        if style not in self._styles:
            self._styles[style] = self._style_layout(style) if style else (0, 0)
        heading, item = self._styles[style]
        indent = properties.find(f"{_W}numPr/{_W}ilvl")
        if properties.find(f"{_W}numPr") is not None:
            item = 1 + _number(indent)
        return _outline_level(properties) or heading, item

    def _style_layout(self, name: str) -> tuple[int, int]:
        """Return what `_layout` does for the paragraphs of a style, which may be based on other styles."""
        item = 0
        for _ in range(_MAX_STYLES):
            style = self._style_elements.get(name)
            if style is None:
                break
            properties = style.find(f"{_W}pPr")
            if properties is not None and (level := _outline_level(properties)):
                return level, 0
            if found := _HEADING.match(_value(style.find(f"{_W}name"))):
                return int(found[1] or 1), 0
            item = item or int(properties is not None and properties.find(f"{_W}numPr") is not None)
            name = _value(style.find(f"{_W}basedOn"))
        return 0, item

    def _inline(self, parent: Any) -> None:
        """Add the text, links and images in a paragraph."""
        builder = self._builder
        for child in parent:
            tag = child.tag
            if not isinstance(tag, str) or tag in _LEFT_OUT:
                continue
            if tag == f"{_W}t":
                builder.add(child.text or "")
            elif tag in (f"{_W}tab", f"{_W}ptab"):
                builder.add(" ")
            elif tag in (f"{_W}br", f"{_W}cr"):
                builder.add(" ") if self._in_cell else builder.separate("\n")
            elif tag == f"{_W}noBreakHyphen":
                builder.add("-")
            elif tag == f"{_W}hyperlink":
                mark = builder.mark()
                self._inline(child)
                span = builder.span(mark)
                if target := self._target(child):
                    builder.element("link", span, cells=(span,), target=target)
            elif tag == f"{_W}txbxContent":
                self._blocks(child)
            elif tag == f"{_A}blip":
                self._image(child)
            elif tag == f"{_WP}docPr":
                continue
            elif not (tag == f"{_W}r" and _is_on(child.find(f"{_W}rPr/{_W}vanish"))):
                self._inline(child)

    def _target(self, link: Any) -> str:
        relation = self._document.part.rels.get(link.get(f"{_R}id", ""))
        anchor = link.get(f"{_W}anchor", "")
        address = str(relation.target_ref) if relation is not None and relation.is_external else ""
        return f"{address}#{anchor}" if anchor else address

    def _image(self, blip: Any) -> None:
        """Add an image that the file contains."""
        relation = self._document.part.rels.get(blip.get(f"{_R}embed", ""))
        if relation is not None and not relation.is_external:
            drawing = next(blip.iterancestors(f"{_WP}inline", f"{_WP}anchor"), None)
            about = drawing.find(f"{_WP}docPr") if drawing is not None else None
            caption = about.get("descr", "") if about is not None else ""
            self._figures.add(relation.target_part.blob, self._builder.length, caption=caption)

    def _table(self, table: Any) -> None:
        """Add a table: each row is a line, and its cells are separated by `|`."""
        if next(table.iterdescendants(f"{_W}tbl"), None) is not None:
            for cell in table.iter(f"{_W}tc"):  # a table for the layout
                if next(cell.iterancestors(f"{_W}tbl")) is table:
                    self._blocks(cell)
            return
        header: tuple[Span, ...] = ()
        self._builder.separate("\n\n")
        for number, row in enumerate(table.iter(f"{_W}tr")):
            self._builder.separate("\n")
            mark = self._builder.mark()
            cells = self._row(row)
            if number == 0 and _has_header(table, row, len(cells)):
                header = cells
            else:
                self._builder.element("table_row", self._builder.span(mark), cells=cells, header=header)
        self._builder.separate("\n\n")

    def _row(self, row: Any) -> tuple[Span, ...]:
        """Add a row; return the spans of its cells, one for each column."""
        cells: list[Span] = []
        for number, cell in enumerate(row.iter(f"{_W}tc")):
            if number:
                self._builder.next_cell()
            mark = self._builder.mark()
            for paragraph in cell.iter(f"{_W}p"):
                self._builder.add(" ")
                self._in_cell = True
                self._inline(paragraph)
                self._in_cell = False
            columns = max(1, _number(cell.find(f"{_W}tcPr/{_W}gridSpan")))
            cells += [self._builder.span(mark)] * min(columns, _MAX_COLUMNS - len(cells))
        return tuple(cells)


def _value(element: Any) -> str:
    return str(element.get(f"{_W}val", "")) if element is not None else ""


def _number(element: Any) -> int:
    value = _value(element)
    return int(value) if value.isdecimal() and len(value) < 5 else 0


def _outline_level(properties: Any) -> int:
    level = properties.find(f"{_W}outlineLvl")
    return 1 + _number(level) if level is not None and _number(level) < 9 else 0


def _has_header(table: Any, row: Any, columns: int) -> bool:
    """Return whether the first row of a table is its header: marked as such, in bold, or in at least three columns."""
    if columns < 2 or columns > 2:
        return columns > 2
    if _is_on(row.find(f"{_W}trPr/{_W}tblHeader")):
        return True
    runs = [run for run in row.iter(f"{_W}r") if run.find(f"{_W}t") is not None]
    if runs and all(_is_on(run.find(f"{_W}rPr/{_W}b")) for run in runs):
        return True
    style, look = table.find(f"{_W}tblPr/{_W}tblStyle"), table.find(f"{_W}tblPr/{_W}tblLook")
    plain = style is None or style.get(f"{_W}val", "") in ("TableGrid", "TableNormal")
    return not plain and look is not None and look.get(f"{_W}firstRow") in ("1", "true")


def _is_on(switch: Any) -> bool:
    """Return whether an optional property of Word is switched on."""
    return switch is not None and switch.get(f"{_W}val", "true") not in ("0", "false", "off")
