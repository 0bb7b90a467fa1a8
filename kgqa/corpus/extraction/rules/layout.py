"""Facts that the layout of a document states: headings, links, table rows, key-value lines, definitions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

from kgqa.corpus.documents.document import Document, Element, Span
from kgqa.corpus.extraction.rules.facts import MAX_TEXT_CHARS, RuleFact, is_name, value_of
from kgqa.corpus.extraction.rules.values import read_value
from kgqa.corpus.extraction.sentences import trimmed
from kgqa.corpus.items import EntityItem, Party, StatementItem, normal_name
from kgqa.model.terms import Literal
from kgqa.text.words import clean

# the text of links that name nothing
_NO_TARGET_NAMES = frozenset(
    {"here", "click here", "link", "this", "more", "read more", "edit", "source", "details", "permalink", "¶", "#", "^"}
    | {"hier", "mehr", "ici", "aquí", "тут", "здесь", "这里", "こちら"}
)
# the second column of a table whose first column holds keys
_VALUE_HEADERS = {"value", "values", "wert", "werte", "valor", "valores", "valeur", "valeurs", "значение", "值", "値"}


class Layout:
    """The layout of one document.

    Args:
        document: The document.
        topic: What the document is about; the subject of facts that name no other.
    """

    def __init__(self, document: Document, topic: Party) -> None:
        self._document = document
        self._topic = topic

    def facts(self, begin: int, end: int) -> Iterator[RuleFact]:
        """Yield the facts of the elements that lie within a part of the text."""
        elements = self._document.elements
        for element in elements[bisect_left(self._begins, begin) : bisect_left(self._begins, end)]:
            if element.begin < element.end <= end:
                yield from self._facts_of(element)

    def _facts_of(self, element: Element) -> Iterator[RuleFact]:
        kind, cells = element.kind, element.cells
        if kind == "heading" and cells:
            yield from self._heading(element)
        elif kind == "link" and cells:
            yield from self._link(element)
        elif kind == "table_row":
            yield from self._row(element)
        elif kind == "key_value" and len(cells) == 2:
            yield from self._pair("key-value", element, self._subject(element), *cells)
        elif kind == "definition" and len(cells) == 2:
            yield from self._definition(element)

    def _text(self, span: Span) -> str:
        return clean(self._document.text[span[0] : span[1]])

    def _heading(self, element: Element) -> Iterator[RuleFact]:
        text = self._text(element.cells[0])
        if not text or len(text) > MAX_TEXT_CHARS:
            return
        if normal_name(text) == normal_name(self._topic.name):
            yield RuleFact("heading", EntityItem(self._topic), element.begin, element.end, 0.9)
        elif element.level > 1:
            statement = StatementItem(self._topic, "has section", Literal(text))
            yield RuleFact("heading", statement, element.begin, element.end, 0.9)

    def _link(self, element: Element) -> Iterator[RuleFact]:
        text, target = self._text(element.cells[0]), clean(element.target)
        address = read_value(target)
        if target.startswith("#") or (":" in target.partition("/")[0] and address is None):
            return  # a place in the same document, or an address that is not one of the web
        where = (element.begin, element.end)
        if normal_name(text) in _NO_TARGET_NAMES or not is_name(text):
            if address is not None:
                yield RuleFact("link", StatementItem(self._topic, "links to", address), *where, 0.9)
            return
        party = Party(text)
        if normal_name(text) != normal_name(self._topic.name):
            yield RuleFact("link", EntityItem(party), *where, 0.9)
            yield RuleFact("link", StatementItem(self._topic, "links to", party), *where, 0.9)
        if address is not None:
            yield RuleFact("link", StatementItem(party, "web address", address), *where, 0.8)

    def _row(self, element: Element) -> Iterator[RuleFact]:
        cells, header = element.cells, element.header
        if len(cells) < 2 or (header and len(header) != len(cells)):
            return
        key = self._key_columns.get(header)
        is_pairs = len(cells) == 2 and (not header or normal_name(self._text(header[1])) in _VALUE_HEADERS)
        if is_pairs and key == 0:
            yield from self._pair("table", element, self._subject(element), *cells)
        elif header and key is not None and (name := self._text(cells[key])):
            if not is_name(name):
                return
            row = Party(name)
            yield RuleFact("table", EntityItem(row), *cells[key], 0.9)
            for column, cell in enumerate(cells):
                if column != key:
                    yield from self._pair("table", element, row, header[column], cell)

    def _pair(self, rule: str, element: Element, subject: Party, key: Span, value: Span) -> Iterator[RuleFact]:
        relation = self._text(key).rstrip(":： ")
        if not relation or len(relation) > MAX_TEXT_CHARS // 10:
            return
        for begin, end in self._parts(value):
            found = value_of(self._text((begin, end)), about=relation)
            if found is None:
                continue
            if isinstance(found, Party) and found != subject:
                yield RuleFact(rule, EntityItem(found), begin, end, 0.8)
            yield RuleFact(rule, StatementItem(subject, relation, found), element.begin, element.end, 0.9)

    def _parts(self, value: Span) -> list[Span]:
        """Return the spans of the names in a list such as `A; B`, or the whole value."""
        begin, end = value
        parts: list[Span] = []
        for part in self._document.text[begin:end].split(";"):
            parts.append((begin, begin + len(part)))
            begin += len(part) + 1
        names = [trimmed(self._document.text, *part) for part in parts]
        return names if len(names) > 1 and all(is_name(self._text(name)) for name in names) else [value]

    def _definition(self, element: Element) -> Iterator[RuleFact]:
        term, meaning = (self._text(cell) for cell in element.cells)
        if term and meaning and len(term) <= MAX_TEXT_CHARS // 10:
            short = meaning[:MAX_TEXT_CHARS]
            yield RuleFact("definition", EntityItem(Party(term), short), *element.cells[0], 0.9)
            statement = StatementItem(Party(term), "definition", Literal(short))
            yield RuleFact("definition", statement, element.begin, element.end, 0.9)

    def _subject(self, element: Element) -> Party:
        """Return what a key-value line is about: its section, if sections have the same keys; otherwise the topic."""
        section = self._section(element)
        if section and normal_name(self._text(element.cells[0])) in self._repeated_keys:
            return Party(section) if normal_name(section) != normal_name(self._topic.name) else self._topic
        return self._topic

    def _section(self, element: Element) -> str:
        before = bisect_right(self._headings, (element.begin, "\U0010ffff")) - 1
        return self._headings[before][1] if before >= 0 else ""

    @cached_property
    def _begins(self) -> list[int]:
        return [element.begin for element in self._document.elements]

    @cached_property
    def _headings(self) -> list[tuple[int, str]]:
        elements = self._document.elements
        return [(each.begin, self._text(each.cells[0])) for each in elements if each.kind == "heading" and each.cells]

    @cached_property
    def _repeated_keys(self) -> set[str]:
        """The keys that stand in several sections."""
        sections: dict[str, set[str]] = {}
        for each in self._document.elements:
            if len(each.cells) == 2 and (each.kind == "key_value" or (each.kind == "table_row" and not each.header)):
                sections.setdefault(normal_name(self._text(each.cells[0])), set()).add(self._section(each))
        return {key for key, found in sections.items() if len(found) > 1}

    @cached_property
    def _key_columns(self) -> dict[tuple[Span, ...], int | None]:
        """The column of each table that names its rows: the first one with different names and no values."""
        rows: dict[tuple[Span, ...], list[Element]] = {}
        for each in self._document.elements:
            if each.kind == "table_row":
                rows.setdefault(each.header, []).append(each)
        return {header: self._key_column(found, header) for header, found in rows.items()}

    def _key_column(self, rows: list[Element], header: tuple[Span, ...]) -> int | None:
        width = len(header) or 2
        rows = [row for row in rows if len(row.cells) == width]
        for column in range(width):
            names = [text for row in rows if (text := self._text(row.cells[column]))]
            distinct = {normal_name(name) for name in names}
            if names and len(distinct) == len(names) and not any(map(read_value, names)):
                return column
        return None
