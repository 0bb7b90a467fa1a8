"""Queries as people write and read them: their prefixes, and where a query is not valid."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate, takewhile

from kgqa.errors import InvalidQuery, QueryRejected
from kgqa.graph.query.tokens import LOCAL_PLAIN, declared_prefixes, expand_prefixes, tokens
from kgqa.schema import STANDARD_PREFIXES
from kgqa.text.words import clean

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
