"""A slow reference implementation of cleaning, based on the parser of pyoxigraph.

Shares no code and no regular expression with the tested implementation.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation

import pyoxigraph as ox

XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGERS = {"integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"} | {
    "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"
}  # fmt: skip
NOT_KEPT = ("duration", "dayTimeDuration", "yearMonthDuration")
MIB = 1 << 20


def expected_triple(line: bytes, languages: tuple[str, ...], noise: list[str]) -> ox.Triple | None:
    """Return the triple that a line (without newline) should leave, or None if it should be dropped.

    Args:
        noise: prefixes of the IRIs of noise predicates.
    """
    if line.count(b"\t") >= 2 and _is_noise(line.split(b"\t")[1].strip(b" "), noise):
        return None
    if len(line) > MIB:
        return None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return None
    text = text.rstrip("\r\t ")
    if _parsed(text) is None:
        text = _with_quotes(text)
    triple = _parsed(text)
    if triple is None or any(isinstance(term, (ox.BlankNode, ox.Triple)) for term in triple):
        return None
    if any(f"{triple.predicate.value}>".startswith(prefix) for prefix in noise):
        return None
    if not _iris_as_written(text, triple):
        return None
    if isinstance(triple.object, ox.NamedNode):
        return triple
    value = _value(text, triple.object, languages)
    return value and ox.Triple(triple.subject, triple.predicate, value)


def _is_noise(column: bytes, noise: list[str]) -> bool:
    return column.endswith(b">") and any(column.startswith(b"<" + prefix.encode()) for prefix in noise)


def _parsed(text: str) -> ox.Triple | None:
    if "\r" in text:
        return None
    try:
        quads = list(ox.parse(text.encode("utf-8"), format=ox.RdfFormat.N_TRIPLES))
    except (SyntaxError, ValueError):
        return None
    return quads[0].triple if len(quads) == 1 else None


def _with_quotes(text: str) -> str:
    """Return the line with quotes around an object that is a bare number or truth value."""
    found = re.search(r"(?<=[> \t])([^ \t<>\"]+?)([ \t]*\.[ \t]*(?:#.*)?)\Z", text)
    if not found:
        return text
    bare = found[1]
    if bare in ("true", "false"):
        kind = "boolean"
    elif re.fullmatch(r"[+-]?\d+", bare, re.ASCII):
        kind = "integer"
    elif re.fullmatch(r"[+-]?\d*\.\d+", bare, re.ASCII):
        kind = "decimal"
    elif re.search("[eE]", bare) and _is_float(bare):
        kind = "double"
    else:
        return text
    return f'{text[: found.start(1)]}"{bare}"^^<{XSD}{kind}>{found[2]}'


def _iris_as_written(text: str, triple: ox.Triple) -> bool:
    """Return whether all IRIs are written without escapes and short enough for the server."""
    iris = [triple.subject, triple.predicate]
    if isinstance(triple.object, ox.NamedNode):
        iris.append(triple.object)
    elif triple.object.datatype.value not in (XSD + "string", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"):
        iris.append(triple.object.datatype)
    return all(f"<{iri.value}>" in text and len(iri.value.encode()) <= 1800 for iri in iris)


def _value(text: str, value: ox.Literal, languages: tuple[str, ...]) -> ox.Literal | None:
    if any((ord(c) < 0x20 and c not in "\t\n\r") or c == "\x7f" for c in value.value):
        return None
    if value.language is not None:
        if re.search(r'"@[A-Za-z0-9-]*--', text):  # a direction: RDF 1.2
            return None
        tag = value.language.lower()
        wanted = languages == ("all",) or any(tag == each or tag.startswith(each + "-") for each in languages)
        return ox.Literal(value.value, language=tag) if wanted else None
    datatype = value.datatype.value
    if datatype == "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral" or "/virtrdf#" in datatype:
        return None
    if not datatype.startswith(XSD):
        return value
    kind = datatype.removeprefix(XSD)
    if kind in NOT_KEPT:
        return None
    # an escape in a number or a date is an error
    if kind != "string" and f'"{value.value}"' not in text and kind in {*INTEGERS, *CHECKS}:
        return None
    if kind in INTEGERS:
        return value if re.fullmatch(r"[+-]?[0-9]{1,38}", value.value) else None
    if kind in CHECKS and not CHECKS[kind](value.value):
        if kind == "dateTime" and value.value.startswith("T"):
            return _time_of_day(value.value[1:])
        return None
    return value


def _time_of_day(clock: str) -> ox.Literal | None:
    body, zone = _without_zone(clock)
    if len(body) == 5:
        body += ":00"
    ok = _is_clock(body) and not body.startswith("24")
    return ox.Literal(body + zone, datatype=ox.NamedNode(XSD + "time")) if ok else None


def _without_zone(text: str) -> tuple[str, str]:
    found = re.search(r"(Z|[+-]\d\d:\d\d)\Z", text, re.ASCII)
    if not found or (found[1] != "Z" and (int(found[1][1:3]) > 19 or int(found[1][4:]) > 59)):
        return text, ""
    return text[: found.start()], found[1]


def _is_clock(text: str, *, seconds: bool = True) -> bool:
    if text in ("24:00:00", "24:00"):
        return True
    shape = r"\d\d:\d\d:\d\d(\.\d{1,12})?" if seconds else r"\d\d:\d\d(:\d\d(\.\d{1,12})?)?"
    if not re.fullmatch(shape, text, re.ASCII):
        return False
    hour, minute, *rest = text.split(":")
    return int(hour) < 24 and int(minute) < 60 and (not rest or float(rest[0]) < 60)


def _is_day(text: str) -> bool:
    """Return whether the text is a date such as `2012-02-29`, with a year of 4 to 6 digits, possibly negative."""
    found = re.fullmatch(r"-?(\d{4,6})-(\d\d)-(\d\d)", text, re.ASCII)
    if not found:
        return False
    try:
        datetime.date(2000, int(found[2]), int(found[3]))  # 2000 is a leap year: the year itself is not checked
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    day, letter, clock = _without_zone(text)[0].partition("T")
    return letter == "T" and _is_day(day) and _is_clock(clock, seconds=False)


def _is_year(text: str) -> bool:
    return re.fullmatch(r"-?\d{4,6}", _without_zone(text)[0], re.ASCII) is not None


def _is_float(text: str) -> bool:
    if text in ("INF", "+INF", "-INF", "NaN"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    exponent = re.split("[eE]", text)[1:]
    return set(text) <= set("0123456789+-.eE") and all(len(each.lstrip("+-")) <= 3 for each in exponent)


def _is_decimal(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    whole, _, fraction = text.lstrip("+-").partition(".")
    return set(text) <= set("0123456789+-.") and len(whole) <= 38 and len(fraction) <= 38


CHECKS = {
    "date": lambda text: _is_day(_without_zone(text)[0]),
    "dateTime": _is_date_time,
    "time": lambda text: _is_clock(_without_zone(text)[0]),
    "gYear": _is_year,
    "gYearMonth": lambda text: _is_day(_without_zone(text)[0] + "-01"),
    "gMonth": lambda text: (
        _without_zone(text)[0].startswith("--") and _is_day("2000" + _without_zone(text)[0][1:] + "-01")
    ),
    "gMonthDay": lambda text: _without_zone(text)[0].startswith("--") and _is_day("2000" + _without_zone(text)[0][1:]),
    "gDay": lambda text: _without_zone(text)[0].startswith("---") and _is_day("2000-01" + _without_zone(text)[0][2:]),
    "boolean": lambda text: text in ("true", "false", "1", "0"),
    "decimal": _is_decimal,
    "double": _is_float,
    "float": _is_float,
}
