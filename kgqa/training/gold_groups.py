"""Gold queries read as flat groups: triple patterns and filters, without the nesting of SPARQL's grammar."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kgqa.errors import QueryRejected
from kgqa.graph.query.tokens import forbid_fetching, tokens
from kgqa.graph.query.virtuoso_dialect import to_standard_sparql
from kgqa.model import Step

_WRAPPERS = frozenset(
    ("ConditionalOrExpression", "ConditionalAndExpression", "RelationalExpression", "AdditiveExpression",
     "MultiplicativeExpression")
)  # fmt: skip


_TAILS = ("limitoffset", "orderby", "groupby", "having", "valuesClause")


class Untranslatable(Exception):
    """A query, or a part of it, has no translation; the message says what the part is."""


@dataclass(slots=True)
class Group:
    """The content of a group pattern.

    Terms are those of rdflib; blank nodes are variables.

    Attributes:
        edges: triples of subject, step and object; a step is always outward.
        filters: expressions that must all be true.
        values: the terms that a variable may be, from VALUES.
        optional, negated: groups in OPTIONAL, and in MINUS.
        bound: variables and expressions of BIND.
    """

    edges: list[tuple[Any, Step, Any]] = field(default_factory=list)
    filters: list[Any] = field(default_factory=list)
    values: dict[Any, list[Any]] = field(default_factory=dict)
    optional: list[Group] = field(default_factory=list)
    negated: list[Group] = field(default_factory=list)
    bound: list[tuple[Any, Any]] = field(default_factory=list)

    def add(self, other: Group) -> None:
        """Add the content of a group that must match too."""
        self.edges += other.edges
        self.filters += other.filters
        if any(self.values.get(variable, values) != values for variable, values in other.values.items()):
            raise Untranslatable("several values of a variable")
        self.values |= other.values
        self.optional += other.optional
        self.negated += other.negated
        self.bound += other.bound

    @property
    def variables(self) -> set[Any]:
        return {term for edge in self.edges for term in (edge[0], edge[2]) if is_variable(term)}


def parsed(sparql: str) -> Any:
    """Return the parse tree of a SELECT or ASK query, with full IRIs.

    The tree is used instead of rdflib's algebra, which loses the filters in `A || EXISTS { ... }`.

    Raises:
        Untranslatable: the query is invalid, fetches data, or is of another form.
    """
    from rdflib.plugins.sparql.algebra import translatePath, translatePName, translatePrologue, traverse
    from rdflib.plugins.sparql.parser import parseQuery

    try:
        forbid_fetching(sparql)
        tree = parseQuery(_without_space_in_paths(to_standard_sparql(sparql)))
        prologue = translatePrologue(tree[0], None, {})
        query = traverse(tree[1], visitPost=functools.partial(translatePName, prologue=prologue))
        query = traverse(query, visitPost=translatePath)
    except QueryRejected as error:
        raise Untranslatable("not allowed") from error
    except Exception as error:  # rdflib raises many kinds of errors, including RecursionError
        raise Untranslatable("not valid SPARQL 1.1") from error
    if query.name not in ("SelectQuery", "AskQuery"):
        raise Untranslatable("neither SELECT nor ASK")
    while query.where.name == "SubSelect" and not any(name in query.where for name in _TAILS):
        if any("expr" in each for each in query.where.projection or ()):
            break
        query["where"] = query.where.where  # GrailQA renames or counts the only variable of a subquery
    return query


def _without_space_in_paths(sparql: str) -> str:
    """Remove spaces before `*` and `+` of property paths, which the standard allows and rdflib does not read."""
    items = list(tokens(sparql))
    kept = [
        token.text
        for before, token, after in zip([*items[:1], *items], items, [*items[1:], *items[-1:]])
        if not (before.kind in ("iri", "name") and token.kind == "space" and after.text in ("*", "+"))
    ]
    return "".join(kept)


def read_group(pattern: Any) -> Group:
    """Read a group pattern of a parse tree.

    Raises:
        Untranslatable: the group contains UNION, a subquery, or a property path of any length.
    """
    if pattern.name == "SubSelect":
        raise Untranslatable("subquery")
    group = Group()
    for part in pattern.part or ():
        if part.name == "TriplesBlock":
            for triples in part.triples:
                for at in range(0, len(triples), 3):
                    group.edges += _edges(_term(triples[at]), triples[at + 1], _term(triples[at + 2]))
        elif part.name == "Filter":
            group.filters += conjuncts(part.expr)
        elif part.name == "OptionalGraphPattern":
            group.optional.append(read_group(part.graph))
        elif part.name == "MinusGraphPattern":
            group.negated.append(read_group(part.graph))
        elif part.name == "GroupOrUnionGraphPattern":
            if len(part.graph) > 1:
                raise Untranslatable("union")
            group.add(read_group(part.graph[0]))
        elif part.name == "InlineData":
            if len(part.var) != 1:
                raise Untranslatable("rows of values")
            group.add(Group(values={part.var[0]: list(part.value)}))
        elif part.name == "Bind":
            group.bound.append((part.var, plain(part.expr)))
        else:
            raise Untranslatable(part.name)
    return group


def _term(term: Any) -> Any:
    from rdflib import BNode, Variable

    return Variable(f"_{term}") if isinstance(term, BNode) else term


def _edges(subject: Any, path: Any, value: Any) -> Iterator[tuple[Any, Step, Any]]:
    """Yield the triples of a property path of fixed length."""
    from rdflib import BNode, URIRef

    name = type(path).__name__
    if name == "SequencePath":
        inner = [_term(BNode()) for _ in path.args[1:]]
        for each, here, there in zip(path.args, [subject, *inner], [*inner, value]):
            yield from _edges(here, each, there)
    elif name == "InvPath":
        yield from _edges(value, path.arg, subject)
    elif isinstance(path, URIRef):
        yield subject, Step(str(path)), value
    elif is_variable(path):
        raise Untranslatable("relation as a variable")
    else:
        raise Untranslatable("path of any length" if name == "MulPath" else "alternative relations")


def is_variable(term: Any) -> bool:
    """Return whether a term is a variable."""
    return type(term).__name__ == "Variable"


def plain(expression: Any) -> Any:
    """Return an expression without the levels of the grammar that add nothing."""
    while getattr(expression, "name", "") in _WRAPPERS and "other" not in expression:
        expression = expression.expr
    return expression


def conjuncts(expression: Any) -> list[Any]:
    """Return the parts of a conjunction."""
    return _parts(expression, "ConditionalAndExpression")


def disjuncts(expression: Any) -> list[Any]:
    """Return the parts of a disjunction."""
    return _parts(expression, "ConditionalOrExpression")


def _parts(expression: Any, name: str) -> list[Any]:
    expression = plain(expression)
    if getattr(expression, "name", "") != name:
        return [expression]
    return [each for part in [expression.expr, *expression.other] for each in _parts(part, name)]
