"""Reads Markdown. The text is the source; the elements point to parts of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgqa.corpus.documents.document import Element, Span, safe_text
from kgqa.corpus.documents.formats.content import MAX_TARGET, Content, sorted_elements
from kgqa.corpus.documents.formats.lines import key_value_lines
from kgqa.corpus.documents.formats.plain_text import decode
from kgqa.corpus.documents.limits import Limits

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:[^\n]*\n){0,200}?(?:---|\.\.\.)[ \t]*(?:\r?\n|$)")
_FRONT_LINE = re.compile(r"^([A-Za-z][\w -]{0,59}?)[ \t]*:[ \t]+[\"']?([^\r\n]*?)[\"']?[ \t]*\r?$", re.MULTILINE)
_LINE_END = re.compile(r"\r\n?|\n")
_DEFINITION = re.compile(
    r"^[ \t]{0,3}(\S[^\r\n]{0,199})(?:\r?\n){1,2}[ \t]{0,3}:[ \t]+(\S[^\r\n]*?)[ \t]*\r?$", re.MULTILINE
)
_LINK_BEGIN = re.compile(r"(?:[\[<][*_`~\s]{0,8})$")
_LINK_END = re.compile(r"[*_`~]{0,3}\](?:\([^()\r\n]*(?:\([^()\r\n]*\)[^()\r\n]*)*\)|\[[^\]\r\n]*\])?|>")
_MARKS_BEFORE = re.compile(r"(?:[*_~]+|`+|\[)$")
_EMPHASIS = re.compile(r"[*_~]+|`+")
_MARKS_AFTER = re.compile(_EMPHASIS.pattern + "|" + _LINK_END.pattern)
_QUOTE_MARKS = re.compile(r"[\s>]*")
_PIPE = re.compile(r"\\.|\|")
_REACH = 4_000
"""How far from the last word the next word of a paragraph is looked for."""


def read_markdown(data: bytes, limits: Limits) -> Content:
    """Read a Markdown file (CommonMark with tables, definition lists and front matter).

    Raises:
        DocumentError: It is not text, or too long.
    """
    text = decode(data, limits)
    reader = _Reader(text)
    reader.read()
    return Content(text, reader.title, elements=sorted_elements(reader.elements, limits))


class _Reader:
    """Finds the elements of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.title = ""
        self.elements: list[Element] = []
        self._line_begins = [0, *(found.end() for found in _LINE_END.finditer(text))]
        self._code: list[Span] = []

    def read(self) -> None:
        from markdown_it import MarkdownIt

        source = self.text
        if front := _FRONT_MATTER.match(source):
            self._front_matter(front.end())
            # the parser must not take it for a heading; offsets stay the same
            source = re.sub(r"[^\r\n]", " ", source[: front.end()]) + source[front.end() :]
            self._code.append(front.span())
        # text_join hides how a special character is written in the source
        parser = MarkdownIt("commonmark").enable("table").disable("text_join")
        self._blocks(parser.parse(source))
        self._code.sort()
        for found in _DEFINITION.finditer(self.text):
            before = bisect_right(self._code, (found.start(), len(self.text)))
            if not before or self._code[before - 1][1] <= found.start():
                term = (found.start(1), found.start(1) + len(found[1].rstrip()))
                self.elements.append(Element("definition", term[0], found.end(2), cells=(term, found.span(2))))
        self.elements += key_value_lines(self.text, skip=self._code)
        if not self.title:
            heading = next((each for each in self.elements if each.kind == "heading"), None)
            self.title = self.text[slice(*heading.cells[0])] if heading and heading.cells else ""

    def _front_matter(self, end: int) -> None:
        for found in _FRONT_LINE.finditer(self.text, 0, end):
            if found[2]:
                cells = (found.span(1), found.span(2))
                self.elements.append(Element("key_value", found.start(), found.end(2), cells=cells))
                if found[1].lower() == "title":
                    self.title = found[2]

    def _lines(self, token: Token) -> Span:
        """Return the span of a block, without white space at its ends."""
        first, last = token.map or (0, 0)
        begin = self._line_begins[min(first, len(self._line_begins) - 1)]
        end = self._line_begins[last] if last < len(self._line_begins) else len(self.text)
        return self._strip(begin, end)

    def _strip(self, begin: int, end: int) -> Span:
        while begin < end and self.text[begin].isspace():
            begin += 1
        while end > begin and self.text[end - 1].isspace():
            end -= 1
        return begin, end

    def _blocks(self, tokens: Sequence[Token]) -> None:
        lists = 0
        block: Token | None = None
        header: list[Span] = []
        cells: list[Span] = []
        row, column, in_cell = (0, 0), 0, False
        for token in tokens:
            kind = token.type
            if kind in ("bullet_list_open", "ordered_list_open"):
                lists += 1
            elif kind in ("bullet_list_close", "ordered_list_close"):
                lists -= 1
            elif kind in ("fence", "code_block", "html_block"):
                self._code.append(self._lines(token))
            elif kind in ("heading_open", "list_item_open"):
                block = token
            elif kind == "table_open":
                header = []
            elif kind == "tr_open":
                row, cells, column = self._lines(token), self._row(token, len(header)), -1
            elif kind == "tr_close":
                if header:
                    self.elements.append(Element("table_row", *row, cells=tuple(cells), header=tuple(header)))
                else:
                    header = cells
            elif kind in ("th_open", "td_open"):
                column, in_cell = column + 1, column + 1 < len(cells)
            elif kind in ("th_close", "td_close"):
                in_cell = False
            elif kind == "inline" and in_cell:
                span = self._inline(token.children or (), *cells[column])
                cells[column] = span if span[0] < span[1] else cells[column]
            elif kind == "inline":
                span = self._inline(token.children or (), *self._lines(token))
                if block is not None and span[0] < span[1]:
                    self._block(block, lists, span)
                block = None

    def _block(self, token: Token, lists: int, span: Span) -> None:
        """Add a heading or a list item whose first words are at a span."""
        begin, end = self._lines(token)
        if token.type == "heading_open":
            self.elements.append(Element("heading", begin, end, int(token.tag[1]), (span,)))
        else:
            self.elements.append(Element("list_item", begin, max(span[1], begin), lists, (span,)))

    def _row(self, token: Token, count: int) -> list[Span]:
        """Return the spans of the cells of a table row; `count` of them, unless it is 0."""
        begin, end = self._lines(token)
        marks = _QUOTE_MARKS.match(self.text, begin, end)
        begin = marks.end() if marks else begin
        begin += self.text.startswith("|", begin)
        cells = []
        for found in _PIPE.finditer(self.text, begin, end):
            if found[0] == "|":
                cells.append(self._strip(begin, found.start()))
                begin = found.end()
        if begin < end:
            cells.append(self._strip(begin, end))
        if not count:
            return cells
        return [*cells[:count], *[(end, end)] * (count - len(cells))]

    def _inline(self, children: Sequence[Token], begin: int, end: int) -> Span:
        """Find the words of a paragraph in the source, and its links; return the span of the words."""
        at, first, last = begin, -1, -1
        links: list[tuple[str, int]] = []
        """The target of each open link, and where its text begins; -1 before its first word."""
        for child in children:
            if child.type == "link_open":
                links.append((str(child.attrs.get("href", "")), -1))
            elif child.type == "link_close" and links:
                target, start = links.pop()
                if start >= 0:
                    at = self._link(target, start, last, begin, end)
            elif child.type == "image":
                alt = self._find(child.content.split("\n")[0], at, end)
                after = _LINK_END.match(self.text, alt[1], end) if alt else None
                at = after.end() if after else at
            elif words := child.markup if child.type == "text_special" else child.content.strip():
                found = self._find(words, at, end)
                if found:
                    at = found[1]
                if found and child.type != "html_inline":
                    first, last = found[0] if first < 0 else first, found[1]
                    links = [(target, found[0] if start < 0 else start) for target, start in links]
        return self._with_marks(first, last, begin, end) if first >= 0 else (begin, begin)

    def _with_marks(self, first: int, last: int, begin: int, end: int) -> Span:
        """Extend a span by the marks before and after it, if the marks that belong to them are inside."""
        words = self.text[first:last]
        before = _MARKS_BEFORE.search(self.text, max(begin, first - 12), first)
        if before and (before[0] in words or (before[0].endswith("[") and "]" in words)):
            first = before.start()
        after = _MARKS_AFTER.match(self.text, last, end)
        if after and (after[0] in words or (after[0].startswith("]") and "[" in words)):
            last = after.end()
        return first, last

    def _find(self, words: str, begin: int, end: int) -> Span | None:
        found = self.text.find(words, begin, min(end, begin + len(words) + _REACH))
        return (found, found + len(words)) if found >= 0 else None

    def _link(self, target: str, start: int, stop: int, begin: int, end: int) -> int:
        """Add the link with its text at `start` to `stop`; return where its marks end."""
        before = _LINK_BEGIN.search(self.text, max(begin, start - 12), start)
        after = _LINK_END.match(self.text, stop, end)
        outer = (before.start() if before else start, after.end() if after else stop)
        marks = _EMPHASIS.match(self.text, stop, end)
        cell = (start, marks.end() if marks and marks[0] in self.text[start:stop] else stop)
        self.elements.append(Element("link", *outer, cells=(cell,), target=safe_text(target)[:MAX_TARGET]))
        return outer[1]
