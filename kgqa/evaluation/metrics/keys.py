"""Comparison keys of answers and gold answers: entities by id, everything else by value.

A gold answer with an id matches only the entity with this id. A gold answer without an id is a number, a date or a
name: numbers and dates are compared by value (`1996.0` = `1996`, `1945-04-30T00:00:00Z` = `1945-04-30`), names by
`spelling`. A year without month and day is a number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.model import Literal, Named

Key = tuple[str, str]
"""Kind and text: `("id", id of the gold answer or IRI)`, `("number", ...)`, `("date", ...)` or `("name", ...)`."""

MAX_NUMBER_CHARS = 400
_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMERIC = {
    _XSD + name
    for name in [
        "integer",
        "decimal",
        "double",
        "float",
        "int",
        "long",
        "short",
        "byte",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "unsignedInt",
        "unsignedLong",
        "unsignedShort",
        "unsignedByte",
        "gYear",
    ]
}
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*|\d{4})(?:\.\d+)?|[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?)(?:[eE][+-]?\d{1,4})?")
_ZONE = r"(?P<zone>Z|[+-]\d\d:\d\d)?"
_DATE = re.compile(r"\+?(?P<day>-?\d{4,}-\d\d(?:-\d\d)?)(?:T(?P<time>\d\d:\d\d:\d\d(?:\.\d+)?))?" + _ZONE)
_YEAR = re.compile(r"(?P<year>-?\d{4,})" + _ZONE)
_MIDNIGHT = re.compile(r"00:00:00(?:\.0+)?")
_DASH = re.compile("[\u2010-\u2013\u2212]")
_APOSTROPHE = re.compile("['\u2019]")
_SPACED_PERCENT = re.compile(r"(?<=\d)\s+(?=%)")
_EMPHASIS = re.compile(r"(?<!\w)(\*+)(\S(?:.*?\S)?)\1(?!\w)")
_SIGN = re.compile(
    r"((?<![\w.])-(?=\.?\d)"  # -5, but neither 1914-1918 nor F-16
    r"|(?<![^\W\d])\.(?=\d)"  # a decimal point
    r"|(?<=\w)[-+#*%]+(?![-+#*%\w])"  # C++, A-, 50%
    r"|(?<=\w)[+#*%]+(?=\d)|(?<=\d)[+#*%]+(?=\w)|\#(?=\d))"
    r"|[\W_]"
)


def gold_keys(gold: Iterable[GoldAnswer]) -> frozenset[Key]:
    """Return the keys of gold answers: by id, or by value for a gold answer without an id."""
    return frozenset(map(_gold_key, gold))


def _gold_key(answer: GoldAnswer) -> Key:
    if answer.id:
        return "id", answer.id
    return literal_key(Literal(answer.name, answer.datatype)) if answer.datatype else text_key(answer.name)


def alias_keys(gold: Iterable[GoldAnswer]) -> dict[Key, Key]:
    """Map the key of each alias to the key of its gold answer, for gold answers without an id.

    An alias that is the name of another gold answer is left out. An alias that two gold answers share is mapped to the
    first of them.
    """
    known = list(gold)
    own = gold_keys(known)
    found: dict[Key, Key] = {}
    for answer in known:
        for alias in answer.aliases if not answer.id else ():
            if alias.strip() and (key := text_key(alias)) not in own:
                found.setdefault(key, _gold_key(answer))
    return found


def answer_keys(
    answers: Iterable[Named], gold: frozenset[Key], aliases: Mapping[Key, Key] | None = None
) -> frozenset[Key]:
    """Return the keys of answers, for comparison with `gold`.

    The key of an entity is the first of these that applies:

    1. its id or IRI, if `gold` contains it
    2. its name, if `gold` contains it
    3. its IRI, which matches nothing

    Therefore two entities with the same name may get the same key.

    Args:
        gold: result of `gold_keys`.
        aliases: result of `alias_keys`, to accept aliases.
    """
    return frozenset(ordered_keys(answers, gold, aliases))


def ordered_keys(answers: Iterable[Named], gold: frozenset[Key], aliases: Mapping[Key, Key] | None = None) -> list[Key]:
    """Return the distinct keys of answers in their order; see `answer_keys`."""
    return list(dict.fromkeys(_answer_key(answer, gold, aliases or {}) for answer in answers))


def needs_names(gold: frozenset[Key]) -> bool:
    """Whether some gold answer has no id and therefore matches an entity by name."""
    return any(kind != "id" for kind, _ in gold)


def _answer_key(answer: Named, gold: frozenset[Key], aliases: Mapping[Key, Key]) -> Key:
    value = answer.value
    if isinstance(value, Literal):
        key = literal_key(value)
        return aliases.get(key, key)
    for ident in (answer.id, value.iri):
        if ("id", ident) in gold:
            return "id", ident
    key = text_key(answer.name) if answer.name else ("name", "")
    key = aliases.get(key, key)
    return key if key in gold else ("id", value.iri)


def literal_key(literal: Literal) -> Key:
    """Return the key of a literal: a number for numeric datatypes and years, or else the key from `text_key`."""
    text = literal.value.strip()
    if literal.datatype in _NUMERIC:
        year = _YEAR.fullmatch(text) if literal.datatype == _XSD + "gYear" else None
        return _number(year["year"] if year else text) or _name(text)
    return text_key(text)


def text_key(text: str) -> Key:
    """Return the key of a text without datatype: a number, a date, or a name."""
    text = text.strip()
    if len(text) <= MAX_NUMBER_CHARS and text.isascii():
        if _NUMBER.fullmatch(text) and (number := _number(text.replace(",", ""))):
            return number
        if date := _date(text):
            return date
    return _name(text)


def _number(text: str) -> Key | None:
    if len(text) > MAX_NUMBER_CHARS:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > 9999:
        return None  # NaN as a number would not equal itself
    sign, digits, exponent = number.as_tuple()
    bare = "".join(map(str, digits)).lstrip("0")
    short = bare.rstrip("0")
    if not short:
        return "number", "0"
    return "number", f"{'-' if sign else ''}{short}e{int(exponent) + len(bare) - len(short)}"


def _date(text: str) -> Key | None:
    """Return the key of a day, month or time; a time of midnight is dropped, because many files add it to days."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    day, time = match["day"], match["time"]
    if time is None or _MIDNIGHT.fullmatch(time):
        return "date", day
    try:
        moment = datetime.fromisoformat(f"{day}T{time[:15]}{match['zone'] or ''}")
    except ValueError:  # a year before 1, or a day that does not exist
        return "date", f"{day}T{time}"
    if moment.tzinfo:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return "date", moment.isoformat()


