"""Reads SPARQL text as tokens, so that queries can be made portable and checked before they run.

The tokens are those of the SPARQL 1.1 grammar (productions 139 to 173), longest match first, so strings,
comments and IRIs are never mistaken for anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kgqa.errors import QueryRejected

_BASE = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_WORD = _BASE + "_0-9"
_CHARS = _WORD + "\u00b7\u0300-\u036f\u203f-\u2040-"
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_PREFIX = rf"(?:[{_BASE}](?:[{_CHARS}.]*[{_CHARS}])?)?"
_LOCAL = rf"(?:[{_WORD}:]|{_PLX})(?:(?:[{_CHARS}.:]|{_PLX})*(?:[{_CHARS}:]|{_PLX}))?"

_TOKEN = re.compile(
    rf"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>\#[^\r\n]*)
  | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*>)
  | (?P<string>\"\"\"(?:\"{{0,2}}(?:[^"\\]|\\.))*\"\"\"|'''(?:'{{0,2}}(?:[^'\\]|\\.))*'''
      |"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*')
  | (?P<variable>[?$][{_WORD}][{_WORD}\u00b7\u0300-\u036f\u203f-\u2040]*)
  | (?P<blank>_:[{_WORD}](?:[{_CHARS}.]*[{_CHARS}])?)
  | (?P<name>{_PREFIX}:(?:{_LOCAL})?)
  | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
  | (?P<number>[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<mark>\^\^|&&|\|\||!=|<=|>=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)")
_CODEPOINT = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SPARQL: `kind` is iri, string, variable, name, word, mark, ...; `text` is as written."""

    kind: str
    text: str


