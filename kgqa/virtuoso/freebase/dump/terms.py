"""Checks the IRIs and literals of a dump, with pyoxigraph's parser where regular expressions cannot decide.

Each check takes a term as written in the dump and returns the reason to drop the line, or None if the term is valid.
"""

from __future__ import annotations

import re

import pyoxigraph as ox

# Virtuoso silently cuts IRIs after 1,879 bytes, so IRIs that differ only after these bytes would become the same IRI
MAX_IRI_BYTES = 1800

MALFORMED_IRI = "malformed IRI"
LONG_IRI = f"IRI longer than {MAX_IRI_BYTES:,} bytes"
BAD_ESCAPE = "invalid escape"
CONTROL = "control character"
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
_escapes = re.compile(rb"(?:[^\\]++|\\[tnr\"'\\bf]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*+").fullmatch
_control = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]").search
_tag = re.compile(rb"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*+").fullmatch


def wrong_iri(term: bytes) -> str | None:
    """Check an IRI in its angle brackets."""
    if len(term) > MAX_IRI_BYTES + 2:
        return LONG_IRI
    if _plain_iri(term):
        return None
    if not _scheme(term) or _never_in_iri(term, 1, len(term) - 1):
        return MALFORMED_IRI
    return None if _parses(term) else MALFORMED_IRI


def wrong_text(text: bytes) -> str | None:
    """Check the text between the quotes of a literal."""
    if b"\\" in text:
        if not _escapes(text):
            return BAD_ESCAPE
        if b"\\b" in text or b"\\f" in text or b"\\u" in text or b"\\U" in text:
            return _wrong_code_points(text)
    return CONTROL if _control(text) else None


def _wrong_code_points(text: bytes) -> str | None:
    control = False
    for escape in re.finditer(rb"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", text, re.DOTALL):
        kind = escape[1][:1]
        if kind in b"bf":
            control = True
        elif kind in b"uU":
            code = int(escape[1][1:], 16)
            if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
                return BAD_ESCAPE
            # XML cannot represent these characters, so query results in XML would be malformed
            control = control or (code < 0x20 and code not in (0x09, 0x0A, 0x0D)) or code == 0x7F
    return CONTROL if control or _control(text) else None


def wrong_tag(tag: bytes) -> str | None:
    """Check that a language tag, given without the leading `@`, is well-formed."""
    if _plain_tag(tag):
        return None
    return None if _tag(tag) and _parses(b'"x"@' + tag) else BAD_TAG


def wrong_datatype(term: bytes) -> str | None:
    """Check the IRI of a datatype in its angle brackets."""
    return wrong_iri(term) or (None if _parses(b'"x"^^' + term) else BAD_DATATYPE)


def _parses(term: bytes) -> bool:
    try:
        return len(list(ox.parse(b"<x:s> <x:p> " + term + b" .", format=ox.RdfFormat.N_TRIPLES))) == 1
    except (SyntaxError, ValueError):
        return False
