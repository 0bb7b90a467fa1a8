"""Checks whether values of a dump fit their datatype, and whether Virtuoso's loader stores them unchanged.

Observed with Virtuoso 7.2.5: the loader stores "twelve"^^xsd:integer as 0, numbers of more than 40 digits as infinity,
and durations as numbers. At an invalid XML literal or a geometry, it stops reading the file.
"""

from __future__ import annotations

import re

XSD = b"http://www.w3.org/2001/XMLSchema#"
MAX_DIGITS = 38

_ZONE = rb"(?:Z|[+-][01][0-9]:[0-5][0-9])?"
_YEAR = rb"-?[0-9]{4,6}"
_MONTH = rb"(?:0[1-9]|1[0-2])"
_DAY_OF_YEAR = rb"(?:%s-(?:0[1-9]|1[0-9]|2[0-9])|(?:0[13-9]|1[0-2])-30|(?:0[13578]|1[02])-31)" % _MONTH
_SECONDS = rb":[0-5][0-9](?:\.[0-9]{1,12})?"
_CLOCK = rb"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]%s|24:00(?::00)?)"
_DIGITS = rb"[0-9]{1,%d}" % MAX_DIGITS
_INTEGER = rb"[+-]?" + _DIGITS
_REAL = rb"(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|[+-]?INF|NaN)"

_FORMS = {
    b"date": _YEAR + b"-" + _DAY_OF_YEAR + _ZONE,
    # times in the dump have no seconds, and the loader accepts such times
    b"dateTime": _YEAR + b"-" + _DAY_OF_YEAR + b"T" + _CLOCK % (b"(?:" + _SECONDS + b")?") + _ZONE,
    b"time": _CLOCK % _SECONDS + _ZONE,
    b"gYear": _YEAR + _ZONE,
    b"gYearMonth": _YEAR + b"-" + _MONTH + _ZONE,
    b"gMonth": b"--" + _MONTH + _ZONE,
    b"gMonthDay": b"--" + _DAY_OF_YEAR + _ZONE,
    b"gDay": b"---(?:0[1-9]|[12][0-9]|3[01])" + _ZONE,
    b"boolean": b"true|false|1|0",
    b"decimal": rb"[+-]?(?:%s(?:\.[0-9]{0,%d})?|\.%s)" % (_DIGITS, MAX_DIGITS, _DIGITS),
    b"double": _REAL,
    b"float": _REAL,
}
_FORMS |= dict.fromkeys(
    b"integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger "
    b"unsignedInt unsignedLong unsignedShort unsignedByte".split(),
    _INTEGER,
)
_FITS = {XSD + name: re.compile(form).fullmatch for name, form in _FORMS.items()}
_NOT_KEPT = (
    # the loader parses these values, and stops reading the file if a value is invalid
    b"http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral",
    b"http://www.openlinksw.com/schemas/virtrdf#",
    # the loader stores these values as numbers
    XSD + b"duration",
    XSD + b"dayTimeDuration",
    XSD + b"yearMonthDuration",
)

_TIME_OF_DAY = re.compile(rb"T((?:[01][0-9]|2[0-3]):[0-5][0-9])(:[0-5][0-9](?:\.[0-9]{1,12})?)?(%s)" % _ZONE).fullmatch
_BARE = re.compile(
    rb"(?P<boolean>true|false)|(?P<integer>[+-]?[0-9]+)|(?P<decimal>[+-]?[0-9]*\.[0-9]+)"
    rb"|(?P<double>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]{1,3})"
).fullmatch


def not_kept(datatype: bytes) -> bool:
    """Tell whether the loader loses values of this datatype (an IRI without brackets)."""
    return datatype.startswith(_NOT_KEPT)


def fits(value: bytes, datatype: bytes) -> bool:
    """Tell whether a value fits a datatype (an IRI without brackets); unknown datatypes fit every value."""
    form = _FITS.get(datatype)
    return form is None or form(value) is not None


def time_of_day(value: bytes, datatype: bytes) -> bytes | None:
    """Return the `time` literal for a time of day such as `T12:30`, a dateTime in the dump; None for other values."""
    match = _TIME_OF_DAY(value) if datatype == XSD + b"dateTime" else None
    return b'"%s%s%s"^^<%stime>' % (match[1], match[2] or b":00", match[3], XSD) if match else None


def number_type(bare: bytes) -> bytes | None:
    """Return the datatype (an IRI without brackets) of an unquoted number or boolean; None for other values."""
    match = _BARE(bare)
    return XSD + str(match.lastgroup).encode() if match else None


def form_of(*names: str) -> bytes:
    """Return a regular expression for valid literals of these XML Schema datatypes, such as `gYear`."""
    return b"|".join(rb'"(?:%s)"\^\^<%s%s>' % (_FORMS[n.encode()], re.escape(XSD), n.encode()) for n in names)
