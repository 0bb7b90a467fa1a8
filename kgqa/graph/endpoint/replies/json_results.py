"""Decodes SPARQL 1.1 Query Results JSON to typed terms: small results at once, large results row by row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from typing import Any

from kgqa.errors import DamagedResult, PartialResult, StoreUnavailable
from kgqa.graph.endpoint.replies.canonical_values import canonical_text
from kgqa.graph.store import Row, Rows
from kgqa.model import RDF_LANG_STRING, XSD_STRING, Entity, Literal, Value
from kgqa.storage.json_stream import MAX_VALUE_CHARS, DamagedJson, JsonStream, LongValue
from kgqa.text.words import clean

AT_ONCE_BYTES = 1 << 20
TRUNCATED = "The server's reply is truncated or damaged ({}) and is not used. Try again, or narrow the query."


class TermReader:
    """Converts JSON objects to terms. Equal entities share one object.

    Virtuoso's blank nodes (`nodeID://b1`) are converted to IRIs, because queries can contain them.
    """

    def __init__(self) -> None:
        self._seen: dict[str, Entity] = {}

    def __call__(self, term: dict[str, str]) -> Value:
        kind, value = term["type"], term["value"]
        if not value.isascii():
            value.encode("utf-8")  # raises an error for a lone surrogate, which JSON can contain as an escape
        if kind == "uri":
            entity = self._seen.get(value)
            if entity is None:
                entity = self._seen[value] = Entity(value)
            return entity
        if kind == "bnode":
            return Entity(value if value.startswith("nodeID://") else "_:" + value.removeprefix("_:"))
        if kind not in ("literal", "typed-literal"):
            raise ValueError(f"unknown type of term {kind[:40]!r}")
        language = term.get("xml:lang", "").lower()  # language tags are case-insensitive
        datatype = term.get("datatype") or XSD_STRING
        if not isinstance(datatype, str):
            raise ValueError("a datatype is not a string")
        if language or datatype in (XSD_STRING, RDF_LANG_STRING):
            return Literal(value, XSD_STRING, language)
        return Literal(canonical_text(value, datatype), datatype)


class RowReader:
    """Converts JSON objects to rows, in the order of the variables in the head."""

    def __init__(self, head: dict[str, Any], read_term: TermReader) -> None:
        names = head["vars"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("the variables are not a list of names")
        self.variables = tuple(names)
        self._names = frozenset(names)
        self._read_term = read_term

    def __call__(self, binding: dict[str, Any]) -> Row:
        read_term = self._read_term
        if not self._names.issuperset(binding.keys()):
            raise ValueError("a row has a variable that the head does not list")
        return tuple([read_term(binding[name]) if name in binding else None for name in self.variables])


def decode_rows(chunks: Iterable[bytes], *, max_rows: int) -> Rows:
    """Decode the result of a SELECT query while it arrives.

    Raises:
        DamagedResult: the result is truncated. PartialResult: the result has more than `max_rows` rows.
        StoreUnavailable: the reply is not the result of a SELECT query.
    """
    read_term = TermReader()
    chunks = iter(chunks)
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > AT_ONCE_BYTES:
            return _decode_row_by_row(JsonStream(chain([bytes(data)], chunks)), max_rows, read_term)
    table = _load_json(bytes(data))
    try:
        read_row = RowReader(table["head"], read_term)
        bindings = table["results"]["bindings"]
        if not isinstance(bindings, list):
            raise ValueError("the bindings are not a list")
        _check_row_count(len(bindings), max_rows)
        return Rows(read_row.variables, [read_row(binding) for binding in bindings])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _not_a_result(error) from error


def decode_boolean(data: bytes) -> bool:
    """Decode the reply to an ASK query. Raises the same errors as `decode_rows`."""
    try:
        value = _load_json(data)["boolean"]
    except (KeyError, TypeError) as error:
        raise _not_a_result(error) from error
    if not isinstance(value, bool):
        raise _not_a_result(ValueError("the boolean is neither true nor false"))
    return value


def _load_json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except RecursionError as error:
        raise _not_a_result(ValueError("the JSON is nested too deeply")) from error
    except ValueError as error:
        if data.lstrip()[:1] not in (b"{", b"["):
            what = "something other than a SPARQL result" if data.strip() else "an empty reply"
            raise StoreUnavailable(f"The server sent {what}.", "Check the address of the SPARQL endpoint.") from error
        raise DamagedResult(TRUNCATED.format(str(error)[:100])) from error


def _check_row_count(rows: int, max_rows: int) -> None:
    if rows > max_rows:
        raise PartialResult(f"The result has more than {max_rows:,} rows.", "Narrow the query, or add a LIMIT.")


def _decode_row_by_row(text: JsonStream, max_rows: int, read_term: TermReader) -> Rows:
    """Decode a large result row by row, so that its text and its terms need not be in memory together."""
    read_row: RowReader | None = None
    rows: list[Row] | None = None
    bindings: list[dict[str, Any]] = []  # rows that precede the head
    try:
        for name in text.members():
            if name == "head":
                read_row = RowReader(text.value(), read_term)
            elif name == "results":
                for inner in text.members():
                    if inner != "bindings":
                        text.value()
                        continue
                    rows, bindings = [], []
                    for binding in text.items():
                        if read_row is None:
                            bindings.append(binding)
                        else:
                            rows.append(read_row(binding))
                        _check_row_count(len(rows) + len(bindings), max_rows)
            else:
                text.value()
        text.end()
        if read_row is None or rows is None:
            raise ValueError("the head or the bindings are missing")
        return Rows(read_row.variables, rows or [read_row(binding) for binding in bindings])
    except DamagedJson as error:
        raise DamagedResult(TRUNCATED.format(error)) from error
    except LongValue as error:
        raise PartialResult(
            f"A row of the result is longer than {MAX_VALUE_CHARS:,} characters.", "Narrow the query."
        ) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _not_a_result(error) from error


def _not_a_result(error: Exception) -> StoreUnavailable:
    detail = clean(str(error))[:100]
    return StoreUnavailable(
        f"The server sent JSON that is not a SPARQL result ({detail}).", "Check the address of the SPARQL endpoint."
    )