def decode_codepoints(sparql: str) -> str:
    """Resolve `\\uXXXX` escapes, which SPARQL 1.1 (section 19.2) allows anywhere and before all parsing.

    Done first so that a keyword written with escapes is seen for what it is.
    """
    if "\\u" not in sparql and "\\U" not in sparql:
        return sparql

    def char(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return match[0]
        code = int(match[1] or match[2], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF or code < 0x20 or chr(code) in "\"'\\<>":
            return match[0]  # left for the engine: inside a string it is fine, elsewhere it is an error
        return chr(code)

    return _CODEPOINT.sub(char, sparql)


def tokens(sparql: str) -> Iterator[Token]:
    """All tokens of a query, white space and comments included; joined they give the query again."""
    for match in _TOKEN.finditer(sparql):
        yield Token(match.lastgroup or "mark", match[0])


def expand_prefixes(sparql: str) -> str:
    """Write every prefixed name as a full IRI and drop the PREFIX declarations it no longer needs.

    The embedded engine does not parse local names with two or more dots (`ns:people.person.gender`), which
    the standard allows and Freebase is full of. Names whose prefix is not declared, or declared relative to a
    BASE, are left as they are for the engine to judge.
    """
    prefixes: dict[str, str] = {}
    out: list[str] = []
    items = list(tokens(sparql))
    index = 0
    while index < len(items):
        token = items[index]
        if token.kind == "word" and token.text.upper() == "PREFIX":
            name, name_at = _next_solid(items, index + 1)
            iri, iri_at = _next_solid(items, name_at + 1)
            if name and iri and name.kind == "name" and name.text.endswith(":") and iri.kind == "iri":
                prefixes[name.text[:-1]] = iri.text[1:-1]
                if not _ABSOLUTE.match(iri.text[1:]):
                    del prefixes[name.text[:-1]]
                out.extend(item.text for item in items[index : iri_at + 1])
                index = iri_at + 1
                continue
        if token.kind == "name":
            prefix, _, local = token.text.partition(":")
            if prefix in prefixes:
                out.append("<" + prefixes[prefix] + _ESCAPED.sub(r"\1", local) + ">")
                index += 1
                continue
        out.append(token.text)
        index += 1
    return "".join(out)


def _next_solid(items: list[Token], index: int) -> tuple[Token | None, int]:
    while index < len(items) and items[index].kind in ("space", "comment"):
        index += 1
    return (items[index], index) if index < len(items) else (None, index)


def forbid_fetching(sparql: str) -> None:
    """Refuse what would make the engine fetch something from elsewhere: SERVICE in queries, LOAD in updates.

    Raises:
        QueryRejected: one of these keywords stands in the text outside strings, IRIs and comments.
    """
    for token in tokens(sparql):
        if token.kind == "mark" and token.text in ("\\", '"', "'"):
            # never valid here, and an engine that thinks otherwise would see other strings than we do
            raise QueryRejected("Not valid SPARQL: a backslash or a quote that neither opens nor closes anything.")
        if token.kind == "word" and token.text.upper() in ("SERVICE", "LOAD"):
            raise QueryRejected(
                f"{token.text.upper()} is not allowed: kgqa never lets a query fetch from another place. "
                "Load the data with `kgqa graph load` instead."
            )


_KEYWORD_IN_NAME = re.compile(r"(?i)service|silent|load")
_NEEDS_CHECKING = ("service", "load", "define", "bif:", "sql:", "\\u")
_HARMLESS_FUNCTIONS = ("bif:contains",)
_NEEDS_READING = ("prefix", "service", "load", "\\u")


def prepare(sparql: str) -> str:
    """What every query goes through before an engine sees it: checked, escapes resolved, prefixes expanded."""
    _refuse_half_characters(sparql)
    lower = sparql.lower()
    if not any(word in lower for word in _NEEDS_READING):
        return sparql
    sparql = decode_codepoints(sparql)
    forbid_fetching(sparql)
    expanded = expand_prefixes(sparql)
    for token in tokens(expanded):
        # What is still a prefixed name has no absolute declaration. The engine ends such a name at its second dot
        # or at a keyword, so that `ns:a.b.SERVICE` and `SERVICE:x` would be the keyword to it.
        if token.kind == "name" and _KEYWORD_IN_NAME.search(token.text):
            raise QueryRejected(f"The prefix of {token.text[:80]} must be declared with a full IRI.")
    return expanded


def _refuse_functions(sparql: str) -> None:
    """Virtuoso's own functions read files, fetch from other places and run SQL, in a query of anybody."""
    for token in tokens(sparql):
        text = token.text.lower().lstrip("<") if token.kind in ("iri", "name") else ""
        if text.startswith(("bif:", "sql:")) and text.rstrip(">") not in _HARMLESS_FUNCTIONS:
            raise QueryRejected(f"{token.text[:60]} is not allowed: functions of the server can do more than read.")


def _refuse_half_characters(sparql: str) -> None:
    """A lone surrogate, which Python makes of bytes that are no UTF-8, cannot be sent to anybody."""
    if not sparql.isascii():
        try:
            sparql.encode("utf-8")
        except UnicodeEncodeError as error:
            raise QueryRejected(
                "The query holds half a character, made of bytes that are no UTF-8. Correct the text it came from."
            ) from error


_READS_AT_ONCE = re.compile(r"\s*(?:#[^\r\n]*[\r\n]+\s*)*(SELECT|ASK)\b", re.IGNORECASE)


def prepare_for_server(sparql: str, *, reads: str = "") -> str:
    """What a query goes through before a server sees it; gives the text to send, which is the same but for escapes.

    Args:
        reads: SELECT or ASK, where it must be one.

    Raises:
        QueryRejected: SERVICE, LOAD, or Virtuoso's DEFINE, which can make it fetch; or no query of this kind.
    """
    _refuse_half_characters(sparql)
    lower = sparql.lower()
    if any(word in lower for word in _NEEDS_CHECKING):
        sparql = decode_codepoints(sparql)
        forbid_fetching(sparql)
        if any(token.kind == "word" and token.text.upper() == "DEFINE" for token in tokens(sparql)):
            raise QueryRejected("DEFINE is not allowed: it would change what the server does with a query.")
        _refuse_functions(sparql)
    if reads:
        match = _READS_AT_ONCE.match(sparql)
        kind = match[1].upper() if match else _kind(sparql)
        if kind != reads:
            raise QueryRejected(f"A {reads} query is needed here, not {kind or 'this'}.")
    return sparql


def _kind(sparql: str) -> str:
    """The keyword that a query's declarations are followed by."""
    solid = [token for token in tokens(sparql) if token.kind not in ("space", "comment")]
    place = 0
    while place < len(solid) and (word := solid[place].text.upper()) in ("PREFIX", "BASE"):
        place += 3 if word == "PREFIX" else 2
    return solid[place].text.upper() if place < len(solid) else ""


def shorten_iris(sparql: str) -> str:
    """The same query, easier to read: each namespace used at least twice becomes a PREFIX.

    Names are shortened only where the local part needs no escapes. A query with declarations of its own is left
    as it is.
    """
    items = list(tokens(sparql))
    if any(token.kind == "word" and token.text.upper() in ("PREFIX", "BASE") for token in items):
        return sparql
    split = re.compile(rf"<(.+[/#])([{_BASE}0-9_](?:[{_CHARS}.]*[{_CHARS}])?)>")
    spaces: dict[str, int] = {}
    for token in items:
        if token.kind == "iri" and (match := split.fullmatch(token.text)):
            spaces[match[1]] = spaces.get(match[1], 0) + 1
    names = (f"ns{index or ''}" for index in range(len(spaces)))
    prefixes = {space: name for space, name in zip((s for s, n in spaces.items() if n > 1), names)}
    out = []
    for token in items:
        match = split.fullmatch(token.text) if token.kind == "iri" else None
        out.append(f"{prefixes[match[1]]}:{match[2]}" if match and match[1] in prefixes else token.text)
    head = "".join(f"PREFIX {name}: <{space}>\n" for space, name in prefixes.items())
    return head + "".join(out)
