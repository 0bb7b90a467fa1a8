"""Decides whether each line of a dump is kept, repaired or dropped, and gives the reason."""

from __future__ import annotations

import re
from typing import NamedTuple

from kgqa.virtuoso.freebase.dump.rules import Cleaning
from kgqa.virtuoso.freebase.dump.terms import (
    BAD_DATATYPE,
    BAD_TAG,
    MALFORMED_IRI,
    wrong_datatype,
    wrong_iri,
    wrong_tag,
    wrong_text,
)
from kgqa.virtuoso.freebase.dump.values import fits, not_kept, number_type, time_of_day

# the server takes minutes for longer lines, and silently drops lines of 10 MB or more
MAX_LINE_BYTES = 1 << 20
MAX_KNOWN = 100_000

TOO_LONG = "longer than 1 MiB"
EMPTY = "empty line or comment"
NOT_UTF8 = "not UTF-8"
NOT_TRIPLE = "not three terms"
BLANK_NODE = "blank node"
QUOTE = "unescaped quote"
REFUSED = "datatype the server does not keep"
MISFIT = "value does not fit its datatype"
OTHER_LANGUAGE = "other language"

QUOTES_ADDED = "quotes around a number or truth value"
TIME_TYPED = "time of day typed as time"
TAG_LOWERED = "language tag in small letters"

_TERM = rb"(?:<[^>\t]*>|_:[^ \t<\"]+)"
_END = rb"[ \t]*\.[ \t\r]*(?:#.*)?"
_subject_predicate = re.compile(rb"[ \t]*(%s)[ \t]*(%s)[ \t]*(.*)" % (_TERM, _TERM), re.DOTALL).fullmatch
_term = re.compile(_TERM).fullmatch
_end = re.compile(_END, re.DOTALL).fullmatch
_iri_object = re.compile(rb"(<[^>]*>)(.*)", re.DOTALL).fullmatch
_literal = re.compile(rb'"((?:[^"\\]++|\\.)*+)"(.*)', re.DOTALL).fullmatch
_suffix = re.compile(rb"[ \t]*(?:@([^ \t.^\"<]*)|\^\^[ \t]*(<[^>]*>))?(%s)" % _END, re.DOTALL).fullmatch
_bare_object = re.compile(rb"([^ \t\"<]+?)(%s)" % _END, re.DOTALL).fullmatch


class Verdict(NamedTuple):
    """The decision on a line of the dump.

    Attributes:
        kept: the line to write, without a newline; None if the line is dropped.
        reason: why the line is dropped.
        repair: what was repaired in a kept line.
    """

    kept: bytes | None = None
    reason: str = ""
    repair: str = ""


