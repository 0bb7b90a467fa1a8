"""SPARQL tokens, and checks and rewrites of queries that work on tokens: prefixes, errors, Virtuoso's dialect.

The tokens are those of the SPARQL 1.1 grammar (productions 139 to 173), longest match first. A keyword inside a string,
comment or IRI is therefore never mistaken for a keyword of the query.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from types import MappingProxyType

from kgqa.errors import InvalidQuery, QueryRejected
from kgqa.schema import STANDARD_PREFIXES
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
LOCAL_PLAIN = rf"[{_BASE}0-9_](?:[{_CHARS}.]*[{_CHARS}])?"
"""A local name without escapes."""
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
_ESCAPED_ASCII = re.compile(r"\\\\|(\\u00[0-7]|\\U000000[0-7])")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (iri, string, variable, name, word, mark, ...) and its text as written in the query."""

    kind: str
    text: str


def decode_codepoints(sparql: str) -> str:
    r"""Resolve `\uXXXX` escapes, which SPARQL 1.1 (section 19.2) allows anywhere, before all parsing.

    Those of quotes, brackets of IRIs, backslashes, control characters and surrogates stay, for `forbid_fetching` or the
    engine to refuse.
    """

    def char(match: re.Match[str]) -> str:
        code = int(match[1] or match[2] or "0", 16)
        kept = code < 0x20 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF or chr(code) in "\"'\\<>"
        return match[0] if kept else chr(code)

    return _CODEPOINT.sub(char, sparql)


def tokens(sparql: str) -> Iterator[Token]:
    """Yield all tokens of a query, including white space and comments. Joining their texts gives the query."""
    for match in _TOKEN.finditer(sparql):
        yield Token(match.lastgroup or "mark", match[0])


def solid_tokens(sparql: str) -> Iterator[Token]:
    """Yield the tokens of a query, except white space and comments."""
    return (token for token in tokens(sparql) if token.kind not in ("space", "comment"))


def declared_prefixes(sparql: str) -> dict[str, str]:
    """Return the prefixes that a query declares, with their namespaces as they are written."""
    solid = list(solid_tokens(sparql))
    return {
        name.text[:-1]: iri.text[1:-1]
        for word, name, iri in zip(solid, solid[1:], solid[2:])
        if word.text.upper() == "PREFIX" and name.kind == "name" and name.text[-1] == ":" and iri.kind == "iri"
    }


def expand_prefixes(sparql: str, known: Mapping[str, str] = MappingProxyType({})) -> str:
    """Replace every prefixed name by its full IRI, and resolve escapes.

    The embedded engine does not parse local names with two or more dots (`ns:people.person.gender`), which the standard
    allows and Freebase uses throughout. A name stays as it is if its prefix is not declared, or is declared relative to
    a BASE.

    Args:
        known: prefixes that the query need not declare, with their namespaces.
    """
    sparql = decode_codepoints(sparql)
    spaces = {name: iri for name, iri in {**known, **declared_prefixes(sparql)}.items() if _ABSOLUTE.match(iri)}
    texts, before = [], ""
    for token in tokens(sparql):
        prefix, _, local = token.text.partition(":")
        if token.kind == "name" and before != "PREFIX" and prefix in spaces:
            texts.append("<" + spaces[prefix] + _ESCAPED.sub(r"\1", local) + ">")
        else:
            texts.append(token.text)
        if token.kind not in ("space", "comment"):
            before = token.text.upper()
    return "".join(texts)


def forbid_fetching(sparql: str, *, server: bool = False) -> None:
    """Refuse queries that would make an engine fetch data: SERVICE in queries, LOAD in updates.

    Args:
        server: whether to refuse DEFINE and Virtuoso's own functions, too, which read files, fetch data and run SQL.

    Raises:
        QueryRejected: one of these keywords occurs outside strings, IRIs and comments, or an engine could read a part
            of an IRI, or an escape, as a part of the query.
    """
    sparql = decode_codepoints(sparql)
    if any(match[1] for match in _ESCAPED_ASCII.finditer(sparql)):
        raise QueryRejected(
            "The query contains an escape of a quote, bracket or control character, such as \\u0022.",
            "Write the character.",
        )
    prefixes = declared_prefixes(sparql)
    operand, depth = False, 0
    for token in solid_tokens(sparql):
        kind, text, shown = token.kind, token.text.upper(), clean(token.text[:80])
        if kind == "iri" and operand and depth and _may_be_less(token.text, prefixes):
            raise QueryRejected(f"It is not clear whether {shown} is an IRI or begins with “less than”.",
                                "Write a space after <.")  # fmt: skip
        depth += {"(": 1, ")": -1}.get(text, 0)
        operand = text in (")", "TRUE", "FALSE") or kind not in ("mark", "word")
        if kind == "mark" and text in ("\\", '"', "'"):
            # never valid here: an engine that accepts it would see strings begin and end elsewhere than this check
            raise QueryRejected("Not valid SPARQL: an unmatched quote, or a backslash outside a string.")
        if kind == "word" and text in ("SERVICE", "LOAD"):
            raise QueryRejected(f"{text} is not allowed: queries may not fetch data from elsewhere.",
                                "Load the data first: ", Command("graph load", "FILE"))  # fmt: skip
        function = text.strip("<>") if kind in ("iri", "name") else ""
        foreign = function.startswith(("BIF:", "SQL:")) and function != "BIF:CONTAINS"
        if server and (foreign or (kind == "word" and text == "DEFINE")):
            raise QueryRejected(f"{shown} is not allowed: it can make the server do more than read data.")


