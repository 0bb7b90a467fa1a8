"""SPARQL tokens, and checks and rewrites of queries that work on tokens.

The tokens are those of the SPARQL 1.1 grammar (productions 139 to 173), longest match first. A keyword inside a string,
comment or IRI is therefore never mistaken for a keyword of the query.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgqa.errors import QueryRejected
from kgqa.text.hints import Command
from kgqa.text.words import clean

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
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
    """A token: its kind (iri, string, variable, name, word, mark, ...) and its text as written in the query."""

    kind: str
    text: str


def decode_codepoints(sparql: str) -> str:
    r"""Resolve `\uXXXX` escapes, which SPARQL 1.1 (section 19.2) allows anywhere, before all parsing.

    Queries are decoded before they are checked, because the checks would not find a keyword written with escapes.
    """
    if "\\u" not in sparql and "\\U" not in sparql:
        return sparql

    def char(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return match[0]
        code = int(match[1] or match[2], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF or code < 0x20 or chr(code) in "\"'\\<>":
            return match[0]  # not decoded: valid in a string, and elsewhere an error that the engine reports
        return chr(code)

    return _CODEPOINT.sub(char, sparql)


def tokens(sparql: str) -> Iterator[Token]:
    """Yield all tokens of a query, including white space and comments. Joining their texts gives the query."""
    for match in _TOKEN.finditer(sparql):
        yield Token(match.lastgroup or "mark", match[0])


def expand_prefixes(sparql: str) -> str:
    """Replace every prefixed name by its full IRI.

    The embedded engine does not parse local names with two or more dots (`ns:people.person.gender`), which the standard
    allows and Freebase uses throughout. A name stays as it is if its prefix is not declared, or is declared relative to
    a BASE.
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
    """Refuse queries that would make an engine fetch data: SERVICE in queries, LOAD in updates.

    Raises:
        QueryRejected: one of these keywords occurs outside strings, IRIs and comments, or an engine could read a part
            of an IRI as a part of the query.
    """
    operand, depth = False, 0
    prefixes: set[str] = set()
    for token in tokens(sparql):
        if token.kind in ("space", "comment"):
            continue
        if token.kind == "iri" and operand and depth and _may_be_less(token.text, prefixes):
            raise QueryRejected(
                f"It is not clear whether {clean(token.text[:80])} is an IRI or begins with “less than”.",
                "Write a space after <.",
            )
        if token.kind == "name" and token.text.endswith(":"):
            prefixes.add(token.text[:-1])
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        operand = token.text.lower() in (")", "true", "false") or token.kind not in ("mark", "word")
        if token.kind == "mark" and token.text in ("\\", '"', "'"):
            # never valid here: an engine that accepts it would see strings begin and end elsewhere than this check
            raise QueryRejected("Not valid SPARQL: an unmatched quote, or a backslash outside a string.")
        if token.kind == "word" and token.text.upper() in ("SERVICE", "LOAD"):
            raise QueryRejected(
                f"{token.text.upper()} is not allowed: queries may not fetch data from elsewhere.",
                "Load the data first: ",
                Command("graph load", "FILE"),
            )


_SCHEME = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]*://|([A-Za-z][A-Za-z0-9]*):)")


def _may_be_less(iri: str, prefixes: Collection[str]) -> bool:
    """Return whether an IRI after an operand, read as “less than” and what follows, could hide a part of the query.

    `FILTER(1<2)SERVICE:x#>` contains an IRI by the longest match, but the embedded engine finds the keyword SERVICE.

    Args:
        prefixes: the prefixes that the query declares; a name with another one is not valid.
    """
    scheme = _SCHEME.match(iri)
    return not (scheme and scheme[1] not in prefixes) and any(sign in iri for sign in "()'#")


_KEYWORD_IN_NAME = re.compile(r"(?i)service|silent|load|graph|from")
_NEEDS_CHECKING = ("service", "load", "define", "bif:", "sql:", "\\u")
_HARMLESS_FUNCTIONS = ("bif:contains",)
_NEEDS_READING = ("prefix", "service", "load", "\\u")


