"""Years in questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.search.conditions.times import read_time


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("who was king in 1998?", 1998, 1998),
        ("films from 1990 to 1995", 1990, 1995),
        ("films between 1990 and 1995", 1990, 1995),
        ("films before 2000", None, 1999),
        ("films after 2000", 2001, None),
        ("who has been king since 2000?", 2000, None),
        ("songs of the 1990s", None, None),
        ("songs in the 1990s", 1990, 1999),
        ("king until 1914", None, 1914),
        ("king no later than 1862", None, 1862),
        ("king no earlier than 1862", 1862, None),
        ("king later than the year 1990", 1991, None),
        ("king by 1862", None, 1862),
        ("king from 2000 onwards?", 2000, None),
        ("king from 2000 on?", 2000, None),
        ("films from 2000 on Netflix", 2000, 2000),
        ("king in 1999 or later", 1999, None),
        ("king from 1990 to the present", 1990, None),
        ("king in 1990-1995", 1990, 1995),
        ("who may be king in 1990", 1990, 1990),
        ("cities founded before 100 BC", None, -101),
        ("cities founded before 900?", None, 899),
        ("cities founded in the year 700", 700, 700),
        ("cities founded after 2100?", 2101, None),
        ("between 44 BC and AD 14", -44, 14),
        ("from 44 BC to 14 AD", -44, 14),
        ("in 1962 and 2010", None, None),
    ],
)
def test_years(text, first, last):
    found, _ = read_time(text)
    assert (found and found.first, found and found.last) == (first, last)


@pytest.mark.parametrize("text", ["who is king now?", "the current king", "who is currently king"])
def test_present(text):
    assert read_time(text)[0].is_now


@pytest.mark.parametrize(
    "text",
    [
        "who was king?",
        "higher than 2000 m",
        "a price of 1999.50",
        "between them",
        "1990s music",
        "in 900 films",
        "above 300 m?",
        "by 12 actors",
    ],
)
def test_no_time(text):
    assert read_time(text)[0] is None


@pytest.mark.parametrize(
    ("text", "first", "unread"),
    [
        ("king in 1962 or 2010", None, "in 1962"),
        ("king in the early 1990s", None, "1990s"),
        ("king in the 1990s or in 2005", None, "1990s"),
        ("king in the 19th century", None, "19th century"),
        ("king around 1990", None, "around 1990"),
        ("king before May 1990", None, "before May 1990"),
        ("born on May 3, 1990", 1990, "May 3, 1990"),
        ("born on 1990-05-03", 1990, "1990-05-03"),
        ("king no later than 1862", None, ""),
        ("king in 1998", 1998, ""),
        ("the current king", None, ""),
        ("higher than 2000 m", None, ""),
        ("who was king?", None, ""),
    ],
)
def test_words_of_a_time_that_are_not_read(text, first, unread):
    found, words = read_time(text)
    assert (found and found.first, words) == (first, unread)


@given(st.integers(1000, 2099), st.integers(1000, 2099))
def test_two_years_without_a_range_are_not_guessed(first, second):
    assert read_time(f"in {first} or in {second}") == (None, f"in {first}")
