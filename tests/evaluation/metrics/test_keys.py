"""Keys that compare answers with gold answers: ids, values and names."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.keys import answer_keys, gold_keys, literal_key, needs_names, text_key
from kgqa.model import Entity, Literal, Named

NS = "http://rdf.freebase.com/ns/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def gold(*answers: str) -> frozenset:
    """Return gold keys; `m.1` is an id, `"text"` a text."""
    return gold_keys(GoldAnswer("", a[1:-1]) if a.startswith('"') else GoldAnswer(a, "any name") for a in answers)


def entity(ident: str, name: str) -> Named:
    return Named(Entity(NS + ident), ident, name)


def value(text: str, datatype: str = "string") -> Named:
    return Named(Literal(text, XSD + datatype), "", text)


EQUAL = [
    # gold text, lexical form, datatype
    ("1996", "1996", "gYear"),
    ("1996", "1996", "integer"),
    ("1996", "1996", "string"),
    ("1996", "1996.0", "decimal"),
    ("1996", "1.996E3", "double"),
    ("1996", "1996Z", "gYear"),
    ("0044", "0044", "gYear"),
    ("-0044", "-0044", "gYear"),
    ("+100", "100", "decimal"),
    ("6,960", "6960", "integer"),
    ("3.048", "3.048", "float"),
    ("0", "-0.0", "double"),
    ("7", "007", "integer"),
    ("1945-04-30", "1945-04-30", "date"),
    ("1945-04-30", "1945-04-30Z", "date"),
    ("1945-04-30", "1945-04-30T00:00:00Z", "dateTime"),
    ("1841-03-04T00:00:00Z", "1841-03-04", "date"),
    ("+1841-03-04T00:00:00Z", "1841-03-04T00:00:00.000Z", "dateTime"),
    ("1969-07-20T20:17:40Z", "1969-07-20T22:17:40+02:00", "dateTime"),
    ("1969-07-20T20:17:40", "1969-07-20T20:17:40.0", "dateTime"),  # without a time zone
    ("1921-09", "1921-09", "gYearMonth"),
    ("-0044-03-15", "-0044-03-15", "date"),
    ("Marshall Bruce Mathers III", "marshall  bruce mathers iii", "string"),
    ("true", "true", "boolean"),
    ("NaN", "NaN", "double"),
    ("???", "???", "string"),
    ("Théodor Seuss-Geisel", "theodor seuss geisel", "string"),
    ("2019-20 season", "2019–20 season", "string"),
    ("-5 °C", "−5 °C", "string"),
    ("50 %", "50%", "string"),
    ("**Paris**", "Paris", "string"),
    ("*NSYNC", "NSYNC", "string"),
    ("F-16", "F 16", "string"),
    ("Sammy Davis, Jr.", "Sammy Davis Jr", "string"),
    ("مُحَمَّد", "محمد", "string"),
    ("Αθήνα", "ΑΘΗΝΑ", "string"),
]


@pytest.mark.parametrize(("text", "lexical", "datatype"), EQUAL)
def test_equal_values(text, lexical, datatype):
    wanted = gold(f'"{text}"')
    assert answer_keys([value(lexical, datatype)], wanted) == wanted


UNEQUAL = [
    ("1996", "1997", "gYear"),
    ("1996", "1996-01-01", "date"),
    ("1996-01", "1996-01-01", "date"),
    ("1945-04-30", "1945-04-30T12:00:00Z", "dateTime"),
    ("007", "7", "integer"),  # a text with leading zeros is a code
    ("1,2", "12", "integer"),
    ("1e99999999", "1", "integer"),
    ("???", "!!!", "string"),
    ("12", "twelve", "string"),
    ("12", "-12", "integer"),
    ("0.1", "1", "decimal"),
    ("10", "1", "decimal"),
    ("C++", "C#", "string"),
    ("C++", "C", "string"),
    ("C++11", "C 11", "string"),
    ("A+", "A-", "string"),
    ("O+", "O−", "string"),  # another minus sign
    ("O+", "O", "string"),
    ("-5 °C", "5 °C", "string"),
    ("−5 °C", "5 °C", "string"),
    ("1.5 million", "1-5 million", "string"),
    ("1.5 million", "15 million", "string"),
    ("Sagittarius A*", "Sagittarius A", "string"),
    ("दिन", "दीन", "string"),  # day, poor: only their vowel signs differ
    ("कमल", "कमला", "string"),
    ("がき", "かき", "string"),
]


@pytest.mark.parametrize(("text", "lexical", "datatype"), UNEQUAL)
def test_unequal_values(text, lexical, datatype):
    wanted = gold(f'"{text}"')
    assert answer_keys([value(lexical, datatype)], wanted) != wanted


def test_gold_value_with_a_datatype():
    assert gold_keys([GoldAnswer("", "007", XSD + "integer")]) == gold('"7"') != gold('"007"')


@pytest.mark.parametrize(
    ("text", "lexical"),
    [
        ("Théodor Seuss-Geisel", "theodor seuss geisel"),
        ("1984", "1984"),
        ("1,984", "1984"),
        ("1949-06-08", "1949-06-08"),
    ],
)
def test_language_tag_does_not_change_the_key(text, lexical):
    wanted = gold(f'"{text}"')
    assert answer_keys([Named(Literal(lexical, language="en"), "", "x")], wanted) == wanted


def test_entities_match_by_short_id_or_iri():
    ann = entity("m.1", "Ann")
    assert answer_keys([ann], gold("m.1")) == gold("m.1")
    assert answer_keys([ann], gold(NS + "m.1")) == gold(NS + "m.1")
    assert answer_keys([ann], gold("m.2")) == {("id", NS + "m.1")}


def test_names_do_not_count_if_gold_has_an_id():
    wanted = gold_keys([GoldAnswer("m.1", "Ann")])
    assert not answer_keys([entity("m.2", "Ann"), value("Ann")], wanted) & wanted
    assert not needs_names(wanted)


def test_names_count_if_gold_has_no_id():
    wanted = gold('"Parliament of Nepal"', "m.7")
    assert needs_names(wanted)
    assert answer_keys([entity("m.1", "parliament_of nepal"), entity("m.7", "x")], wanted) == wanted


def test_entity_named_by_a_number():
    assert answer_keys([entity("m.1", "1996")], gold('"1996"')) == gold('"1996"')


def test_entities_with_one_name_are_one_answer_by_name():
    wanted = gold('"Ann"')
    assert answer_keys([entity("m.1", "Ann"), entity("m.2", "ANN")], wanted) == wanted


def test_unnamed_entities_are_distinct():
    assert len(answer_keys([entity("m.1", ""), entity("m.2", "")], gold('"Ann"'))) == 2


texts = st.text(max_size=30) | st.from_regex(r"[+-]?\d{1,6}([.,]\d{1,4})?([eE][+-]?\d{1,3})?", fullmatch=True)


@given(texts, st.sampled_from(["string", "integer", "double", "gYear", "date", "dateTime", "boolean"]))
def test_surrounding_spaces_do_not_change_the_key(text, datatype):
    assert literal_key(Literal(text, XSD + datatype)) == literal_key(Literal(f" {text} ", XSD + datatype))
    assert text_key(text)[0] in ("number", "date", "name")


numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4)


@given(numbers, numbers)
def test_numbers_compare_as_decimals(first, second):
    keys = [literal_key(Literal(str(n), XSD + "decimal")) for n in (first, second)]
    assert (keys[0] == keys[1]) == (first == second)
    for text in (f"{first:f}0", f"{first:E}"):
        assert literal_key(Literal(text, XSD + "double")) == keys[0]
    assert keys[0] == text_key(str(Decimal(first)))


def test_huge_numbers_are_names():
    assert literal_key(Literal("1e999999999", XSD + "double"))[0] == "name"
    assert literal_key(Literal("9" * 1_000_000, XSD + "integer"))[0] == "name"
