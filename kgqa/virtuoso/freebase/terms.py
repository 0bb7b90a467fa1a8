"""Checks IRIs, literals and typed values of a dump.

Each check of a term takes the term as written in the dump and returns the reason to drop the line, or None if the term
is valid; pyoxigraph's parser decides where regular expressions cannot.

Observed with Virtuoso 7.2.5: the loader stores "twelve"^^xsd:integer as 0, numbers of more than 40 digits as infinity,
and durations as numbers. At an invalid XML literal or a geometry, it stops reading the file.
"""

from __future__ import annotations

import re

import pyoxigraph as ox

# Virtuoso silently cuts IRIs after 1,879 bytes, so IRIs that differ only after these bytes would become the same IRI
MAX_IRI_BYTES = 1800

MALFORMED_IRI = "malformed IRI"
BAD_TAG = "malformed language tag"
BAD_DATATYPE = "malformed datatype"

_PATH = rb"[A-Za-z0-9\-._~!$&'()*+,;=:@/]*+(?:%[0-9A-Fa-f]{2}[A-Za-z0-9\-._~!$&'()*+,;=:@/]*+)*+"
_QUERY = _PATH.replace(b"@/]", b"@/?]")
PLAIN_IRI = (
    # the form of nearly all IRIs comes first, because it then matches in half the time
    rb"<(?:http://rdf\.freebase\.com/ns/[A-Za-z0-9_.\-]++|"
    rb"https?://[A-Za-z0-9.\-]++(?::[0-9]++)?(?:/" + _PATH + rb")?(?:\?" + _QUERY + rb")?(?:#" + _QUERY + rb")?)>"
)
"""A regular expression that matches only valid IRIs, among them most IRIs of the dump."""
PLAIN_TAG = rb"[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
"""A regular expression that matches only valid language tags, in lower case and without the `@`."""

_plain_iri = re.compile(PLAIN_IRI).fullmatch
_plain_tag = re.compile(PLAIN_TAG, re.IGNORECASE).fullmatch
_never_in_iri = re.compile(rb'[\x00-\x20<>"{}|^`\\\x7f]|%(?![0-9A-Fa-f]{2})').search
_scheme = re.compile(rb"<[A-Za-z][A-Za-z0-9+.\-]*:").match
_tag = re.compile(rb"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*+").fullmatch
_HEX4 = rb"[0-9A-Fa-f]{4}"
_NO_SURROGATE = rb"(?![dD][89a-fA-F])" + _HEX4
# text whose escapes are all defined and name code points of Unicode
_escapes = re.compile(
    rb"(?:[^\\]++|\\[tnr\"'\\bf]|\\u%s|\\U0000%s|\\U00(?:0[1-9a-fA-F]|10)%s)*+" % (_NO_SURROGATE, _NO_SURROGATE, _HEX4)
).fullmatch
# text with valid escapes and without control characters, which results in XML cannot represent
_printable = re.compile(
    rb"(?:[^\\\x00-\x08\x0b-\x1f\x7f]++|\\[tnr\"'\\]|\\(?:u|U0000)(?!000[0-8bBcCeEfF]|001|007[fF])%s|\\U(?!0000)%s%s)*+"
    % (_HEX4, _HEX4, _HEX4)
).fullmatch

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


def wrong_iri(term: bytes) -> str | None:
    """Return what is wrong with an IRI, given with its angle brackets; None if it is valid."""
    if len(term) > MAX_IRI_BYTES + 2:
        return f"IRI longer than {MAX_IRI_BYTES:,} bytes"
    if _plain_iri(term):
        return None
    plausible = _scheme(term) and not _never_in_iri(term, 1, len(term) - 1)
    return None if plausible and _parses(term) else MALFORMED_IRI


def wrong_text(text: bytes) -> str | None:
    """Return what is wrong with the text between the quotes of a literal; None if it is valid."""
    if not _escapes(text):
        return "invalid escape"
    return None if _printable(text) else "control character"


def wrong_tag(tag: bytes) -> str | None:
    """Check that a language tag, given without the leading `@`, is well-formed."""
    return None if _plain_tag(tag) or (_tag(tag) and _parses(b'"x"@' + tag)) else BAD_TAG


def wrong_datatype(term: bytes) -> str | None:
    """Check the IRI of a datatype in its angle brackets; the server changes values of some datatypes."""
    if wrong_iri(term) or not _parses(b'"x"^^' + term):
        return BAD_DATATYPE
    return "datatype the server does not keep" if term[1:].startswith(_NOT_KEPT) else None


def _parses(term: bytes) -> bool:
    try:
        return len(list(ox.parse(b"<x:s> <x:p> " + term + b" .", format=ox.RdfFormat.N_TRIPLES))) == 1
    except (SyntaxError, ValueError):
        return False


def fits(value: bytes, datatype: bytes) -> bool:
    """Tell whether a value fits a datatype (an IRI without brackets); unknown datatypes fit every value."""
    form = _FITS.get(datatype)
    return form is None or form(value) is not None


def time_of_day(value: bytes, datatype: bytes) -> bytes | None:
    """Return a time of day such as `T12:30`, a dateTime in the dump, as a `time` literal; None for other values."""
    match = _TIME_OF_DAY(value) if datatype == XSD + b"dateTime" else None
    return b'"%s%s%s"^^<%stime>' % (match[1], match[2] or b":00", match[3], XSD) if match else None


def number_type(bare: bytes) -> bytes | None:
    """Return the datatype (an IRI without brackets) of an unquoted number or boolean; None for other values."""
    match = _BARE(bare)
    return XSD + str(match.lastgroup).encode() if match else None


def form_of(*names: str) -> bytes:
    """Return a regular expression for valid literals of these XML Schema datatypes, such as `gYear`."""
    return b"|".join(rb'"(?:%s)"\^\^<%s%s>' % (_FORMS[n.encode()], re.escape(XSD), n.encode()) for n in names)
