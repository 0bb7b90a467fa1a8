"""Explanation of a SPARQL query in plain words, without a language model.

An exported query carries its explanation (see `export.carried_words`). Of any other query, the triple patterns, filters
and aggregates are put into words one by one, from the algebra of the query.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from kgqa.errors import InvalidQuery, QueryRejected
from kgqa.graph.query.export import COMPARED, ExportableGraph, carried_words, node_words, relations_words
from kgqa.graph.query.tokens import error_in, expand_prefixes, forbid_fetching, iris_of, unknown_prefix
from kgqa.model import Entity, Step
from kgqa.text.words import clean, local_words

_AGGREGATES = {
    "Aggregate_Count": "the number of", "Aggregate_Sum": "the sum of", "Aggregate_Avg": "the average of",
    "Aggregate_Min": "the smallest", "Aggregate_Max": "the largest", "Aggregate_Sample": "any",
    "Aggregate_GroupConcat": "a list of",
}  # fmt: skip
_COMPARED = COMPARED | {"IN": "is one of:", "NOT IN": "is not one of:"}
_one_at_a_time = threading.Lock()
"""pyparsing finds out how to call its functions at their first use; two threads at once break it for good."""


def explain(graph: ExportableGraph, sparql: str) -> str:
    """Explain a SELECT or ASK query, one line per condition. It need not declare the prefixes of the graph.

    Raises:
        QueryRejected: the text is not valid SPARQL 1.1, or not a SELECT or ASK query.
    """
    sparql = sparql.replace("\t", " ")  # the parser counts a tab as up to 8 characters
    expanded = expand_prefixes(sparql, graph.schema.prefixes)
    forbid_fetching(expanded)
    if carried := carried_words(sparql):
        return "\n".join(f"  {line}" if line[:1].isdigit() else line for line in carried)
    from rdflib.plugins.sparql.algebra import translateQuery

    try:
        algebra = translateQuery(parse_query(expanded)).algebra
    except Exception as error:  # rdflib raises many kinds of errors, including RecursionError
        invalid = InvalidQuery(expanded, getattr(error, "loc", 0), exact=False)
        raise unknown_prefix(expanded) or error_in(invalid, sparql, expanded) from error
    if algebra.name not in ("SelectQuery", "AskQuery"):
        raise QueryRejected("Only SELECT and ASK queries can be explained.")
    graph.labels([*map(Entity, sorted(iris_of(expanded)))])  # by one query
    return _Explainer(graph).query(algebra)


def is_of_graph(graph: ExportableGraph, sparql: str) -> bool:
    """Return whether a query uses an entity or a relation of the graph, names none, or carries its explanation."""
    iris = iris_of(expand_prefixes(sparql, graph.schema.prefixes))
    base, relations = graph.schema.id_base, graph.tables.relations
    known = any(iri in relations or (base and iri.startswith(base)) for iri in iris)
    return known or not iris or bool(graph.labels([*map(Entity, sorted(iris))]) or carried_words(sparql))


def parse_query(sparql: str) -> Any:
    """Return the parse tree of a query by rdflib, whose parser must not be used in any other way. Thread-safe.

    Raises many kinds of errors, including RecursionError, if the query is not valid.
    """
    from rdflib.plugins.sparql.parser import parseQuery

    with _one_at_a_time:
        return parseQuery(sparql)


@dataclass(frozen=True)
class _Explainer:
    """Puts the algebra of one query into words.

    `results`: the words of the aggregates, by the variables that the parser made for them.
    """

    graph: ExportableGraph
    results: dict[str, str] = field(default_factory=dict)

    def query(self, algebra: Any) -> str:
        variables = ", ".join(map(self._words, algebra.PV or ()))
        head = f"Find every {variables}" if algebra.name == "SelectQuery" else "Is there anything"
        lines = [f"  {number}. {text}" for number, text in enumerate(self._conditions(algebra.p), 1)]
        return "\n".join([f"{head} such that", *(lines or ["  (no condition)"])])

    def _conditions(self, node: Any) -> list[str]:
        inner = [self._conditions(part) for part in (node.p, node.p1, node.p2) if part is not None]
        first, second = (inner[0], " and ".join(inner[-1]) or "anything") if inner else ([], "")
        match node.name:
            case "BGP":
                return [self._triple(*triple) for triple in node.triples]
            case "values":
                names = dict.fromkeys(name for row in node.res for name in row)
                values = {name: [self._words(row[name]) for row in node.res if name in row] for name in names}
                return [f"?{name} is one of: {', '.join(words)}" for name, words in values.items()]
            case "Join":
                return first + inner[1]
            case "LeftJoin":  # one line, because the parts hold or fail together
                also = "" if node.expr.name == "TrueFilter" else f" and {self._words(node.expr)}"
                return [*first, f"optionally: {second}{also}"]
            case "Minus":
                return [*first, f"but not: {second}"]
            case "Union":
                return [f"either {' and '.join(first)} — or {second}"]
            case "Filter":
                return [*first, self._words(node.expr)]
            case "Extend" if (words := self._words(node.expr)) != f"any ?{node.var}":  # else a variable of a group
                return [*first, f"?{node.var} is {words}"]
            case "AggregateJoin":
                for each in node.A:
                    distinct = "different " if each.distinct else ""
                    self.results[each.res] = f"{_AGGREGATES[each.name]} {distinct}{self._words(each.vars)}"
                return [*first, *(f"for each {self._words(group)}" for group in node.p.expr or ())]
            case "OrderBy":
                return [*first, "the rows are sorted"]
            case "Slice":
                last = "the last" if node.length is None else node.start + node.length
                return [*first, f"of all rows, those from {node.start + 1} to {last}"]
        return first if inner else [f"(a part that cannot be explained: {node.name})"]

    def _triple(self, subject: Any, relation: Any, value: Any) -> str:
        match _kind(relation):
            case "URIRef":
                named = relations_words(self.graph, [Step(str(relation))])
            case "Variable":
                named = f"anything (?{relation})"
            case _:
                named = "a property path"
        return f"{self._words(subject)} has {named}: {self._words(value)}"

    def _words(self, term: Any) -> str:
        """Return a term or an expression in words."""
        match _kind(term):
            case "Variable":
                return self.results.get(term) or f"?{term}"
            case "URIRef":
                entity, local = Entity(str(term)), local_words(str(term))
                words = node_words(self.graph, entity)
                return words if local in words or self.graph.labels([entity]) else f"{local} ({words})"
            case "Literal":
                return f"“{clean(term)}”"
            case "BNode":
                return "something"
            case "str":  # COUNT(*), UNDEF
                return "rows" if term == "*" else "anything"
            case "RelationalExpression":
                others = term.other if isinstance(term.other, list) else [term.other]
                return f"{self._words(term.expr)} {_COMPARED[term.op]} {', '.join(map(self._words, others))}"
            case "ConditionalAndExpression":
                return " and ".join(map(self._words, (term.expr, *term.other)))
            case "ConditionalOrExpression":
                return "either " + " — or ".join(map(self._words, (term.expr, *term.other)))
            case "UnaryNot":
                return f"it is not true that {self._words(term.expr)}"
            case "Builtin_EXISTS":
                return " and ".join(self._conditions(term.graph))
            case "Builtin_NOTEXISTS":
                return f"it is not true that {' and '.join(self._conditions(term.graph))}"
            case kind:
                named = f"{kind.removeprefix('Builtin_')} of" if "Builtin" in kind else "a value computed from"
                return f"{named} {', '.join(dict.fromkeys(map(self._words, _terms(term))))}"


def _kind(term: Any) -> str:
    """Return the name of a node of the algebra; the class of a term."""
    return getattr(term, "name", "") or type(term).__name__


def _terms(node: Any) -> list[Any]:
    """Return the terms of an expression, without its operators."""
    if isinstance(node, dict):
        node = [value for key, value in node.items() if key not in ("op", "_vars") and value is not None]
    return [term for part in node for term in _terms(part)] if isinstance(node, (list, tuple)) else [node]