class LineJudge:
    """Decides on lines of a dump, one at a time, and caches decisions on predicates and language tags.

    Args:
        cleaning: which lines to keep.
    """

    def __init__(self, cleaning: Cleaning) -> None:
        self._cleaning = cleaning
        self._datatypes: dict[bytes, str | None] = {}
        self.predicates: dict[bytes, str | None] = {}
        """Map from each known predicate to the reason why its lines are dropped; None if they are kept."""
        self.tags: dict[bytes, str | None] = {}
        """Map from each known language tag, in lower case, to the reason why its literals are dropped, or None."""

    def line(self, line: bytes) -> Verdict:
        """Decide on a line, given without its newline."""
        columns = line.split(b"\t", 2)
        noise = self._noise(columns[1]) if len(columns) == 3 else None
        # three columns, of which each of the first two is one term; otherwise, blanks may separate the columns
        if noise is None and not (len(columns) == 3 and all(_term(column.strip(b" ")) for column in columns[:2])):
            match = _subject_predicate(line)
            columns = list(match.groups()) if match else []
            noise = self._noise(columns[1]) if columns else None
        if noise:
            return Verdict(reason=noise)
        if len(line) > MAX_LINE_BYTES:
            return Verdict(reason=TOO_LONG)
        if line.lstrip(b" \t\r")[:1] in (b"", b"#"):
            return Verdict(reason=EMPTY)
        if not columns:
            return Verdict(reason=NOT_TRIPLE)
        subject, predicate, rest = columns[0].strip(b" "), columns[1].strip(b" "), columns[2]
        wrong = _wrong_resource(subject) or _wrong_resource(predicate)
        return Verdict(reason=wrong) if wrong else self.rest(subject, predicate, rest)

    def rest(self, subject: bytes, predicate: bytes, rest: bytes) -> Verdict:
        """Decide on a line with a valid subject and predicate; `rest` is the text from the object to the end."""
        found = self._object(rest.lstrip(b" \t"))
        if found.kept is None:
            return found
        line = b"\t".join((subject, predicate, found.kept, b"."))
        return Verdict(line, repair=found.repair) if is_utf8(line) else Verdict(reason=NOT_UTF8)

    def _noise(self, predicate: bytes) -> str | None:
        """Return why all lines with this predicate are dropped; None if they may be kept."""
        if predicate not in self.predicates:
            term = predicate.strip(b" ")
            named = term.startswith(b"<") and term.endswith(b">")
            noise = self._cleaning.noise(term[1:-1].decode("utf-8", "replace")) if named else None
            if noise is None and wrong_iri(predicate):
                return None  # not cached, because the whole line is checked
            _remember(self.predicates, predicate, noise)
        return self.predicates[predicate]

    def _object(self, rest: bytes) -> Verdict:
        """Decide on the object and the final dot of a line; `kept` of the result has only the object."""
        if rest.startswith(b"<"):
            iri = _iri_object(rest)
            if iri is None:
                return Verdict(reason=MALFORMED_IRI)
            wrong = wrong_iri(iri[1]) if _end(iri[2]) else NOT_TRIPLE
            return Verdict(reason=wrong) if wrong else Verdict(iri[1])
        if rest.startswith(b'"'):
            return self._literal(rest)
        bare = _bare_object(rest)
        if bare is None:
            return Verdict(reason=NOT_TRIPLE)
        if bare[1].startswith(b"_:"):
            return Verdict(reason=BLANK_NODE)
        datatype = number_type(bare[1])
        if datatype is None:
            return Verdict(reason=NOT_TRIPLE)
        if not fits(bare[1], datatype):
            return Verdict(reason=MISFIT)
        return Verdict(b'"%s"^^<%s>' % (bare[1], datatype), repair=QUOTES_ADDED)

    def _literal(self, rest: bytes) -> Verdict:
        literal = _literal(rest)
        if literal is None:
            return Verdict(reason=QUOTE)
        text, tail = literal.groups()
        suffix = _suffix(tail)
        if suffix is None:
            return Verdict(reason=_wrong_suffix(tail))
        wrong = wrong_text(text)
        if wrong:
            return Verdict(reason=wrong)
        tag, datatype, _ = suffix.groups()
        if tag is not None:
            return self._tagged(text, tag)
        if datatype is not None:
            return self._typed(text, datatype)
        return Verdict(b'"%s"' % text)

    def _tagged(self, text: bytes, tag: bytes) -> Verdict:
        lower = tag.lower()
        if lower not in self.tags:
            wrong = wrong_tag(lower)
            if wrong is None and not self._cleaning.wants_language(lower.decode()):
                wrong = OTHER_LANGUAGE
            _remember(self.tags, lower, wrong)
        wrong = self.tags[lower]
        if wrong:
            return Verdict(reason=wrong)
        return Verdict(b'"%s"@%s' % (text, lower), repair="" if tag == lower else TAG_LOWERED)

    def _typed(self, text: bytes, datatype: bytes) -> Verdict:
        if datatype not in self._datatypes:
            wrong = BAD_DATATYPE if wrong_datatype(datatype) else None
            _remember(self._datatypes, datatype, REFUSED if wrong is None and not_kept(datatype[1:-1]) else wrong)
        wrong = self._datatypes[datatype]
        if wrong:
            return Verdict(reason=wrong)
        if fits(text, datatype[1:-1]):
            return Verdict(b'"%s"^^%s' % (text, datatype))
        time = time_of_day(text, datatype[1:-1])
        return Verdict(time, repair=TIME_TYPED) if time else Verdict(reason=MISFIT)


def _wrong_resource(term: bytes) -> str | None:
    """Return why a subject or predicate is invalid; None if it is valid."""
    if term.startswith(b"_:"):
        return BLANK_NODE
    return wrong_iri(term) if term.startswith(b"<") else NOT_TRIPLE


def _wrong_suffix(tail: bytes) -> str:
    """Return why the text after the closing quote of a literal is invalid."""
    if b'"' in tail:
        return QUOTE
    return {b"@": BAD_TAG, b"^": BAD_DATATYPE}.get(tail.lstrip(b" \t")[:1], NOT_TRIPLE)


def _remember(known: dict[bytes, str | None], term: bytes, wrong: str | None) -> None:
    if len(known) >= MAX_KNOWN:  # bounds the memory for a dump that never repeats a term
        known.clear()
    known[term] = wrong


def is_utf8(data: bytes) -> bool:
    """Tell whether these bytes are UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
