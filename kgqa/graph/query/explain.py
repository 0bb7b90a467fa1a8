"""Explanation of a SPARQL query in plain words, from its algebra and the graph's labels, without a language model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from kgqa.errors import InvalidQuery, QueryRejected
from kgqa.graph.query.aggregate_words import Aggregates
from kgqa.graph.query.export import ExportableGraph
from kgqa.graph.query.handwritten import declare_prefixes, declared_prefixes, iris_of, unknown_prefix, words_in_comments
from kgqa.graph.query.operation_words import COMPARED, EXISTS, converted, own_operation, value_kind
from kgqa.graph.query.parsing import parse_query
from kgqa.graph.query.tokens import decode_codepoints, forbid_fetching
from kgqa.model import Entity
from kgqa.schema import usable_prefixes
from kgqa.text.words import clean, local_words, short_words

_CONDITION_VALUE = re.compile(r"c[0-9]+_[0-9]+")
_PATH_NODE = re.compile(r"e([0-9]+)")
_JOINED = {"LeftJoin": "optionally: ", "Minus": "but not: "}


class ExplainableGraph(ExportableGraph, Protocol):
    """The part of `KnowledgeGraph` that the explanation needs."""

    @property
    def relations(self) -> Mapping[str, int]: ...


def explain(graph: ExplainableGraph, sparql: str) -> str:
    """Explain a SELECT or ASK query, one line per condition. It need not declare the prefixes of the graph.

    The names in a query of another graph are those in its comments, or the ends of its IRIs.

    Raises:
        QueryRejected: the text is not valid SPARQL 1.1, or not a SELECT or ASK query.
    """
    sparql = decode_codepoints(sparql).replace("\t", " ")  # the parser counts a tab as up to 8 characters
    declared = declare_prefixes(sparql, graph.schema.prefixes)
    forbid_fetching(declared)
    try:
        algebra = parse_query(declared).algebra
    except Exception as error:  # rdflib raises many kinds of errors, including RecursionError
        raise unknown_prefix(declared) or _parser_error(error, sparql, declared) from error
    if algebra.name not in ("SelectQuery", "AskQuery"):
        raise QueryRejected("Only SELECT and ASK queries can be explained.")
    return _Explainer(graph, declared).query(algebra)


def is_of_graph(graph: ExplainableGraph, sparql: str) -> bool:
    """Return whether a query uses an entity or a relation of the graph, or names none."""
    declared = declare_prefixes(decode_codepoints(sparql), graph.schema.prefixes)
    iris, base = iris_of(declared), graph.schema.id_base
    if not iris or (base and any(iri.startswith(base) for iri in iris)):
        return True
    return bool(graph.labels(map(Entity, sorted(iris)))) or not iris.isdisjoint(graph.tables.relations)


def _parser_error(error: Exception, sparql: str, declared: str) -> QueryRejected:
    from pyparsing import ParseBaseException

    if isinstance(error, ParseBaseException):
        return InvalidQuery(sparql, max(error.loc - (len(declared) - len(sparql)), 0), exact=False)
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return QueryRejected(f"Not valid SPARQL 1.1: {first[:200]}")


class _Explainer:
    """Collects the conditions of one query."""

    def __init__(self, graph: ExplainableGraph, sparql: str) -> None:
        self._graph = graph
        self._foreign = not is_of_graph(graph, sparql)
        self._comments = words_in_comments(sparql) if self._foreign else {}
        self._schema = graph.schema.with_prefixes(usable_prefixes(declared_prefixes(sparql)))
        self._names: dict[Entity, str] = {}
        self._aggregates = Aggregates()
        self._values_of_conditions: list[tuple[str, str, str]] = []
        """For each triple that ends in the value of a condition: its text, the value, and the relation in words."""

    def query(self, algebra: Any) -> str:
        self._names = self._graph.labels(Entity(str(iri)) for iri in sorted(_iris(algebra)))
        extras: list[str] = []
        own = own_operation(algebra, self._relation_to) if algebra.name == "SelectQuery" else None
        patterns = own.patterns if own else (algebra.p,)
        conditions = [text for pattern in patterns for text in self._merged(self._walk(pattern, extras))]
        if algebra.name == "AskQuery":
            head = f"{EXISTS} such that"
        elif own:
            head = own.head
            extras += [own.tail] if own.tail else []
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
        if name == "Join":
            return self._walk(node.p1, extras) + self._walk(node.p2, extras)
        if name in _JOINED:
            conditions, inner = self._walk(node.p1, extras), self._walk(node.p2, extras)
            if name == "LeftJoin" and getattr(node.expr, "name", "") != "TrueFilter":
                inner += self._filter(node.expr)
            # one line, because the parts hold or fail together
            return [*conditions, _JOINED[name] + " and ".join(self._merged(inner))] if inner else conditions
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
            if not self._aggregates.is_group_variable(node):
                conditions.append(f"?{node['var']} is {self._aggregates.words(node.expr)}")
        elif name == "AggregateJoin":
            extras += filter(None, [self._aggregates.add(node)])
        elif name == "Slice":
            extras += [f"Leave out the first {node.start}."] if node.start else []
            extras += [f"Return at most {node.length}."] if node.length is not None else []
        elif name == "OrderBy":
            extras.append("Sort them.")
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

    def _relation_to(self, pattern: Any, variable: Any) -> str:
        """Return the words of the relation that leads to the variable in a pattern."""
        triples = [triple for triple in _in_order([*_triples(pattern)]) if variable in (triple[0], triple[2])]
        return self._relation(min(triples, key=lambda triple: _distance(triple, variable))[1])

    def _merged(self, conditions: list[str]) -> list[str]:
        """Join the text of a triple that ends in the value of a condition with the texts about this value."""
        for triple, value, words in self._values_of_conditions:
            tests = [text for text in conditions if text.startswith(f"{value} is ")]
            if triple in conditions and tests:
                kept = [text for text in tests if text not in (f"{value} is a number", f"{value} is a date")] or tests
                place = conditions.index(triple)
                conditions = [text for text in conditions if text != triple and text not in tests]
                conditions[place:place] = [words + text.removeprefix(value) for text in kept]
        return conditions

    def _triple(self, subject: Any, relation: Any, object_: Any) -> str:
        words = self._relation(relation)
        text = f"{self._term(subject)} has {words}: {self._term(object_)}"
        if _is_variable(object_) and _CONDITION_VALUE.fullmatch(object_):
            self._values_of_conditions.append((text, f"?{object_}", f"{words} of {self._term(subject)}"))
        return text

    def _relation(self, relation: Any) -> str:
        if _is_variable(relation):
            return f"anything (?{relation})"
        if hasattr(relation, "toPython") and not hasattr(relation, "args"):
            words = short_words(str(relation), self._graph.schema, self._graph.tables.relation_labels)
            return f"“{clean(self._comments.get(str(relation), words))}”"
        return "a property path"

    def _filter(self, expression: Any) -> list[str]:
        name = getattr(expression, "name", "")
        if name == "RelationalExpression" and expression.op in COMPARED:
            if found := converted(expression):
                return [f"{self._term(found[0])} is {found[1]}"]
            if getattr(expression.expr, "name", "") == "Builtin_STR":  # STR(term) is explained like its term
                return [f"{self._term(expression.expr.arg)} {COMPARED[expression.op]} {self._term(expression.other)}"]
            return [f"{self._term(expression.expr)} {COMPARED[expression.op]} {self._term(expression.other)}"]
        if name == "RelationalExpression" and expression.op == "IN":
            # STR(term) is explained like its term
            parts = (expression.expr, *expression.other)
            tested, *listed = [each.arg if getattr(each, "name", "") == "Builtin_STR" else each for each in parts]
            return [f"{self._term(tested)} is one of: {', '.join(map(self._term, listed))}"]
        if name == "Builtin_isIRI":
            return [f"{self._term(expression.arg)} is an entity"]
        if name == "ConditionalAndExpression":
            return [text for part in [expression.expr, *expression.other] for text in self._filter(part)]
        if name == "Builtin_REGEX" and value_kind(expression) and getattr(expression.text, "name", "") == "Builtin_STR":
            return [f"{self._term(expression.text.arg)} is {value_kind(expression)}"]
        if name == "Builtin_NOTEXISTS":
            inner = self._merged(self._walk(expression.graph, []))
            absent = [words for triple, _, words in self._values_of_conditions if [triple] == inner]
            return [f"there is no {absent[0]}" if absent else f"it is not true that {' and '.join(inner)}"]
        return ["another filter holds"]

    def _term(self, term: Any) -> str:
        if _is_variable(term):
            return self._aggregates.of(term) or f"?{term}"
        if type(term).__name__ == "URIRef":
            label = self._names.get(Entity(str(term))) or self._comments.get(str(term))
            if not label and self._foreign:
                label = local_words(str(term))
            short = self._schema.short_id(str(term))
            return f"{clean(label)} ({short})" if label else clean(short)
        if type(term).__name__ == "Literal":
            return f"“{clean(str(term))}”"
        if type(term).__name__ == "BNode":
            return "something"
        return self._aggregates.words(term)


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


def _distance(triple: Any, variable: Any) -> int:
    """Return 0 if a triple leads to the variable from an earlier node of a path, 1 from a known term, otherwise 2."""
    other = triple[2] if triple[0] == variable else triple[0]
    if not _is_variable(other):
        return 1
    node, before = _PATH_NODE.fullmatch(variable), _PATH_NODE.fullmatch(other)
    return 0 if before and (node is None or int(before[1]) < int(node[1])) else 2


def _unknown(term: Any, known: set[Any]) -> bool:
    return _is_variable(term) and term not in known


def _iris(node: Any) -> set[Any]:
    """Collect all IRIs in an algebra."""
    if type(node).__name__ == "URIRef":
        return {node}
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, (list, tuple, set)) else ()
    return set().union(*map(_iris, parts))


def _triples(node: Any) -> Iterator[Any]:
    """Yield all triple patterns in an algebra."""
    if getattr(node, "name", "") == "BGP":
        yield from node.triples
    for part in node.values() if isinstance(node, dict) else ():
        yield from _triples(part)