_SCHEME = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]*://|([A-Za-z][A-Za-z0-9]*):)")


def _may_be_less(iri: str, prefixes: Container[str]) -> bool:
    """Return whether an IRI after an operand, read as “less than” and what follows, could hide a part of the query.

    `FILTER(1<2)SERVICE:x#>` contains an IRI by the longest match, but the embedded engine finds the keyword SERVICE.

    Args:
        prefixes: the prefixes that the query declares; a name with another one is not valid.
    """
    scheme = _SCHEME.match(iri)
    return not (scheme and scheme[1] not in prefixes) and any(sign in iri for sign in "()'#")


_KEYWORD_IN_NAME = re.compile(r"(?i)service|silent|load|graph|from")
_NEEDS_CHECKING = re.compile(r"(?i)service|load|define|bif:|sql:|\\u")
_NEEDS_READING = re.compile(r"(?i)prefix|service|load|\\u")


def prepare_for_engine(sparql: str) -> str:
    """Check a query for the embedded engine, resolve its escapes, and expand its prefixes.

    Raises:
        QueryRejected: the query fetches data (see `forbid_fetching`), contains a lone surrogate, or uses a prefix that
            is not declared with a full IRI.
    """
    refuse_surrogates(sparql)
    if not _NEEDS_READING.search(sparql):
        return sparql
    forbid_fetching(sparql)
    expanded = expand_prefixes(sparql)
    for token in tokens(expanded):
        # The prefix of a name that was not expanded has no absolute declaration. The engine ends such a name at its
        # second dot or at a keyword, and would find the keyword SERVICE in `ns:a.b.SERVICE` and `SERVICE:x`.
        if token.kind == "name" and _KEYWORD_IN_NAME.search(token.text):
            raise QueryRejected(f"Declare the prefix of {clean(token.text[:80])} with a full IRI.")
    return expanded


def refuse_surrogates(sparql: str) -> None:
    """Refuse lone surrogates, which Python uses for bytes that are not UTF-8."""
    try:
        sparql.encode("utf-8")
    except UnicodeEncodeError as error:
        raise QueryRejected(
            "The query contains bytes that are not valid UTF-8.", "Correct the file or command with the query."
        ) from error


def prepare_for_server(sparql: str, *, reads: str) -> str:
    """Check a query for a server, and return it with its escapes resolved.

    Args:
        reads: the kind that the query must have, SELECT or ASK.

    Raises:
        QueryRejected: the query is of a different kind, or uses SERVICE, LOAD, DEFINE or a function of Virtuoso.
    """
    refuse_surrogates(sparql)
    if _NEEDS_CHECKING.search(sparql):
        sparql = decode_codepoints(sparql)
        forbid_fetching(sparql, server=True)
    if (kind := query_kind(sparql)) != reads:
        article = "an" if reads == "ASK" else "a"
        raise QueryRejected(f"Expected {article} {reads} query" + (f", not {kind}." if kind else "."))
    return sparql


def dataset_of(query: str) -> tuple[str, ...] | None:
    """Return the IRIs after FROM and FROM NAMED in a query; None if one of them is abbreviated."""
    head = itertools.takewhile(lambda token: token.text != "{", solid_tokens(query))
    named = [token for token in head if token.kind != "word" or token.text.upper() not in ("NAMED", "WHERE")]
    graphs = [iri for word, iri in pairwise(named) if word.kind == "word" and word.text.upper() == "FROM"]
    return tuple(iri.text[1:-1] for iri in graphs) if all(iri.kind == "iri" for iri in graphs) else None


def query_kind(sparql: str) -> str:
    """Return the keyword that follows a query's declarations."""
    words = (token.text.upper() for token in solid_tokens(sparql) if token.kind == "word")
    return next((word for word in words if word not in ("PREFIX", "BASE")), "")


_POSITION = re.compile(r"error at ([0-9]+):([0-9]+)")
_REASON = re.compile(r"(?:expected|one of|,) (?!Prefix not found)([A-Z][a-z]+(?: \w+)+)")
"""A sentence among the tokens that the engine expected."""


