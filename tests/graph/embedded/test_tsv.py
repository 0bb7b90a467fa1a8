"""Results in TSV: the terms that the engine writes are read back."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgqa.graph.embedded.tsv import decode_term, decode_tsv
from kgqa.model import XSD_STRING, Entity, Literal

XSD = "http://www.w3.org/2001/XMLSchema#"
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
IRIS = st.from_regex(r"http://e/[A-Za-z0-9é漢\u2028._~%#/?=:@!$&'()*+,;-]{0,20}", fullmatch=True).filter(
    lambda iri: iri.count("#") <= 1 and "%" not in iri
)
LANGUAGES = st.sampled_from(["en", "en-gb", "zh-hans", "x-private", "de-1996", "mul"])
NUMBERS = st.integers(-(10**17), 10**17) | st.floats(allow_nan=True, allow_infinity=True) | st.booleans()
DATATYPES = st.sampled_from(
    [XSD + t for t in ("integer", "decimal", "double", "boolean", "date", "dateTime", "gYear", "float", "anyURI")]
    + ["http://e/type"]
)
LITERALS = st.one_of(
    TEXTS.map(ox.Literal),
    st.builds(lambda text, tag: ox.Literal(text, language=tag), TEXTS, LANGUAGES),
    st.builds(lambda text, kind: ox.Literal(text, datatype=ox.NamedNode(kind)), TEXTS | st.from_regex(r"-?\d{1,4}(\.\d+)?", fullmatch=True), DATATYPES),
    NUMBERS.map(ox.Literal),
)  # fmt: skip
TERMS = st.one_of(
    LITERALS, IRIS.map(ox.NamedNode), st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).map(ox.BlankNode)
)


def convert_term(term) -> Entity | Literal:
    """Convert a term of the engine."""
    if isinstance(term, ox.NamedNode):
        return Entity(term.value)
    if isinstance(term, ox.BlankNode):
        return Entity(f"_:{term.value}")
    return Literal(term.value, term.datatype.value if not term.language else XSD_STRING, term.language or "")


@given(st.lists(TERMS, max_size=6))
@example([ox.Literal("a\tb\nc\r\"d\\e'f\\n\x0b\x85\u2028")])
@example([ox.Literal("")])
@example([ox.Literal("\\"), ox.Literal('"'), ox.Literal("\\t"), ox.Literal('@en"')])
@example([ox.Literal("true"), ox.Literal("5"), ox.Literal("1.5"), ox.Literal("1e5"), ox.Literal("<a>")])
@example([ox.Literal(t, datatype=ox.NamedNode(XSD + "double")) for t in ("INF", "-INF", "NaN", "1e400", "abc", "")])
@example([ox.Literal(t, datatype=ox.NamedNode(XSD + "decimal")) for t in ("1.", ".5", "+0.10", "-.5", "1")])
@example([ox.Literal(t, datatype=ox.NamedNode(XSD + "integer")) for t in ("007", "+1", "-0", "1" * 40, "1.5", " 1")])
@example([ox.Literal(t, datatype=ox.NamedNode(XSD + "boolean")) for t in ("1", "0", "TRUE", "true", "")])
def test_any_terms_of_the_engine(terms):
    store = ox.Store()
    for index, term in enumerate(terms):
        store.add(ox.Quad(ox.NamedNode(f"http://e/{index}"), ox.NamedNode("http://e/p"), term))
    query = "SELECT ?s ?o { ?s <http://e/p> ?o } ORDER BY ?s"
    decoded = decode_tsv(store.query(query).serialize(format=ox.QueryResultsFormat.TSV))
    assert decoded.variables == ("s", "o") and len(decoded) == len(terms)
    assert decoded.rows == [tuple(map(convert_term, solution)) for solution in store.query(query)]


@pytest.mark.parametrize(
    "term",
    ['"open', '"a"x', '"a"@', '"a"^^<open', "word", "<http://e/a", ".", "+", "1e", "..e5", '"bad \\q escape"', "TRUE",
     "<<( <http://e/a> <http://e/b> <http://e/c> )>>"],
)  # fmt: skip
def test_text_that_is_no_term_is_an_error(term):
    with pytest.raises(ValueError, match="not an RDF term"):
        decode_term(term)
