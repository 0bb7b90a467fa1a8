"""Decides whether each line of a dump is kept, repaired or dropped, and gives the reason."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from kgqa.virtuoso.freebase.terms import (
    BAD_DATATYPE,
    BAD_TAG,
    MALFORMED_IRI,
    fits,
    number_type,
    time_of_day,
    wrong_datatype,
    wrong_iri,
    wrong_tag,
    wrong_text,
)

# the server takes minutes for longer lines, and silently drops lines of 10 MB or more
MAX_LINE_BYTES = 1 << 20
MAX_KNOWN = 100_000

NOT_UTF8 = "not UTF-8"
NOT_TRIPLE = "not three terms"
BLANK_NODE = "blank node"
QUOTE = "unescaped quote"
MISFIT = "value does not fit its datatype"
UNSURE = ""
ALL_LANGUAGES = ("all",)

_TERM = rb"(?:<[^>\t]*>|_:[^ \t<\"]+)"
_END = rb"[ \t]*\.[ \t\r]*(?:#.*)?"
_subject_predicate = re.compile(rb"[ \t]*(%s)[ \t]*(%s)[ \t]*(.*)" % (_TERM, _TERM), re.DOTALL).fullmatch
_term = re.compile(_TERM).fullmatch
_end = re.compile(_END, re.DOTALL).fullmatch
_iri_object = re.compile(rb"(<[^>]*>)(.*)", re.DOTALL).fullmatch
_literal = re.compile(rb'"((?:[^"\\]++|\\.)*+)"(.*)', re.DOTALL).fullmatch
_suffix = re.compile(rb"[ \t]*(?:@([^ \t.^\"<]*)|\^\^[ \t]*(<[^>]*>))?(%s)" % _END, re.DOTALL).fullmatch
_bare_object = re.compile(rb"([^ \t\"<]+?)(%s)" % _END, re.DOTALL).fullmatch


@lru_cache(maxsize=1)
def noise_rules() -> dict[str, tuple[str, ...]]:
    """Return the prefixes of the predicates of each bundled rule; a whole predicate ends with ">"."""
    data = tomllib.loads((files("kgqa.virtuoso.freebase") / "freebase_dump.toml").read_text(encoding="utf-8"))

    def iri(short: str) -> str:
        prefix, _, local = short.partition(":")
        return f"{data['prefixes'][prefix]}{local}"

    return {
        rule["name"]: (
            *(f"{iri(predicate)}>" for predicate in rule.get("predicates", ())),
            *map(iri, rule.get("prefixes", ())),
        )
        for rule in data["drop"]
    }


@dataclass(frozen=True)
class Cleaning:
    """Which lines of a dump to keep.

    Args:
        languages: language tags, in lower case, of the literals to keep. A tag includes its regional variants (`en`
            keeps `en-us`); `("all",)` keeps every language. Literals without a tag are always kept.
        keep_noise: whether the predicates of the noise rules are kept.
    """

    languages: tuple[str, ...] = ("en",)
    keep_noise: bool = False

    def wants_language(self, tag: str) -> bool:
        """Tell whether literals with this language tag, in lower case, are kept."""
        return self.languages == ALL_LANGUAGES or any(
            tag == language or tag.startswith(language + "-") for language in self.languages
        )

    def noise(self, predicate: str) -> str | None:
        """Return why lines with this predicate are dropped; None if they are kept."""
        rules = () if self.keep_noise else noise_rules().items()
        return next((f"noise: {name}" for name, prefixes in rules if f"{predicate}>".startswith(prefixes)), None)


class Dropped(Exception):
    """A line is dropped; the message is the reason."""


class Reasons(dict[bytes, str | None]):
    """Map from terms to the reason to drop their lines, or None; a new term is decided once and remembered."""

    def __init__(self, decide: Callable[[bytes], str | None]) -> None:
        self._decide = decide

    def __missing__(self, term: bytes) -> str | None:
        if len(self) >= MAX_KNOWN:  # bounds the memory for a dump that never repeats a term
            self.clear()
        self[term] = self._decide(term)
        return self[term]


class LineJudge:
    """Decides on lines of a dump, one at a time, and remembers decisions on predicates, language tags and datatypes.

    Args:
        cleaning: which lines to keep.
    """

    def __init__(self, cleaning: Cleaning) -> None:
        self._cleaning = cleaning
        self.predicates = Reasons(self._wrong_predicate)
        """The reason is UNSURE for predicates that are not plain terms, for which the whole line decides."""
        self.tags = Reasons(self._unwanted_tag)
        """The tags are in lower case."""
        self._datatypes = Reasons(wrong_datatype)

    def line(self, line: bytes) -> tuple[bytes, str]:
        """Clean a line, given without its newline.

        Returns:
            The line to write, without a newline, and what was repaired; "" if nothing was.

        Raises:
            Dropped: the line is dropped.
        """
        columns = line.split(b"\t", 2)
        self._drop_noise(columns)
        # usually tabs separate the terms, but blanks or nothing may
        if len(columns) < 3 or not all(_term(column.strip(b" ")) for column in columns[:2]):
            match = _subject_predicate(line)
            columns = list(match.groups()) if match else []
            self._drop_noise(columns)
        if len(line) > MAX_LINE_BYTES:
            raise Dropped("longer than 1 MiB")
        if line.lstrip(b" \t\r")[:1] in (b"", b"#"):
            raise Dropped("empty line or comment")
        if not columns:
            raise Dropped(NOT_TRIPLE)
        subject, predicate = (_resource(column.strip(b" ")) for column in columns[:2])
        value, repair = self._object(columns[2].lstrip(b" \t"))
        cleaned = b"\t".join((subject, predicate, value, b"."))
        if not is_utf8(cleaned):
            raise Dropped(NOT_UTF8)
        return cleaned, repair

    def _drop_noise(self, columns: list[bytes]) -> None:
        reason = self.predicates[columns[1]] if len(columns) == 3 else None
        if reason:
            raise Dropped(reason)

    def _wrong_predicate(self, column: bytes) -> str | None:
        term = column.strip(b" ")
        named = term.startswith(b"<") and term.endswith(b">")
        noise = self._cleaning.noise(term[1:-1].decode("utf-8", "replace")) if named else None
        return noise or (UNSURE if wrong_iri(column) else None)

    def _unwanted_tag(self, tag: bytes) -> str | None:
        return wrong_tag(tag) or (None if self._cleaning.wants_language(tag.decode()) else "other language")

    def _object(self, rest: bytes) -> tuple[bytes, str]:
        """Clean the object of a line, which is followed by the final dot; return it and what was repaired."""
        if rest.startswith(b"<"):
            iri = _iri_object(rest)
            if iri is None:
                raise Dropped(MALFORMED_IRI)
            _drop_if(wrong_iri(iri[1]) if _end(iri[2]) else NOT_TRIPLE)
            return iri[1], ""
        if rest.startswith(b'"'):
            return self._literal(rest)
        bare = _bare_object(rest)
        if bare and bare[1].startswith(b"_:"):
            raise Dropped(BLANK_NODE)
        datatype = number_type(bare[1]) if bare else None
        if bare is None or datatype is None:
            raise Dropped(NOT_TRIPLE)
        if not fits(bare[1], datatype):
            raise Dropped(MISFIT)
        return b'"%s"^^<%s>' % (bare[1], datatype), "quotes around a number or truth value"

    def _literal(self, rest: bytes) -> tuple[bytes, str]:
        literal = _literal(rest)
        if literal is None:
            raise Dropped(QUOTE)
        text, tail = literal.groups()
        suffix = _suffix(tail)
        if suffix is None:
            mark = tail.lstrip(b" \t")[:1]
            raise Dropped(QUOTE if b'"' in tail else {b"@": BAD_TAG, b"^": BAD_DATATYPE}.get(mark, NOT_TRIPLE))
        _drop_if(wrong_text(text))
        tag, datatype, _ = suffix.groups()
        if tag is not None:
            _drop_if(self.tags[tag.lower()])
            return b'"%s"@%s' % (text, tag.lower()), "" if tag == tag.lower() else "language tag in small letters"
        if datatype is None:
            return b'"%s"' % text, ""
        _drop_if(self._datatypes[datatype])
        if fits(text, datatype[1:-1]):
            return b'"%s"^^%s' % (text, datatype), ""
        time = time_of_day(text, datatype[1:-1])
        if time is None:
            raise Dropped(MISFIT)
        return time, "time of day typed as time"


def _drop_if(reason: str | None) -> None:
    if reason:
        raise Dropped(reason)


def _resource(term: bytes) -> bytes:
    """Return a subject or predicate if it is valid."""
    if term.startswith(b"_:"):
        raise Dropped(BLANK_NODE)
    _drop_if(wrong_iri(term) if term.startswith(b"<") else NOT_TRIPLE)
    return term


def is_utf8(data: bytes) -> bool:
    """Tell whether these bytes are UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
