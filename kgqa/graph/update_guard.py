"""Whether a SPARQL update writes to the one graph it may write to. Read by rdflib's parser, refused when in doubt."""

from __future__ import annotations

from typing import Any

from kgqa.errors import QueryRejected
from kgqa.words import clean


def check_update(update: str, graph: str) -> None:
    """Let through only INSERT and DELETE, with data or patterns, whose triples all stand in `graph`.

    Raises:
        QueryRejected: not valid SPARQL, another graph, the default graph, or LOAD, CLEAR, DROP, COPY, ...
    """
    from rdflib.plugins.sparql.algebra import translateUpdate
    from rdflib.plugins.sparql.parser import parseUpdate

    try:
        operations = list(translateUpdate(parseUpdate(update)).algebra)
    except Exception as error:  # the parser raises whatever pyparsing and the translation do
        raise QueryRejected(f"Not a valid SPARQL update: {clean(str(error))[:200]}") from error
    for operation in operations:
        if operation.name not in ("InsertData", "DeleteData", "Modify", "DeleteWhere"):
            raise QueryRejected(f"{operation.name.upper()} is not allowed: only INSERT and DELETE within <{graph}>.")
        default = str(operation.get("withClause") or "")
        for written in _written(operation):
            _check_block(written, default, graph)


def _written(operation: Any) -> list[Any]:
    if operation.name == "Modify":
        return [part for part in (operation.get("delete"), operation.get("insert")) if part]
    return [operation]


def _check_block(block: Any, default: str, graph: str) -> None:
    if block.get("triples") and default != graph:
        where = f"<{clean(default)}>" if default else "no named graph"
        raise QueryRejected(f"The update writes to {where}; only <{graph}> was named as writable: use GRAPH <{graph}>.")
    for name in block.get("quads") or ():
        if str(name) != graph or not _is_iri(name):
            raise QueryRejected(f"The update writes to {clean(str(name))[:200]}; only <{graph}> was named as writable.")


def _is_iri(term: Any) -> bool:
    from rdflib import URIRef

    return isinstance(term, URIRef)