def prepare_for_engine(sparql: str) -> str:
    """Check a query for the embedded engine, resolve its escapes, and expand its prefixes.

    Raises:
        QueryRejected: the query fetches data (see `forbid_fetching`), contains a lone surrogate, or uses a prefix that
            is not declared with a full IRI.
    """
    refuse_surrogates(sparql)
    lower = sparql.lower()
    if not any(word in lower for word in _NEEDS_READING):
        return sparql
    sparql = decode_codepoints(sparql)
    forbid_fetching(sparql)
    expanded = expand_prefixes(sparql)
    for token in tokens(expanded):
        # The prefix of a name that was not expanded has no absolute declaration. The engine ends such a name at its
        # second dot or at a keyword, and would find the keyword SERVICE in `ns:a.b.SERVICE` and `SERVICE:x`.
        if token.kind == "name" and _KEYWORD_IN_NAME.search(token.text):
            raise QueryRejected(f"Declare the prefix of {clean(token.text[:80])} with a full IRI.")
    return expanded


def _refuse_functions(sparql: str) -> None:
    """Refuse Virtuoso's own functions, which can read files, fetch data and run SQL from any query."""
    for token in tokens(sparql):
        text = token.text.lower().lstrip("<") if token.kind in ("iri", "name") else ""
        if text.startswith(("bif:", "sql:")) and text.rstrip(">") not in _HARMLESS_FUNCTIONS:
            raise QueryRejected(
                f"{clean(token.text[:60])} is not allowed: functions of the server can do more than read data."
            )


def refuse_surrogates(sparql: str) -> None:
    """Refuse lone surrogates, which Python uses for bytes that are not UTF-8."""
    if not sparql.isascii():
        try:
            sparql.encode("utf-8")
        except UnicodeEncodeError as error:
            raise QueryRejected(
                "The query contains bytes that are not valid UTF-8.", "Correct the file or command with the query."
            ) from error


def prepare_for_server(sparql: str, *, reads: str = "") -> str:
    """Check a query for a server, and return the text to send: the same query with escapes resolved.

    Args:
        reads: the kind that the query must have, SELECT or ASK; empty for any kind.

    Raises:
        QueryRejected: the query is of a different kind, or uses SERVICE, LOAD, DEFINE or a function of Virtuoso.
    """
    refuse_surrogates(sparql)
    lower = sparql.lower()
    if any(word in lower for word in _NEEDS_CHECKING):
        sparql = decode_codepoints(sparql)
        forbid_fetching(sparql)
        if any(token.kind == "word" and token.text.upper() == "DEFINE" for token in tokens(sparql)):
            raise QueryRejected("DEFINE is not allowed: it changes how the server runs a query.")
        _refuse_functions(sparql)
    if reads:
        kind = query_kind(sparql)
        if kind != reads:
            raise QueryRejected(
                f"Expected {'an' if reads == 'ASK' else 'a'} {reads} query" + (f", not {kind}." if kind else ".")
            )
    return sparql


def dataset_of(query: str) -> tuple[str, ...] | None:
    """Return the IRIs after FROM and FROM NAMED in a query; None if one of them is abbreviated."""
    clauses = _dataset_clauses(query)
    named = all(iri.kind == "iri" for _, _, iri in clauses)
    return tuple(iri.text[1:-1] for _, _, iri in clauses) if named else None


def without_dataset(query: str) -> str:
    """Return a query without its FROM clauses, for an engine that is given the graphs itself."""
    for start, end, _ in reversed(_dataset_clauses(query)):
        query = query[:start] + query[end:]
    return query