def _name(text: str) -> Key:
    """Return the key of a name by `spelling`; a name without letters and digits is its own key."""
    return "name", spelling(text) or text.casefold()


def spelling(text: str) -> str:
    """Normalise a name for comparison: NFKD form, no accents, lower case, words only.

    Unlike `words.normalise`, this function keeps vowel signs (of Indic scripts, for example) and signs that end a word
    or belong to a number: `C++` differs from `C#`, `A+` from `A-`, `-5 °C` from `5 °C`.
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    bare = "".join(c for c in folded if not _is_accent(c))
    bare = _SPACED_PERCENT.sub("", _EMPHASIS.sub(r"\2", _APOSTROPHE.sub("", _DASH.sub("-", bare))))
    return " ".join(_SIGN.sub(_kept, bare).split())


def _kept(match: re.Match[str]) -> str:
    char = match[0]
    return char if match[1] or unicodedata.category(char) in ("Mn", "Mc") else " "


def _is_accent(char: str) -> bool:
    """Whether a combining mark may be left out of a name.

    The combining class decides: accents, Hebrew and Arabic points, and variants are optional; vowel signs and voicing
    marks are not.
    """
    place = unicodedata.combining(char)
    return place == 1 or 10 <= place <= 36 or place >= 200 or "\ufe00" <= char <= "\ufe0f"
