"""A check that a SPARQL update writes only to one graph. In doubt, the update is refused.

A server may parse an update differently from kgqa, so only unambiguous updates are accepted. Plain data is checked by a
regular expression, because a parser takes seconds for a few hundred triples. Other updates are checked by the parser of
rdflib.
"""

from __future__ import annotations

import re
from typing import Any

from kgqa.errors import QueryRejected
from kgqa.graph.query.tokens import tokens
from kgqa.words import clean

_IRI = r'<[^\x00-\x20<>"{}|^`\\]*+>'
# escapes of ASCII characters are excluded, because servers resolve them at different stages of parsing
_STRING = r'"(?!"")(?:[^"\\\n\r]|\\[tbnrf"\'\\]|\\u(?!00[0-7])[0-9A-Fa-f]{4}|\\U(?!000000[0-7])[0-9A-Fa-f]{8})*+"'
_PLAIN_DATA = re.compile(
    rf"\s*+(?:INSERT|DELETE)\s++DATA\s*+\{{\s*+GRAPH\s*+(?P<graph>{_IRI})\s*+\{{"
    rf"(?:[^\"'<>{{}}\#\\]++|{_IRI}|{_STRING})*+\}}\s*+\}}\s*+",
    re.IGNORECASE,
)
_ASCII_ESCAPE = re.compile(r"\\(?:u00[0-7]|U000000[0-7])")
# surrogates and code points beyond Unicode: Virtuoso stores them, and then fails to return the graph
_INVALID_CODEPOINT = re.compile(
    r"(?<!\\)(?:\\\\)*+\\(?:u[dD][89a-fA-F]|U0000[dD][89a-fA-F]|U(?!00(?:0[0-9a-fA-F]|10)))"
)


def check_update(update: str, graph: str) -> None:
    """Accept only INSERT and DELETE, of data or by patterns, and only triples of the graph with the IRI `graph`.

    Raises:
        QueryRejected: the update is not valid SPARQL, writes to another graph or to the default graph, or contains any
            other operation, such as LOAD, CLEAR, DROP or COPY.
    """
    if _INVALID_CODEPOINT.search(update):
        raise QueryRejected(
            "The update has an escape that stands for no character, such as \\uD800.", "Remove the escape."
        )
    plain = _PLAIN_DATA.fullmatch(update)
    if plain and plain["graph"] == f"<{graph}>":
        return
    if "\r" in update.replace("\r\n", ""):
        # in SPARQL a carriage return ends a comment, but rdflib ends comments only at a line feed
        raise QueryRejected("The update has a carriage return without a line feed. End lines with a line feed.")
    if _ASCII_ESCAPE.search(update):
        raise QueryRejected(
            "The update has escapes (\\u00..) of ASCII characters.", "Write these characters unescaped."
        )
    _check_names(update)
    for operation in _operations(update):
        if operation.name not in ("InsertData", "DeleteData", "Modify", "DeleteWhere"):
            raise QueryRejected(
                f"{clean(str(operation.name)).upper()} is not allowed: only INSERT and DELETE within <{graph}>."
            )
        default = str(_part(operation, "withClause") or "")
        written = [operation]
        if operation.name == "Modify":
            written = [part for name in ("delete", "insert") if (part := _part(operation, name)) is not None]
        for block in written:
            _check_block(block, default, graph)


def _operations(update: str) -> list[Any]:
    from rdflib.plugins.sparql.algebra import translateUpdate
    from rdflib.plugins.sparql.parser import parseUpdate

    try:
        return list(translateUpdate(parseUpdate(update)).algebra)
    except Exception as error:  # pyparsing and the translation raise many kinds of errors
        raise QueryRejected(f"Not a valid SPARQL update: {clean(str(error))[:200]}") from error


def _check_names(update: str) -> None:
    """Refuse BASE and abbreviated graph names, because servers differ in the scope of prefixes and bases."""
    solid = [token for token in tokens(update) if token.kind not in ("space", "comment")]
    for token, after in zip(solid, [*solid[1:], None]):
        word = token.text.upper() if token.kind == "word" else ""
        if word == "BASE":
            raise QueryRejected("BASE is not allowed in an update: write IRIs in full.")
        if word in ("GRAPH", "WITH", "INTO") and (after is None or after.kind not in ("iri", "variable")):
            raise QueryRejected(f"Write the graph after {word} as a full <IRI>.")


def _check_block(block: Any, default: str, graph: str) -> None:
    if _part(block, "triples") and default != graph:
        where = f"<{clean(default)}>" if default else "no named graph"
        raise QueryRejected(f"The update writes to {where}; only <{graph}> is writable: use GRAPH <{graph}>.")
    for name in _part(block, "quads") or ():
        if str(name) != graph or not _is_iri(name):
            raise QueryRejected(f"The update writes to {clean(str(name))[:200]}; only <{graph}> is writable.")


def _part(value: Any, name: str) -> Any:
    """Return a part of a parsed operation, or None. The operation's own `get` would return `name` instead of None."""
    return dict.get(value, name)


def _is_iri(term: Any) -> bool:
    from rdflib import URIRef

    return isinstance(term, URIRef)
