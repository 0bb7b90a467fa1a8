"""Years in questions."""

from __future__ import annotations

import pytest

from kgqa.search.conditions.times import read_time


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("songs in the 1990s", 1990, 1999),
        ("king no later than 1862", None, 1862),
        ("king from 2000 on?", 2000, None),
        ("films from 2000 on Netflix", 2000, 2000),
        ("king in 1999 or later", 1999, None),
        ("king from 1990 to the present", 1990, None),
        ("cities founded before 100 BC", None, -101),
        ("cities founded in the year 700", 700, 700),
        ("cities founded after 2100?", 2101, None),
        ("between 44 BC and AD 14", -44, 14),
        ("Yıldırım Beyazıt'ın 1402 yılında kim", 1402, 1402),
        *((text, None, None) for text in ("who was king?", "higher than 2000 m", "a price of 1999.50", "in 900 films")),
        *((text, None, None) for text in ("1990s music", "above 300 m?", "by 12 actors", "king now?", "current king")),
    ],
)
def test_years(text, first, last):
    time, unread = read_time(text)
    assert (time and time.first, time and time.last) == (first, last)
    assert not unread or text == "1990s music"
    assert (time is not None and time.is_now) == ("now" in text or "current" in text)


@pytest.mark.parametrize(
    ("text", "first", "unread"),
    [
        ("king in 1962 and 2010", None, "in 1962 and 2010"),
        ("king in the early 1990s", None, "1990s"),
        ("king in the 19th century", None, "19th century"),
        ("king around 1990", None, "around 1990"),
        ("king before May 1990", None, "before May 1990"),
        ("born on May 3, 1990", 1990, "May 3, 1990"),
        ("king after 1990 or earlier", None, "after 1990 or earlier"),
        ("king before 1990 or later", None, "before 1990 or later"),
    ],
)
def test_words_of_a_time_that_are_not_read(text, first, unread):
    time, words = read_time(text)
    assert (time and time.first, words) == (first, unread)
