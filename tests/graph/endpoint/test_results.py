"""Decoding JSON results: a damaged result is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.errors import PartialResult, StoreUnavailable
from kgqa.graph.endpoint.replies import decode_boolean, decode_rows
from kgqa.model import Entity, Literal
from kgqa.testing.sparql_server import table_bytes

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
SMALL = table_bytes(
    ["a", "b"], [(Entity("http://e/ä"), Literal('x\n"}]', language="en")), (None, Literal("3", INTEGER))]
)


def decode(body: bytes, **options):
    return decode_rows(body, **{"max_rows": 1000, **options})


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


def test_truncated_table_is_an_error():
    assert len(decode(SMALL)) == 2
    for length in range(len(SMALL)):
        with pytest.raises((PartialResult, StoreUnavailable)):
            decode(SMALL[:length])


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"head": {}, "results": {"bindings": []}}',
        b'{"head": {"vars": [1]}, "results": {"bindings": []}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"y": {"type": "uri", "value": "http://e/1"}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri"}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "triple", "value": {}}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "\\ud800"}}]}}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": []}} {"more": 1}',
        b'{"head": {"vars": ["x"]}, "results": {"bindings": []}}\nOperation timed out.',
    ],
)
def test_invalid_table_is_an_error(body):
    with pytest.raises((PartialResult, StoreUnavailable)) as caught:
        decode(body)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


def test_byte_order_mark_is_skipped():
    assert decode(b"\xef\xbb\xbf" + SMALL) == decode(SMALL)
    assert decode_boolean(b'\xef\xbb\xbf{"boolean": true}')


def test_virtuoso_dialect():
    body = b"""{ "head": { "link": [], "vars": ["n", "b", "s"] }, "results": { "distinct": false, "ordered": true, "bindings": [
    { "n": { "type": "typed-literal", "datatype": "http://www.w3.org/2001/XMLSchema#integer", "value": "7" },
      "b": { "type": "bnode", "value": "nodeID://b10001" },
      "s": { "type": "literal", "xml:lang": "en-GB", "value": "x" }} ] } }"""
    assert decode(body).rows == [(Literal("7", INTEGER), Entity("nodeID://b10001"), Literal("x", language="en-gb"))]
    other = body.replace(b"nodeID://b10001", b"b10001")
    assert decode(other).rows[0][1] == Entity("_:b10001")
