"""Explanation of a SPARQL query in plain words, without a language model.

An exported query carries its explanation (see `export.carried_words`). Of any other query, the triple patterns, filters
and aggregates are put into words one by one, from the algebra of the query.
"""

from __future__ import annotations

import threading
from typing import Any

from kgqa.errors import InvalidQuery, QueryRejected
from kgqa.graph.query.export import carried_words
from kgqa.graph.query.prefixes import declare_prefixes, iris_of, unknown_prefix
from kgqa.graph.query.tokens import declared_prefixes, decode_codepoints, forbid_fetching
from kgqa.graph.query.words import COMPARED, ExportableGraph
from kgqa.model import Entity
from kgqa.schema import usable_prefixes
from kgqa.text.words import clean, local_words, short_words

_AGGREGATES = {
    "Count": "the number of", "Sum": "the sum of", "Avg": "the average of", "Min": "the smallest",
    "Max": "the largest", "Sample": "any", "GroupConcat": "a list of",
}  # fmt: skip
_JOINED = {"LeftJoin": "optionally: ", "Minus": "but not: ", "Union": ""}
MAX_ROWS = 10
"""Most given values of a variable that are listed."""
_one_at_a_time = threading.Lock()
"""pyparsing finds out how to call its functions at their first use; two threads at once break it for good."""


def explain(graph: ExportableGraph, sparql: str) -> str:
    """Explain a SELECT or ASK query, one line per condition. It need not declare the prefixes of the graph.

    Raises:
        QueryRejected: the text is not valid SPARQL 1.1, or not a SELECT or ASK query.
    """
    sparql = decode_codepoints(sparql).replace("\t", " ")  # the parser counts a tab as up to 8 characters
    declared = declare_prefixes(sparql, graph.schema.prefixes)
    forbid_fetching(declared)
    if carried := carried_words(sparql):
        return "\n".join(f"  {line}" if line[:1].isdigit() else line for line in carried)
    try:
        algebra = parse_query(declared).algebra
    except Exception as error:  # rdflib raises many kinds of errors, including RecursionError
        raise unknown_prefix(declared) or _parser_error(error, sparql, declared) from error
    if algebra.name not in ("SelectQuery", "AskQuery"):
        raise QueryRejected("Only SELECT and ASK queries can be explained.")
    return _Explainer(graph, declared).query(algebra)


def is_of_graph(graph: ExportableGraph, sparql: str) -> bool:
    """Return whether a query uses an entity or a relation of the graph, names none, or carries its explanation."""
    sparql = decode_codepoints(sparql)
    iris, base = iris_of(declare_prefixes(sparql, graph.schema.prefixes)), graph.schema.id_base
    relations, named = graph.tables.relations, graph.labels([*map(Entity, sorted(iris))])
    known = not iris or bool(named) or not iris.isdisjoint(relations)
    return known or any(base and iri.startswith(base) for iri in iris) or bool(carried_words(sparql))


def parse_query(sparql: str) -> Any:
    """Return a query with its algebra. Raises many kinds of errors, including RecursionError, if it is not valid."""
    from rdflib.plugins.sparql import prepareQuery

    with _one_at_a_time:
        return prepareQuery(sparql)


def _parser_error(error: Exception, sparql: str, declared: str) -> QueryRejected:
    from pyparsing import ParseBaseException

    if isinstance(error, ParseBaseException):
        return InvalidQuery(sparql, max(error.loc - (len(declared) - len(sparql)), 0), exact=False)
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return QueryRejected(f"Not valid SPARQL 1.1: {first[:200]}")


