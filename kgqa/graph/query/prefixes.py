"""Queries as people write and read them: their prefixes, and where a query is not valid."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from kgqa.errors import InvalidQuery, QueryRejected
from kgqa.graph.query.tokens import LOCAL_PLAIN, declared_prefixes, expand_prefixes, tokens
from kgqa.schema import STANDARD_PREFIXES
from kgqa.text.words import clean

_POSITION = re.compile(r"error at ([0-9]+):([0-9]+)")
_SPLIT = re.compile(rf"(.+[/#])({LOCAL_PLAIN})")
_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_MEANINGLESS = ("www", "com", "org", "net", "ns")
_REASON = re.compile(r"(?:expected|one of|,) (?!Prefix not found)([A-Z][a-z]+(?: \w+)+)")
"""A sentence among the tokens that the engine expected."""


def declare_prefixes(sparql: str, prefixes: Mapping[str, str]) -> str:
    """Return a query that also declares those of the given prefixes that it uses without a declaration."""
    missing = [name for name in _undeclared(sparql) if name in prefixes]
    return "".join(f"PREFIX {name}: <{prefixes[name]}>\n" for name in missing) + sparql


def unknown_prefix(sparql: str) -> QueryRejected | None:
    """Return the error of a query that uses a prefix without a declaration; None if it declares all."""
    for name in _undeclared(sparql):
        shown = clean(name)[:80]
        return QueryRejected(f"Unknown prefix {shown or ':'}.", f"Declare it: PREFIX {shown}: <...>")
    return None


def _undeclared(sparql: str) -> list[str]:
    declared = declared_prefixes(sparql)
    used = dict.fromkeys(token.text.partition(":")[0] for token in tokens(sparql) if token.kind == "name")
    return [name for name in used if name not in declared]


def iris_of(sparql: str) -> set[str]:
    """Return the IRIs that a query uses, apart from those of RDF, RDFS, OWL, SKOS and XSD."""
    found = {token.text[1:-1] for token in tokens(expand_prefixes(sparql)) if token.kind == "iri"}
    found -= set(declared_prefixes(sparql).values())
    return {iri for iri in found if not iri.startswith(tuple(STANDARD_PREFIXES.values()))}


def engine_error(error: QueryRejected, query: str, prepared: str) -> QueryRejected:
    """Return an error of the embedded engine's parser with the position in the query, and without the expected tokens.

    Args:
        error: the error that the engine reports.
        query: the query as it was given.
        prepared: the query as it was sent to the engine, with the same tokens but longer IRIs.
    """
    position = _POSITION.search(str(error))
    if position is None:
        return error
    lines = prepared.split("\n")[: int(position[1])]
    sent = sum(len(line) + 1 for line in lines[:-1]) + int(position[2]) - 1
    start = done = 0
    for old, new in zip(tokens(query), tokens(prepared)):
        if done + len(new.text) > sent:
            break
        start, done = start + len(old.text), done + len(new.text)
    reason = _REASON.search(str(error))
    return InvalidQuery(query, start, reason[1] if reason else "")


def error_before(error: QueryRejected, query: str, changed: str) -> QueryRejected:
    """Return the error of a query into which text was inserted as the error of the query without it."""
    if not isinstance(error, InvalidQuery):
        return error
    place = next((at for at, (old, new) in enumerate(zip(query, changed)) if old != new), len(query))
    at = error.at if error.at <= place else max(error.at - (len(changed) - len(query)), place)
    return InvalidQuery(query, at, error.reason)


def shorten_iris(sparql: str, prefixes: Mapping[str, str] | None = None) -> str:
    """Make a query easier to read by declaring prefixes. A query with PREFIX or BASE is returned unchanged.

    An IRI is shortened only if its local part needs no escapes. Other namespaces than those of `prefixes` get a name
    made from their IRI if the query uses them at least twice. A name always stands for one namespace.

    Args:
        prefixes: known namespaces by the names of their prefixes.
    """
    if any(token.kind == "word" and token.text.upper() in ("PREFIX", "BASE") for token in tokens(sparql)):
        return sparql
    known = {space: name for name, space in (prefixes or {}).items()}
    found = [_split_iri(token.text[1:-1], known) for token in tokens(sparql) if token.kind == "iri"]
    uses = Counter(space for space, _ in found if space)
    names = {space: known[space] for space in uses if space in known}
    for space, count in uses.items():
        if space not in names and count > 1:
            names[space] = _new_name(space, {*known.values(), *names.values()})
    texts = []
    for token in tokens(sparql):
        space, local = _split_iri(token.text[1:-1], known) if token.kind == "iri" else ("", "")
        texts.append(f"{names[space]}:{local}" if space in names else token.text)
    return "".join([*(f"PREFIX {name}: <{space}>\n" for space, name in names.items()), *texts])


def used_prefixes(queries: Iterable[str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """Return those of the prefixes that `shorten_iris` uses in a query."""
    known = {space: name for name, space in prefixes.items()}
    iris = [token.text[1:-1] for query in queries for token in tokens(query) if token.kind == "iri"]
    spaces = dict.fromkeys(_split_iri(iri, known)[0] for iri in iris)
    return {known[space]: space for space in spaces if space in known}


def _split_iri(iri: str, known: Collection[str]) -> tuple[str, str]:
    """Return the namespace of an IRI, the longest known one if there is any, and the rest; "" if it can't be split."""
    spaces = [space for space in known if iri.startswith(space) and re.fullmatch(LOCAL_PLAIN, iri[len(space) :])]
    if spaces:
        space = max(spaces, key=len)
        return space, iri[len(space) :]
    match = _SPLIT.fullmatch(iri)
    return (match[1], match[2]) if match else ("", "")


def _new_name(space: str, taken: Collection[str]) -> str:
    """Name a namespace after the last word of its IRI: `vocab` for `http://example.org/vocab#`."""
    host, _, path = (space.partition("://")[2] or space).partition("/")
    words: list[str] = [word.lower() for word in _WORDS.findall(path or host) if word.lower() not in _MEANINGLESS] or [
        "ns"
    ]
    name = (words[-1] if path else words[0])[:20]
    numbered = (f"{name}{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each not in taken)
