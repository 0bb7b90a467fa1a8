"""Amounts in questions, and the values that are compared with them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.search.conditions.amounts import read_amount
from kgqa.search.conditions.requests import read_request
from kgqa.search.question_language import in_english

HOW = {"more than": ">", "over": ">", "at least": ">=", "below": "<", "fewer than": "<", "no more than": "<="}


@given(st.sampled_from(sorted(HOW)), st.decimals("0.01", "9e12", places=2), st.sampled_from(["", " million", "%"]))
def test_number_is_read_as_it_is_written(how, number, unit):
    wanted = number * 1_000_000 if unit == " million" else number
    for written in (f"{number}", f"{number:,}"):
        found = read_amount(f"which things have {how} {written}{unit} downloads?")
        assert (found.comparison.operator, Decimal(found.comparison.value.value)) == (HOW[how], wanted)
        assert found.cue == f"{how} {written}{unit}" and found.measure.words == ("downloads", "things")


@given(st.decimals("0.01", "9e9", places=2))
def test_number_of_a_german_or_spanish_question(number):
    written = f"{number:,}".translate(str.maketrans(".,", ",."))
    for question in (f"Welche Biere haben mehr als {written} Prozent?", f"¿Qué puentes tienen más de {written} m?"):
        found = read_amount(in_english(question, []))
        assert (found.comparison.operator, Decimal(found.comparison.value.value)) == (">", number)


@pytest.mark.parametrize(
    ("text", "operator", "number", "word"),
    [
        ("rivers longer than 30 km", ">", "30", "length"),
        ("rivers shorter than 30km", "<", "30", "length"),
        ("packages with over a million downloads", ">", "1000000", "downloads"),
        ("packages with over a hundred thousand downloads", ">", "100000", "downloads"),
        ("teams with fewer than twelve hundred fans", "<", "1200", "fans"),
    ],
)
def test_amount_in_words(text, operator, number, word):
    found = read_amount(text)
    assert (found.comparison.operator, found.comparison.value.value) == (operator, number)
    assert word in found.measure.words


@pytest.mark.parametrize(
    "text",
    [
        "the bridge over the river",
        "a tunnel under a lake",
        "longer than an hour",
        "people older than 30",  # an age is no number in the graph
        "more than 2 and less than 5 seats",  # several
        "over 10k seats", "over 1e6 seats", "version over 2.5.1", "over 5,5 percent",  # none of these is 10, 1, 2.5 or 55
        "founded after 2000",
        "films with more than a few songs",
    ],
)  # fmt: skip
def test_what_is_no_amount(text):
    assert read_amount(text) is None


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many ferries have more than 800 seats?", "count"),
        ("How many mountains are higher than 2000 m?", "count"),
        ("Which ferry with more than 800 seats is the shortest?", "extreme"),
        ("Which is longer, the Oder or the Weser?", "compare"),
    ],
)
def test_amount_is_no_comparison_of_two_topics(question, kind):
    assert read_request(question).kind == kind
