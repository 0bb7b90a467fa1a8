"""Explanation of a SPARQL query in plain words, from its algebra and the graph's labels, without a language model."""

from __future__ import annotations

from typing import Any

from kgqa.errors import QueryRejected
from kgqa.graph.query.export import ExportableGraph
from kgqa.graph.query.tokens import forbid_fetching
from kgqa.model import Entity
from kgqa.words import clean, short_words

_COMPARED = {
    "=": "is",
    "!=": "is not",
    "<": "is less than",
    ">": "is greater than",
    "<=": "is at most",
    ">=": "is at least",
}

_JOINED = {"Join": "", "LeftJoin": "optionally: ", "Minus": "but not: "}
_EXTRAS = {"OrderBy": "Sort them.", "AggregateJoin": "Aggregate them by group."}


def explain(graph: ExportableGraph, sparql: str) -> str:
    """Explain a SELECT or ASK query, one line per condition.

    Raises:
        QueryRejected: the text is not valid SPARQL 1.1, or not a SELECT or ASK query.
    """
    from rdflib.plugins.sparql import prepareQuery

    forbid_fetching(sparql)
    try:
        algebra = prepareQuery(sparql).algebra
    except Exception as error:  # rdflib raises many kinds of errors, including RecursionError
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise QueryRejected(f"Not valid SPARQL 1.1: {first[:200]}") from error
    if algebra.name not in ("SelectQuery", "AskQuery"):
        raise QueryRejected("Only SELECT and ASK queries can be explained.")
    return _Explainer(graph).query(algebra)


class _Explainer:
    """Collects the conditions of one query."""

    def __init__(self, graph: ExportableGraph) -> None:
        self._graph = graph
        self._names: dict[Entity, str] = {}

    def query(self, algebra: Any) -> str:
        self._names = self._graph.labels(Entity(str(iri)) for iri in sorted(_iris(algebra)))
        extras: list[str] = []
        conditions = self._walk(algebra.p, extras)
        if algebra.name == "AskQuery":
            head = "Is there anything such that"
        else:
            variables = ", ".join(f"?{name}" for name in algebra.PV)
            head = f"Find every {variables} such that"
        body = [f"  {number}. {text}" for number, text in enumerate(conditions, 1)]
        return "\n".join([head, *(body or ["  (no condition)"]), *extras])

    def _walk(self, node: Any, extras: list[str]) -> list[str]:
        """Return the conditions of a part of the algebra; sentences about the whole result are added to `extras`."""
        name = getattr(node, "name", "")
        if name == "BGP":
            return [self._triple(*triple) for triple in _in_order(node.triples)]
        if name in _JOINED:
            conditions = self._walk(node.p1, extras)
            return conditions + [_JOINED[name] + text for text in self._walk(node.p2, extras)]
        if name == "Union":
            left, right = ("; and ".join(self._walk(side, extras)) for side in (node.p1, node.p2))
            return [f"either {left} — or {right}"]
        if name == "values" or (name == "ToMultiSet" and _values_rows(node)):
            return self._values(node)
        if getattr(node, "p", None) is None:
            return [f"(a part that cannot be explained: {name})"] if name else []
        conditions = self._walk(node.p, extras)
        if name == "Filter":
            conditions += self._filter(node.expr)
        elif name == "Extend":
            conditions.append(f"?{node['var']} is computed")
        elif name in _EXTRAS or (name == "Slice" and node.length is not None):
            extras.append(_EXTRAS.get(name) or f"Return at most {node.length}.")
        return conditions

    def _values(self, node: Any) -> list[str]:
        rows = _values_rows(node)
        if not rows:
            return ["(given values)"]
        found = []
        for variable in sorted({v for row in rows for v in row}):
            shown = ", ".join(self._term(row[variable]) for row in rows[:10] if variable in row)
            found.append(f"?{variable} is one of: {shown}{' ...' if len(rows) > 10 else ''}")
        return found

    def _triple(self, subject: Any, relation: Any, object_: Any) -> str:
        if _is_variable(relation):
            words = f"anything (?{relation})"
        elif hasattr(relation, "toPython") and not hasattr(relation, "args"):
            words = f"“{clean(short_words(str(relation), self._graph.schema, self._graph.relation_labels))}”"
        else:
            words = "a property path"
        return f"{self._term(subject)} has {words}: {self._term(object_)}"

    def _filter(self, expression: Any) -> list[str]:
        name = getattr(expression, "name", "")
        if name == "RelationalExpression" and expression.op in _COMPARED:
            return [f"{self._term(expression.expr)} {_COMPARED[expression.op]} {self._term(expression.other)}"]
        if name == "RelationalExpression" and expression.op == "IN":
            # STR(term) is explained like its term
            parts = (expression.expr, *expression.other)
            tested, *listed = [each.arg if getattr(each, "name", "") == "Builtin_STR" else each for each in parts]
            return [f"{self._term(tested)} is one of: {', '.join(map(self._term, listed))}"]
        if name == "Builtin_isIRI":
            return [f"{self._term(expression.arg)} is an entity"]
        if name == "ConditionalAndExpression":
            return [text for part in [expression.expr, *expression.other] for text in self._filter(part)]
        if name == "Builtin_NOTEXISTS":
            return [f"it is not true that {' and '.join(self._walk(expression.graph, []))}"]
        return ["another filter holds"]

    def _term(self, term: Any) -> str:
        if _is_variable(term):
            return f"?{term}"
        if type(term).__name__ == "URIRef":
            label = self._names.get(Entity(str(term)))
            short = self._graph.schema.short_id(str(term))
            return f"{clean(label)} ({short})" if label else clean(short)
        if type(term).__name__ == "Literal":
            return f"“{clean(str(term))}”"
        if type(term).__name__ == "BNode":
            return "something"
        return "a computed value"


def _values_rows(node: Any) -> list[Any]:
    """Return the rows of a VALUES block; empty for a subquery."""
    inner = getattr(node, "p", None)
    return list(getattr(node, "res", None) or (inner.res if inner is not None and "res" in inner else []))


def _is_variable(term: Any) -> bool:
    return type(term).__name__ == "Variable"


def _in_order(triples: list[Any]) -> list[Any]:
    """Order the triples of a pattern as a chain from known terms, instead of the parser's order."""
    left, ordered = list(triples), []
    known: set[Any] = set()
    while left:
        best = min(left, key=lambda t: (_unknown(t[0], known) and _unknown(t[2], known), triples.index(t)))
        left.remove(best)
        ordered.append(best)
        known |= {best[0], best[2]}
    return ordered


def _unknown(term: Any, known: set[Any]) -> bool:
    return _is_variable(term) and term not in known


def _iris(node: Any) -> set[Any]:
    """Collect all IRIs in an algebra."""
    if type(node).__name__ == "URIRef":
        return {node}
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, (list, tuple, set)) else ()
    return set().union(*map(_iris, parts))
