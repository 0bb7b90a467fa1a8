"""SPARQL 1.1 Query Results JSON, decoded to typed terms: at once where it is small, row by row where it is large."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kgqa.errors import DamagedResult, PartialResult, StoreUnavailable
from kgqa.graph.endpoint.replies.canonical_values import usual_form
from kgqa.graph.endpoint.replies.streaming_json import CUT, JsonText
from kgqa.graph.store import Row, Rows
from kgqa.model import RDF_LANG_STRING, XSD_STRING, Entity, Literal, Value
from kgqa.words import clean

AT_ONCE_BYTES = 1 << 20


class TermReader:
    """Makes terms of JSON objects. An entity that comes twice is one object.

    Virtuoso's names of blank nodes (`nodeID://b1`) may stand in a query, so they are the entity's IRI.
    """

    def __init__(self) -> None:
        self._seen: dict[str, Entity] = {}

    def __call__(self, term: dict[str, str]) -> Value:
        kind, value = term["type"], term["value"]
        if not value.isascii():
            value.encode("utf-8")  # half a character, as JSON can escape it, is no text
        if kind == "uri":
            entity = self._seen.get(value)
            if entity is None:
                entity = self._seen[value] = Entity(value)
            return entity
        if kind == "bnode":
            return Entity(value if value.startswith("nodeID://") else "_:" + value.removeprefix("_:"))
        if kind not in ("literal", "typed-literal"):
            raise ValueError(f"a term of the unknown kind {kind[:40]!r}")
        language = term.get("xml:lang", "").lower()  # tags that differ in case are the same tag
        datatype = term.get("datatype") or XSD_STRING
        if not isinstance(datatype, str):
            raise ValueError("a datatype is no text")
        if language or datatype in (XSD_STRING, RDF_LANG_STRING):
            return Literal(value, XSD_STRING, language)
        return Literal(usual_form(value, datatype), datatype)


class RowReader:
    """Makes rows of JSON objects, in the order of the variables in the head."""

    def __init__(self, head: dict[str, Any], read: TermReader) -> None:
        names = head["vars"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its variables are no list of names")
        self.variables = tuple(names)
        self._names = frozenset(names)
        self._read = read

    def __call__(self, binding: dict[str, Any]) -> Row:
        read = self._read
        if not self._names.issuperset(binding.keys()):
            raise ValueError("a row has a variable that the head does not name")
        return tuple([read(binding[name]) if name in binding else None for name in self.variables])


def decode_rows(parts: Iterable[bytes], *, max_rows: int) -> Rows:
    """Decode the table of a SELECT as its bytes come in.

    Raises:
        DamagedResult: it breaks off. PartialResult: it has more than `max_rows` rows.
        StoreUnavailable: it is no such table.
    """
    read = TermReader()
    parts = iter(parts)
    data = bytearray()
    for part in parts:
        data += part
        if len(data) > AT_ONCE_BYTES:
            return _row_by_row(JsonText(bytes(data), parts), max_rows, read)
    table = _whole(bytes(data))
    try:
        row = RowReader(table["head"], read)
        bindings = table["results"]["bindings"]
        if not isinstance(bindings, list):
            raise ValueError("its bindings are no list")
        _within(len(bindings), max_rows)
        return Rows(row.variables, [row(binding) for binding in bindings])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _no_table(error) from error


def decode_boolean(data: bytes) -> bool:
    """Decode the answer of an ASK. Raises as `decode_rows` does."""
    try:
        value = _whole(data)["boolean"]
    except (KeyError, TypeError) as error:
        raise _no_table(error) from error
    if not isinstance(value, bool):
        raise _no_table(ValueError("its answer is neither true nor false"))
    return value


def _whole(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except RecursionError as error:
        raise _no_table(ValueError("it is nested too deeply")) from error
    except ValueError as error:
        if data.lstrip()[:1] not in (b"{", b"["):
            what = "something that is no SPARQL result" if data.strip() else "nothing"
            raise StoreUnavailable(
                f"The server answered with {what}: is this the address of its SPARQL endpoint?"
            ) from error
        raise DamagedResult(CUT.format(str(error)[:100])) from error


def _within(rows: int, most: int) -> None:
    if rows > most:
        raise PartialResult(f"The result has more than {most:,} rows. Ask for less, or use LIMIT.")


def _row_by_row(text: JsonText, max_rows: int, read: TermReader) -> Rows:
    """As `decode_rows` does it at once, but text and terms are never both whole."""
    row: RowReader | None = None
    rows: list[Row] | None = None
    waiting: list[dict[str, Any]] = []  # the head may come last
    try:
        for name in text.members():
            if name == "head":
                row = RowReader(text.value(), read)
            elif name == "results":
                for inner in text.members():
                    if inner != "bindings":
                        text.value()
                        continue
                    rows, waiting = [], []
                    for binding in text.items():
                        if row is None:
                            waiting.append(binding)
                        else:
                            rows.append(row(binding))
                        _within(len(rows) + len(waiting), max_rows)
            else:
                text.value()
        text.end()
        if row is None or rows is None:
            raise ValueError("it has no head, or no bindings")
        return Rows(row.variables, rows or [row(binding) for binding in waiting])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _no_table(error) from error


def _no_table(error: Exception) -> StoreUnavailable:
    said = clean(str(error))[:100]
    return StoreUnavailable(
        f"The server answered with JSON that is no SPARQL result ({said}). See whether this is its SPARQL address."
    )
