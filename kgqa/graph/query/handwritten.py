"""Queries that people write: prefixes that need no declaration, and where a query is not valid."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kgqa.errors import InvalidQuery, QueryRejected
from kgqa.graph.query.tokens import Token, expand_prefixes, tokens
from kgqa.schema import STANDARD_PREFIXES
from kgqa.text.words import clean

SELECTED = ", selected by a model"
"""What stands after the id of an entity in a comment of an exported query if a language model chose it."""
_POSITION = re.compile(r"error at ([0-9]+):([0-9]+)")
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


def declared_prefixes(sparql: str) -> dict[str, str]:
    """Return the prefixes that a query declares, with their namespaces as they are written."""
    solid = [token for token in tokens(sparql) if token.kind not in ("space", "comment")]
    return {
        name.text[:-1]: iri.text[1:-1]
        for word, name, iri in zip(solid, solid[1:], solid[2:])
        if word.kind == "word" and word.text.upper() == "PREFIX" and name.kind == "name" and iri.kind == "iri"
    }


def _undeclared(sparql: str) -> list[str]:
    declared = declared_prefixes(sparql)
    used = dict.fromkeys(token.text.partition(":")[0] for token in tokens(sparql) if token.kind == "name")
    return [name for name in used if name not in declared]


def iris_of(sparql: str) -> set[str]:
    """Return the IRIs that a query uses, apart from those of RDF, RDFS, OWL, SKOS and XSD."""
    found = {token.text[1:-1] for token in tokens(expand_prefixes(sparql)) if token.kind == "iri"}
    found -= set(declared_prefixes(sparql).values())
    return {iri for iri in found if not iri.startswith(tuple(STANDARD_PREFIXES.values()))}


def words_in_comments(sparql: str) -> dict[str, str]:
    """Return what the comments of an exported query call its IRIs.

    `# Ada = ex:ada` names an entity; a comment after a triple names its relation.
    """
    declared, iris = declared_prefixes(sparql), iris_of(sparql)
    found: dict[str, str] = {}
    line: list[Token] = []
    for token in tokens(expand_prefixes(sparql)):
        if token.kind == "space":
            line = [] if "\n" in token.text else line
        elif token.kind != "comment":
            line.append(token)
        elif len(line) > 2 and line[1].kind == "iri":
            found.setdefault(line[1].text[1:-1], clean(token.text[1:]))
        elif not line:
            name, _, ident = clean(token.text[1:]).removesuffix(SELECTED).rpartition(" = ")
            prefix, _, local = ident.rpartition(":")
            full = declared.get(prefix, "") + local
            for iri in iris if name and local else ():
                if iri == full or (iri.endswith(full) and iri[-len(full) - 1] in "/#:"):
                    found.setdefault(iri, name)
    return found


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
