"""Typed values that fit their datatype."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.virtuoso.freebase.terms import XSD, fits, not_kept, number_type, time_of_day


def value_fits(value: str, kind: str) -> bool:
    return fits(value.encode(), XSD + kind.encode())


GOOD = {
    "date": ["2012-02-29", "1999-12-31", "-0044-03-15", "0000-01-01", "12012-01-01", "2012-01-02Z", "2012-01-02+01:00"],
    "dateTime": ["2012-01-02T03:04:05", "1969-07-20T20:17", "1969-07-20T20:17Z", "2012-01-02T03:04:05.123456-08:00", "2012-01-02T24:00:00"],
    "time": ["12:30:00", "23:59:59.9Z"],
    "gYear": ["1999", "-0044", "12345"],
    "gYearMonth": ["2001-02", "-0500-12"],
    "gMonthDay": ["--02-29", "--12-31"],
    "gDay": ["---05", "---31"],
    "gMonth": ["--05"],
    "integer": ["0", "-5", "+5", "007", "1" * 38],
    "decimal": ["4.5", "-0.5", ".5", "5", "5."],
    "double": ["1.5e3", "INF", "-INF", "NaN", "1E-7", "5", ".5"],
    "boolean": ["true", "false", "1", "0"],
    "string": ["anything"],
    "anyURI": ["not one"],
}  # fmt: skip
BAD = {
    "date": ["2012-13-01", "2012-00-01", "2012-01-00", "2012-02-30", "2012-04-31", "2012-1-2", "2012", "99-01-01", "", " 2012-01-02"],
    "dateTime": ["2012-01-02T25:00:00", "2012-01-02T03:60:00", "2012-01-02T03:04:60", "2012-01-02", "T12:00", "2012-01-02 03:04:05"],
    "time": ["12:30", "24:01:00", "T12:30:00"],
    "gYear": ["99", "abcd", "", "1999-01"],
    "gYearMonth": ["2001-13", "2001", "2001-00"],
    "gMonthDay": ["05-06", "--02-30"],
    "gDay": ["---32", "---00"],
    "integer": ["", "twelve", "5.0", "1" * 39, "1e3", " 5"],
    "decimal": ["1e3", "", ".", "-", "1" * 39],
    "double": ["", "x", "1e", "e5", "inf", "1e5000"],
    "boolean": ["yes", "TRUE", ""],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, all_ in GOOD.items() for value in all_])
def test_fits(kind, value):
    assert value_fits(value, kind)


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, all_ in BAD.items() for value in all_])
def test_does_not_fit(kind, value):
    assert not value_fits(value, kind)


@given(st.dates(min_value=datetime.date(1000, 1, 1)))
def test_valid_dates_fit(day):
    assert value_fits(day.isoformat(), "date")
    assert value_fits(f"{day.isoformat()}T00:00:00", "dateTime") and value_fits(day.isoformat()[:7], "gYearMonth")


@given(st.integers(1, 12), st.integers(0, 40))
def test_invalid_days_do_not_fit(month, day):
    try:
        datetime.date(2012, month, day)
        valid = True
    except ValueError:
        valid = False
    assert value_fits(f"2012-{month:02}-{day:02}", "date") == valid


@given(st.integers(-(10**37), 10**37), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_fit(integer, number):
    assert (
        value_fits(str(integer), "integer")
        and value_fits(str(integer), "decimal")
        and value_fits(repr(number), "double")
    )
    assert number_type(str(integer).encode()) == XSD + b"integer"


@pytest.mark.parametrize(
    ("bare", "kind"),
    [
        ("12", "integer"),
        ("-1.5", "decimal"),
        (".5", "decimal"),
        ("1e3", "double"),
        ("1.5E-3", "double"),
        ("true", "boolean"),
    ]
    + [(bare, None) for bare in ("", "4.", ".", "x", "0x1", "_:b", "1e", "TRUE", "--1")],
)
def test_number_type(bare, kind):
    assert number_type(bare.encode()) == (kind and XSD + kind.encode())


def test_times_of_day():
    assert time_of_day(b"T12:30", XSD + b"dateTime") == b'"12:30:00"^^<%stime>' % XSD
    assert time_of_day(b"T12:30:15.5+01:00", XSD + b"dateTime") == b'"12:30:15.5+01:00"^^<%stime>' % XSD
    assert time_of_day(b"T12:30", XSD + b"time") is None
    assert time_of_day(b"T25:30", XSD + b"dateTime") is None


def test_datatypes_that_are_not_kept():
    assert not_kept(XSD + b"duration")
    assert not_kept(b"http://www.openlinksw.com/schemas/virtrdf#Geometry")
    assert not not_kept(XSD + b"date")
