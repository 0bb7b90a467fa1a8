"""Decoding JSON results: whole and streamed decoding agree, and a damaged result is an error."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.errors import KgqaError, PartialResult, StoreUnavailable
from kgqa.graph.endpoint.replies import json_results
from kgqa.graph.endpoint.replies.json_results import decode_boolean, decode_rows
from kgqa.model import Entity, Literal
from kgqa.storage.json_stream import MAX_VALUE_CHARS
from kgqa.testing.sparql_server import table_bytes

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
SMALL = table_bytes(
    ["a", "b"], [(Entity("http://e/ä"), Literal('x\n"}]', language="en")), (None, Literal("3", INTEGER))]
)


def decode(*parts: bytes, max_rows: int = 1000):
    return decode_rows(parts, max_rows=max_rows)


def row_by_row(parts, **options):
    """Decode with the streaming decoder, whatever the size of the table."""
    usual, json_results.AT_ONCE_BYTES = json_results.AT_ONCE_BYTES, -1
    try:
        return decode_rows(parts, **{"max_rows": 1000, **options})
    finally:
        json_results.AT_ONCE_BYTES = usual


def outcome(call, *args, **options):
    try:
        return call(*args, **options)
    except KgqaError as error:
        return type(error)


BOTH = pytest.mark.parametrize(
    "read", [lambda *parts: decode(*parts), lambda *parts: row_by_row(parts)], ids=["at once", "row by row"]
)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
terms = st.one_of(
    st.builds(lambda tail: Entity("http://e/" + tail), st.text("abcäß漢😀_.-", max_size=8)),
    st.builds(lambda label: Entity(f"_:b{label}"), st.integers(0, 9)),
    st.builds(Literal, texts),
    st.builds(lambda text, language: Literal(text, language=language), texts, st.sampled_from(["en", "de-at"])),
    st.builds(lambda number: Literal(str(number), INTEGER), st.integers()),
)
tables = st.integers(0, 4).flatmap(
    lambda width: st.tuples(
        st.just(["x", "bindings", "results", "head"][:width]),
        st.lists(st.tuples(*[st.none() | terms] * width), max_size=8),
    )
)


@given(table=tables)
def test_encoded_table_is_decoded(table):
    variables, rows = table
    found = decode(table_bytes(variables, rows))
    assert (found.variables, found.rows) == (tuple(variables), rows)


@given(table=tables, data=st.data())
def test_streamed_and_whole_decoding_agree(table, data):
    body = table_bytes(*table)
    if data.draw(st.booleans()):  # as servers write it: with line breaks, escapes and additional members
        found = json.loads(body)
        found["head"]["link"] = []
        found["results"] = {"distinct": False, "ordered": True, **found["results"], "more": {"a": [1.5e3, None]}}
        order = data.draw(st.permutations(["head", "results", "meta"]))
        found["meta"] = {"query-time-ms": 12}
        body = json.dumps({name: found[name] for name in order}, indent=data.draw(st.sampled_from([None, 1]))).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    parts = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)])]
    assert row_by_row(parts) == decode(body)


@given(table=tables, data=st.data())
def test_damage_is_never_another_table(table, data):
    body = bytearray(table_bytes(*table))
    position = data.draw(st.integers(0, len(body) - 1))
    body[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    at_once, bit_by_bit = outcome(decode, bytes(body)), outcome(row_by_row, [bytes(body)])
    if not (isinstance(at_once, type) and isinstance(bit_by_bit, type)):
        assert at_once == bit_by_bit


@BOTH
def test_truncated_table_is_an_error(read):
    assert len(read(SMALL)) == 2
    for length in range(len(SMALL)):
        with pytest.raises((PartialResult, StoreUnavailable)):
            read(SMALL[:length])


def test_truncated_boolean_is_an_error():
    body = b'{"head": {}, "boolean": true}'
    assert decode_boolean(body) is True
    for length in range(len(body)):
        with pytest.raises((PartialResult, StoreUnavailable)):
            decode_boolean(body[:length])


@BOTH
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  \n ",
        b"<html></html>",
        b"Virtuoso 37000 Error",
        b"\x00\xff\xfe\x80 binary",
        bytes(range(256)) * 4,
        b"[]",
        b"null",
        b"{}",
        b'"text"',
        b'{"head": {"vars": ["x"]}}',
        b'{"results": {"bindings": []}}',
        b'{"head": {}, "results": {"bindings": []}}',
        b'{"head": {"vars": "xy"}, "results": {"bindings": []}}',
        b'{"head": {"vars": [1]}, "results": {"bindings": []}}',
        b'{"head": [], "results": {"bindings": []}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": {}}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [[]]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": ["x"]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [null]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"y": {"type": "uri", "value": "http://e/"}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": null}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri"}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": 3}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "triple", "value": {}}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": 3, "value": "a"}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "a", "datatype": 3}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "\\ud800"}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": []}} {"more": 1}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": []}}\nOperation timed out.',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [],}}',
        b'{"head": {"vars": ["x"]} "results": {"bindings": []}}',
    ],
)
def test_invalid_table_is_an_error(read, body):
    with pytest.raises((PartialResult, StoreUnavailable)) as caught:
        read(body)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


@BOTH
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting_is_an_error(read, opening):
    with pytest.raises((PartialResult, StoreUnavailable)):
        read(b'{"head": ' + opening * 100_000)
    with pytest.raises((PartialResult, StoreUnavailable)):
        decode_boolean(opening * 100_000)


@BOTH
def test_row_cap(read):
    body = table_bytes(["x"], [(Literal(str(n)),) for n in range(1000)])
    assert len(read(body)) == 1000
    with pytest.raises(PartialResult, match="more than 1,000 rows"):
        read(table_bytes(["x"], [(Literal(str(n)),) for n in range(1001)]))


def test_number_split_over_two_chunks():
    body = b'{"n": 123456, "head": {"vars": []}, "results": {"n": -1.5e10, "bindings": [{}]}}'
    for position in range(1, len(body)):
        assert len(row_by_row([body[:position], body[position:]])) == 1


def test_byte_order_mark_is_accepted():
    assert decode(b"\xef\xbb\xbf" + SMALL) == row_by_row([b"\xef\xbb\xbf" + SMALL]) == decode(SMALL)


def test_large_tables_need_little_memory():
    def parts(rows):
        yield b'{"head": {"vars": ["x"]}, "results": {"bindings": ['
        block = b'{"x": {"type": "literal", "value": "%s"}},' % (b"x" * 5000)
        for _ in range(rows):
            yield block
        yield block.rstrip(b",") + b"]}}"

    tracemalloc.start()
    try:
        with pytest.raises(PartialResult):
            decode_rows(parts(1_000_000), max_rows=2000)  # 5 GB, which are never built
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 30 << 20  # the rows themselves take 10 MB


def test_endless_row_is_an_error():
    def parts():
        yield b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "'
        while True:
            yield b"x" * (1 << 20)

    with pytest.raises(PartialResult, match=f"{MAX_VALUE_CHARS:,} characters"):
        decode_rows(parts(), max_rows=10)


def test_long_value_is_read_in_linear_time():
    value = "abcdefgh" * (1 << 20)
    body = table_bytes(["x"], [(Literal(value),)])
    parts = [body[position : position + 4096] for position in range(0, len(body), 4096)]
    assert row_by_row(parts).rows == [(Literal(value),)]


def test_virtuoso_dialect():
    body = b"""{ "head": { "link": [], "vars": ["n", "b", "s"] }, "results": { "distinct": false, "ordered": true, "bindings": [
    { "n": { "type": "typed-literal", "datatype": "http://www.w3.org/2001/XMLSchema#integer", "value": "7" },
      "b": { "type": "bnode", "value": "nodeID://b10001" },
      "s": { "type": "literal", "xml:lang": "en-GB", "value": "x" }} ] } }"""
    assert decode(body).rows == [(Literal("7", INTEGER), Entity("nodeID://b10001"), Literal("x", language="en-gb"))]
    other = body.replace(b"nodeID://b10001", b"b10001")
    assert decode(other).rows[0][1] == Entity("_:b10001")


def test_repeated_entity_is_one_object():
    (first,), (second,) = decode(table_bytes(["x"], [(Entity("http://e/1"),)] * 2)).rows
    assert first is second


@pytest.mark.parametrize(
    "body", [b"{}", b'{"boolean": "true"}', b'{"boolean": 1}', b"[]", b"true", b'{"boolean": true']
)
def test_invalid_boolean_is_an_error(body):
    with pytest.raises((PartialResult, StoreUnavailable)):
        decode_boolean(body)
