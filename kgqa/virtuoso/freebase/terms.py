"""Checks IRIs and literals of a dump, with pyoxigraph's parser where regular expressions cannot decide.

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
_tag = re.compile(rb"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*+").fullmatch
_HEX4 = rb"[0-9A-Fa-f]{4}"
_NO_SURROGATE = rb"(?![dD][89a-fA-F])" + _HEX4
# text whose escapes are all defined and name code points of Unicode
_escapes = re.compile(
    rb"(?:[^\\]++|\\[tnr\"'\\bf]|\\u%s|\\U0000%s|\\U00(?:0[1-9a-fA-F]|10)%s)*+"
    % (_NO_SURROGATE, _NO_SURROGATE, _HEX4)
).fullmatch
# text with valid escapes and without control characters, which results in XML cannot represent
_printable = re.compile(
    rb"(?:[^\\\x00-\x08\x0b-\x1f\x7f]++|\\[tnr\"'\\]|\\(?:u|U0000)(?!000[0-8bBcCeEfF]|001|007[fF])%s|\\U(?!0000)%s%s)*+"
    % (_HEX4, _HEX4, _HEX4)
).fullmatch


def wrong_iri(term: bytes) -> str | None:
    """Check an IRI in its angle brackets."""
    if len(term) > MAX_IRI_BYTES + 2:
        return LONG_IRI
    if _plain_iri(term):
        return None
    plausible = _scheme(term) and not _never_in_iri(term, 1, len(term) - 1)
    return None if plausible and _parses(term) else MALFORMED_IRI


def wrong_text(text: bytes) -> str | None:
    """Check the text between the quotes of a literal."""
    if not _escapes(text):
        return BAD_ESCAPE
    return None if _printable(text) else CONTROL


def wrong_tag(tag: bytes) -> str | None:
    """Check that a language tag, given without the leading `@`, is well-formed."""
    return None if _plain_tag(tag) or (_tag(tag) and _parses(b'"x"@' + tag)) else BAD_TAG


def wrong_datatype(term: bytes) -> str | None:
    """Check the IRI of a datatype in its angle brackets."""
    return BAD_DATATYPE if wrong_iri(term) or not _parses(b'"x"^^' + term) else None


def _parses(term: bytes) -> bool:
    try:
        return len(list(ox.parse(b"<x:s> <x:p> " + term + b" .", format=ox.RdfFormat.N_TRIPLES))) == 1
    except (SyntaxError, ValueError):
        return False