def unknown_prefix(sparql: str) -> QueryRejected | None:
    """Return the error of a query that uses a prefix without a declaration; None if it declares all."""
    declared = declared_prefixes(sparql)
    for token in tokens(sparql):
        prefix = token.text.partition(":")[0]
        if token.kind == "name" and prefix not in declared:
            shown = clean(prefix)[:80]
            return QueryRejected(f"Unknown prefix {shown or ':'}.", f"Declare it: PREFIX {shown}: <...>")
    return None


def iris_of(sparql: str) -> set[str]:
    """Return the IRIs that a query uses, apart from those of RDF, RDFS, OWL, SKOS and XSD."""
    found = {token.text[1:-1] for token in tokens(expand_prefixes(sparql)) if token.kind == "iri"}
    found -= set(declared_prefixes(sparql).values())
    return {iri for iri in found if not iri.startswith(tuple(STANDARD_PREFIXES.values()))}


def error_in(error: QueryRejected, query: str, sent: str) -> QueryRejected:
    """Return a parser's error with the position in the query, and without the tokens that the engine expected.

    Args:
        error: the error of the text that was sent, from the embedded engine or an `InvalidQuery`.
        query: the query as it was written.
        sent: the query with full IRIs in place of prefixed names, and perhaps with further clauses at one place.
    """
    position = _POSITION.search(str(error))
    if isinstance(error, InvalidQuery):
        at, reason, exact = error.at, error.reason, error.exact
    elif position is not None:
        at = sum(len(line) + 1 for line in sent.split("\n")[: int(position[1]) - 1]) + int(position[2]) - 1
        match, exact = _REASON.search(str(error)), True
        reason = match[1] if match else ""
    else:
        return error
    old, new = list(tokens(query)), list(tokens(sent))
    index = bisect_right(list(accumulate(len(token.text) for token in new)), at)
    alike = (one.kind == two.kind or two.kind == "iri" for one, two in zip(old, new))
    if index >= sum(1 for _ in takewhile(bool, alike)):  # after the further clauses
        index += len(old) - len(new)
    return InvalidQuery(query, sum(len(token.text) for token in old[:index]), reason, exact=exact)


def shorten_iris(sparql: str, prefixes: Mapping[str, str]) -> str:
    """Make a query easier to read by declaring prefixes. A query with PREFIX or BASE is returned unchanged.

    An IRI is shortened by the longest namespace after which its local part needs no escapes.

    Args:
        prefixes: known namespaces by the names of their prefixes.
    """
    if any(token.kind == "word" and token.text.upper() in ("PREFIX", "BASE") for token in tokens(sparql)):
        return sparql
    longest_first = sorted(prefixes.items(), key=lambda item: -len(item[1]))
    declared, texts = {}, []
    for token in tokens(sparql):
        text = token.text
        for name, space in longest_first if token.kind == "iri" else ():
            if text.startswith(space, 1) and re.fullmatch(LOCAL_PLAIN, text[len(space) + 1 : -1]):
                declared[name], text = space, f"{name}:{text[len(space) + 1 : -1]}"
                break
        texts.append(text)
    return "".join([*(f"PREFIX {name}: <{space}>\n" for name, space in declared.items()), *texts])


def used_prefixes(queries: Iterable[str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """Return those of the prefixes that `shorten_iris` uses in a query."""
    short = (declared_prefixes(shorten_iris(query, prefixes)) for query in queries)
    return {name: prefixes[name] for names in short for name in names if name in prefixes}


_XSD = STANDARD_PREFIXES["xsd"]
_INFIX = {"OR": "||", "AND": "&&"}
_DATE_ONLY = re.compile(r"""(["'])\d{4}(-\d\d(-\d\d)?)?\1""")


def to_standard_sparql(sparql: str) -> str:
    """Translate a query; a query without Virtuoso's extensions is returned unchanged.

    - Undeclared standard prefixes (rdf, rdfs, owl, skos, xsd) are resolved.
    - Infix OR and AND become || and &&.
    - Virtuoso's cast `xsd:datetime(x)`, which also accepts 1999 and 1999-05, becomes STR(x). Dates without a time
      become plain strings, because ISO 8601 dates sort as text.
    """
    items = list(tokens(expand_prefixes(sparql, STANDARD_PREFIXES)))
    solid = [index for index, token in enumerate(items) if token.kind not in ("space", "comment")]
    texts = [token.text for token in items]
    following = dict(pairwise(solid))
    casts = [i for i in solid if items[i].text == f"<{_XSD}datetime>" and texts[following.get(i, i)] == "("]
    for index in casts:
        texts[index] = "STR"
    for index in solid:
        token = items[index]
        if token.kind == "word" and token.text.upper() in _INFIX:
            texts[index] = _INFIX[token.text.upper()]
        if casts and token.kind == "string" and _DATE_ONLY.fullmatch(token.text):
            marker = following.get(index, index)
            datatype = following.get(marker, marker)
            if items[marker].text == "^^" and items[datatype].text == f"<{_XSD}dateTime>":
                texts[marker] = texts[datatype] = ""
    return "".join(texts)
