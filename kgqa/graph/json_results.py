"""SPARQL 1.1 Query Results JSON, decoded to typed terms: at once where it is small, row by row where it is large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kgqa.errors import PartialResult, StoreUnavailable
from kgqa.graph.store import Row, Rows
from kgqa.model import RDF_LANG_STRING, XSD_STRING, Entity, Literal, Value

AT_ONCE_BYTES = 1 << 20
_SCAN = json.JSONDecoder().raw_decode
CUT = "The server's answer breaks off in the middle: {}. Nothing of it is used. Try again, or ask for less."


class TermReader:
    """Makes terms of JSON objects. An entity that comes twice is one object.

    Args:
        named_blanks: whether the server's names of blank nodes (`nodeID://b1`) may stand in a query.
    """

    def __init__(self, *, named_blanks: bool = False) -> None:
        self._named_blanks = named_blanks
        self._seen: dict[str, Entity] = {}

    def __call__(self, term: dict[str, str]) -> Value:
        kind, value = term["type"], term["value"]
        if kind == "uri":
            entity = self._seen.get(value)
            if entity is None:
                entity = self._seen[value] = Entity(value)
            return entity
        if kind == "bnode":
            return Entity(
                value if self._named_blanks and value.startswith("nodeID://") else "_:" + value.removeprefix("_:")
            )
        if kind not in ("literal", "typed-literal"):
            raise ValueError(f"a term of the unknown kind {kind[:40]!r}")
        language = term.get("xml:lang", "")
        datatype = term.get("datatype") or XSD_STRING
        return Literal(value, XSD_STRING if language or datatype == RDF_LANG_STRING else datatype, language)


def decode_rows(parts: Iterable[bytes], *, max_rows: int, named_blanks: bool = False) -> Rows:
    """Decode the table of a SELECT as its bytes come in.

    Raises:
        PartialResult: it breaks off, or has more than `max_rows` rows.
        StoreUnavailable: it is no such table.
    """
    read = TermReader(named_blanks=named_blanks)
    parts = iter(parts)
    data = b""
    for part in parts:
        data += part
        if len(data) > AT_ONCE_BYTES:
            return _row_by_row(data, parts, max_rows, read)
    try:
        table = json.loads(data)
    except ValueError as error:
        raise _broken(data, error) from error
    try:
        variables = tuple(table["head"].get("vars", ()))
        bindings = table["results"]["bindings"]
        _within(len(bindings), max_rows)
        return Rows(variables, [_row(binding, variables, read) for binding in bindings])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _no_table(error) from error


def decode_boolean(data: bytes) -> bool:
    """Decode the answer of an ASK. Raises as `decode_rows` does."""
    try:
        value = json.loads(data)["boolean"]
    except (KeyError, TypeError) as error:
        raise _no_table(error) from error
    except ValueError as error:
        raise _broken(data, error) from error
    if not isinstance(value, bool):
        raise _no_table(ValueError("its answer is neither true nor false"))
    return value


def _row(binding: dict[str, Any], variables: tuple[str, ...], read: Callable[[dict[str, str]], Value]) -> Row:
    return tuple([read(binding[name]) if name in binding else None for name in variables])


def _within(rows: int, most: int) -> None:
    if rows > most:
        raise PartialResult(f"The result has more than {most:,} rows. Ask for less, or use LIMIT.")


def _row_by_row(data: bytes, parts: Iterator[bytes], max_rows: int, read: TermReader) -> Rows:
    """Reads `"bindings": [` and then one object after another, so that text and terms are never both whole."""
    text = _Text(data, parts)
    start = text.find('"bindings"')
    head = text.before(start)
    try:
        variables = tuple(json.loads(head[: head.rindex('"results"')].rstrip().rstrip(",") + "}")["head"]["vars"])
    except (ValueError, KeyError, TypeError) as error:
        raise _no_table(error) from error
    text.skip_past("[")
    rows: list[Row] = []
    try:
        while (binding := text.next_object()) is not None:
            rows.append(_row(binding, variables, read))
            if len(rows) > max_rows:
                _within(len(rows), max_rows)
    except (KeyError, TypeError, AttributeError) as error:
        raise _no_table(error) from error
    text.finish()
    return Rows(variables, rows)


class _Text:
    """Text that is still coming in, with what was read of it dropped."""

    def __init__(self, data: bytes, parts: Iterator[bytes]) -> None:
        import codecs

        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._parts = parts
        self._text = self._decode(data)
        self._at = 0

    def _decode(self, data: bytes, final: bool = False) -> str:
        try:
            return self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            raise PartialResult(CUT.format("it is not UTF-8")) from error

    def _more(self) -> bool:
        part = next(self._parts, None)
        self._text = self._text[self._at :] + self._decode(part or b"", part is None)
        self._at = 0
        return part is not None

    def find(self, what: str) -> int:
        while (place := self._text.find(what)) < 0:
            if not self._more():
                raise _no_table(ValueError("it has no bindings"))
        return place

    def before(self, place: int) -> str:
        head, self._at = self._text[:place], place
        return head

    def skip_past(self, sign: str) -> None:
        while (place := self._text.find(sign, self._at)) < 0:
            if not self._more():
                raise PartialResult(CUT.format("no row came"))
        self._at = place + 1

    def next_object(self) -> dict[str, Any] | None:
        """The next object of the list, None at its end."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in " \t\r\n,":
                at += 1
            if at < len(text):
                if text[at] == "]":
                    self._at = at + 1
                    return None
                try:
                    found, self._at = _SCAN(text, at)
                    return found
                except ValueError:
                    pass  # the rest of this object has not come yet
            self._at = at
            if not self._more():
                raise PartialResult(CUT.format("the last row is not whole"))

    def finish(self) -> None:
        """Read to the end: after the list brackets have to close, and servers add things of their own there."""
        while self._more():
            self._at = 0
        try:
            json.loads('{"results": {"bindings": []' + self._text[self._at :])
        except ValueError as error:
            raise PartialResult(CUT.format("its end is missing")) from error


def _broken(data: bytes, error: Exception) -> Exception:
    begins = data[:200].lstrip()[:1]
    if begins not in (b"{", b"["):
        return StoreUnavailable(
            "The server answered with something that is no SPARQL result: is this the address of its SPARQL endpoint?"
        )
    return PartialResult(CUT.format(str(error)[:100]))


def _no_table(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(f"The server answered with JSON that is no SPARQL result ({str(error)[:100]}).")
