"""Years in questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.explore.conditions.times import read_time


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
    ],
)
def test_years(text, first, last):
    found = read_time(text)
    assert (found and found.first, found and found.last) == (first, last)


@pytest.mark.parametrize("text", ["who is king now?", "the current king", "who is currently king"])
def test_present(text):
    assert read_time(text).is_now


@pytest.mark.parametrize(
    "text", ["who was king?", "higher than 2000 m", "a price of 1999.50", "between them", "1990s music"]
)
def test_no_time(text):
    assert read_time(text) is None


@given(st.integers(1000, 2099), st.integers(1000, 2099))
def test_two_years_without_a_range_are_not_guessed(first, second):
    assert read_time(f"in {first} or in {second}") is None