class _Explainer:
    """Collects the conditions of one query, and the sentences about its whole result."""

    def __init__(self, graph: ExportableGraph, sparql: str) -> None:
        self._graph = graph
        self._schema = graph.schema.with_prefixes(usable_prefixes(declared_prefixes(sparql)))
        self._names = graph.labels([*map(Entity, sorted(iris_of(sparql)))])
        self._results: dict[str, str] = {}
        """The words of the aggregates, by the variables that the parser made for them."""
        self._last: list[str] = []

    def query(self, algebra: Any) -> str:
        variables = ", ".join(f"?{name}" for name in algebra.PV or ())
        head = f"Find every {variables}" if algebra.name == "SelectQuery" else "Is there anything"
        lines = [f"  {number}. {text}" for number, text in enumerate(self._conditions(algebra.p), 1)]
        return "\n".join([f"{head} such that", *(lines or ["  (no condition)"]), *self._last])

    def _conditions(self, node: Any) -> list[str]:
        name = getattr(node, "name", "")
        if name == "BGP":
            return [self._triple(*triple) for triple in node.triples]
        if name == "Join":
            return self._conditions(node.p1) + self._conditions(node.p2)
        if name in _JOINED:  # one line, because the parts hold or fail together
            conditions, inner = self._conditions(node.p1), self._conditions(node.p2)
            if name == "LeftJoin" and node.expr.name != "TrueFilter":
                inner += self._filters(node.expr)
            if name == "Union":
                return [f"either {' and '.join(conditions)} — or {' and '.join(inner)}"]
            return [*conditions, _JOINED[name] + " and ".join(inner)] if inner else conditions
        if name == "values" or (name == "ToMultiSet" and node.p.name == "values"):
            return self._values((node if name == "values" else node.p).res)
        if getattr(node, "p", None) is None:
            return [f"(a part that cannot be explained: {name})"] if name else []
        conditions = self._conditions(node.p)
        if name == "Filter":
            conditions += self._filters(node.expr)
        elif name == "Extend":
            words = self._words(node.expr)
            conditions += [f"?{node['var']} is {words}"] if words != f"any ?{node['var']}" else []  # else: of a group
        elif name == "AggregateJoin":
            self._aggregates(node)
        elif name == "Slice":
            self._last += [f"Leave out the first {node.start}."] if node.start else []
            self._last += [f"Return at most {node.length}."] if node.length is not None else []
        elif name == "OrderBy":
            self._last.append("Sort them.")
        return conditions

    def _aggregates(self, join: Any) -> None:
        for each in join.A:
            what = "rows" if str(each.vars) == "*" else self._words(each.vars)
            function = _AGGREGATES.get(each.name.removeprefix("Aggregate_"), "an aggregate of")
            self._results[str(each.res)] = f"{function} {'different ' if each.distinct else ''}{what}"
        groups = dict.fromkeys(self._words(each) for each in join.p.expr or ())
        self._last += [f"Group by {' and '.join(groups)}."] if groups else []

    def _values(self, rows: Any) -> list[str]:
        listed = []
        for variable in sorted({name for row in rows for name in row}):
            terms = [self._words(row[variable]) for row in rows[:MAX_ROWS] if variable in row]
            listed.append(f"?{variable} is one of: {', '.join(terms)}{' ...' if len(rows) > MAX_ROWS else ''}")
        return listed

    def _triple(self, subject: Any, relation: Any, object_: Any) -> str:
        if isinstance(relation, str):
            words = short_words(str(relation), self._graph.schema, self._graph.tables.relation_labels)
            named = f"anything (?{relation})" if _is_variable(relation) else f"“{clean(words)}”"
        else:
            named = "a property path"
        return f"{self._words(subject)} has {named}: {self._words(object_)}"

    def _filters(self, expression: Any) -> list[str]:
        if getattr(expression, "name", "") == "ConditionalAndExpression":
            return [text for part in (expression.expr, *expression.other) for text in self._filters(part)]
        return [self._words(expression)]

    def _words(self, term: Any) -> str:
        """Return a term or an expression in words."""
        kind, name = type(term).__name__, getattr(term, "name", "")
        if kind == "Variable":
            return self._results.get(str(term)) or f"?{term}"
        if kind == "URIRef":
            short = clean(self._schema.short_id(str(term)))
            label = clean(self._names.get(Entity(str(term))) or local_words(str(term)))
            return short if label in short else f"{label} ({short})"
        if kind in ("Literal", "BNode"):
            return f"“{clean(str(term))}”" if kind == "Literal" else "something"
        if name == "RelationalExpression" and term.op in COMPARED:
            return f"{self._words(term.expr)} {COMPARED[term.op]} {self._words(term.other)}"
        if name == "RelationalExpression":
            not_ = "not " if term.op == "NOT IN" else ""
            return f"{self._words(term.expr)} is {not_}one of: {', '.join(map(self._words, term.other))}"
        if name in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
            not_ = "not " if name == "Builtin_NOTEXISTS" else ""
            return f"it is {not_}true that {' and '.join(self._conditions(term.graph))}"
        if name == "ConditionalOrExpression":
            return "either " + " — or ".join(map(self._words, (term.expr, *term.other)))
        if name == "UnaryNot":
            return f"it is not true that {self._words(term.expr)}"
        if name.startswith("Builtin_"):
            return f"{name.removeprefix('Builtin_')} of {', '.join(map(self._words, _terms(term)))}"
        parts = dict.fromkeys(self._words(each) for each in _terms(term) if _is_variable(each))
        return f"a value computed from {' and '.join(parts)}" if parts else "a computed value"


def _is_variable(term: Any) -> bool:
    return type(term).__name__ == "Variable"


def _terms(node: Any) -> list[Any]:
    """Return the terms of an expression, apart from those of the lists of variables that the parser adds."""
    if isinstance(node, dict):
        node = [value for key, value in node.items() if not str(key).startswith("_") and value is not None]
    return [term for part in node for term in _terms(part)] if isinstance(node, (list, tuple)) else [node]