def _dataset_clauses(query: str) -> list[tuple[int, int, Token]]:
    """Return the start, the end and the last token of each FROM clause."""
    found: list[tuple[int, int, Token]] = []
    at, start = 0, -1
    for token in tokens(query):
        at += len(token.text)
        word = token.text.upper() if token.kind == "word" else ""
        if token.text == "{":
            break
        if start >= 0 and token.kind not in ("space", "comment") and word != "NAMED":
            found.append((start, at, token))
            start = -1
        if word == "FROM":
            start = at - len(token.text)
    return found


def query_kind(sparql: str) -> str:
    """Return the keyword that follows a query's declarations."""
    words = (token.text.upper() for token in tokens(sparql) if token.kind not in ("space", "comment"))
    while (word := next(words, "")) in ("PREFIX", "BASE"):
        for _ in range(2 if word == "PREFIX" else 1):
            next(words, "")
    return word


_LOCAL_PLAIN = rf"[{_BASE}0-9_](?:[{_CHARS}.]*[{_CHARS}])?"
_SPLIT = re.compile(rf"(.+[/#])({_LOCAL_PLAIN})")
_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_MEANINGLESS = ("www", "com", "org", "net", "ns")
_AFTER_KNOWN = re.compile(_LOCAL_PLAIN)


def shorten_iris(sparql: str, prefixes: Mapping[str, str] | None = None) -> str:
    """Make a query easier to read by declaring prefixes. A query with PREFIX or BASE is returned unchanged.

    An IRI is shortened only if its local part needs no escapes. Other namespaces than those of `prefixes` get a name
    made from their IRI if the query uses them at least twice. A name always stands for one namespace.

    Args:
        prefixes: known namespaces by the names of their prefixes.
    """
    items = list(tokens(sparql))
    if any(token.kind == "word" and token.text.upper() in ("PREFIX", "BASE") for token in items):
        return sparql
    known = sorted((prefixes or {}).items(), key=lambda item: -len(item[1]))
    split = {token.text: _split_iri(token.text[1:-1], known) for token in items if token.kind == "iri"}
    found = [split[token.text] for token in items if token.kind == "iri"]
    uses = Counter(space for _, space, _ in found if space)
    names = {space: name for name, space, _ in found if name is not None}
    for space, count in uses.items():
        if space not in names and count > 1:
            names[space] = _new_name(space, {*(prefixes or {}), *names.values()})
    out = []
    for token in items:
        _, space, local = split.get(token.text, (None, "", "")) if token.kind == "iri" else (None, "", "")
        out.append(f"{names[space]}:{local}" if space in names else token.text)
    head = "".join(f"PREFIX {name}: <{space}>\n" for space, name in names.items())
    return head + "".join(out)


def used_prefixes(queries: Iterable[str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """Return those of the prefixes that `shorten_iris` uses in a query."""
    known = sorted(prefixes.items(), key=lambda item: -len(item[1]))
    iris = dict.fromkeys(token.text[1:-1] for query in queries for token in tokens(query) if token.kind == "iri")
    names = dict.fromkeys(name for iri in iris if (name := _split_iri(iri, known)[0]) is not None)
    return {name: prefixes[name] for name in names}


def _split_iri(iri: str, known: Sequence[tuple[str, str]]) -> tuple[str | None, str, str]:
    """Return the known prefix of an IRI, or None, its namespace, and the rest; an IRI that can't be split has none."""
    for name, space in known:
        if iri.startswith(space) and _AFTER_KNOWN.fullmatch(iri, len(space)):
            return name, space, iri[len(space) :]
    match = _SPLIT.fullmatch(iri)
    return (None, match[1], match[2]) if match else (None, "", "")


def _new_name(space: str, taken: set[str]) -> str:
    """Name a namespace after the last word of its IRI: `vocab` for `http://example.org/vocab#`."""
    host, _, path = (space.partition("://")[2] or space).partition("/")
    plain = [word.lower() for word in _WORDS.findall(path or host)]
    words: list[str] = [word for word in plain if word not in _MEANINGLESS] or ["ns"]
    name = (words[-1] if path else words[0])[:20]
    numbered = (f"{name}{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each not in taken)
