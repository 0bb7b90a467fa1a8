"""Gold queries read with the SPARQL parser of rdflib: facts, filters and modifiers, and the paths along the facts.

The parse tree is used instead of rdflib's algebra, which changes the order of the facts.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.errors import QueryRejected, SchemaError
from kgqa.graph.query.tokens import forbid_fetching, tokens
from kgqa.graph.query.virtuoso_dialect import to_standard_sparql
from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import Schema

Edge = tuple[Any, Step, Any]
"""Subject, step and object of a fact; subject and object are terms of rdflib."""
_LEVELS = frozenset(
    ("ConditionalOrExpression", "ConditionalAndExpression", "RelationalExpression", "AdditiveExpression",
     "MultiplicativeExpression")
)  # fmt: skip
_TAILS = ("limitoffset", "orderby", "groupby", "having", "valuesClause")


class Untranslatable(Exception):
    """A query, or a part of it, has no translation; the message says what the part is."""


def ensure(holds: object, reason: str) -> None:
    """Raise `Untranslatable` with a reason unless a condition holds."""
    if not holds:
        raise Untranslatable(reason)


@dataclass(slots=True)
class Group:
    """The content of a group pattern and of the groups in it that must match too; blank nodes are variables.

    Attributes:
        edges: the facts.
        filters: expressions that must all be true.
        values: variables and the terms that each may be, from VALUES.
        optional, negated: groups in OPTIONAL, and in MINUS.
        bound: variables and expressions of BIND.
        unread: names of the parts that are more than facts and filters, such as `union`.
    """

    edges: list[Edge] = field(default_factory=list)
    filters: list[Any] = field(default_factory=list)
    values: list[tuple[Any, list[Any]]] = field(default_factory=list)
    optional: list[Group] = field(default_factory=list)
    negated: list[Group] = field(default_factory=list)
    bound: list[tuple[Any, Any]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def add(self, other: Group) -> None:
        """Add the content of a group that must match too."""
        for name in Group.__slots__:
            getattr(self, name).extend(getattr(other, name))

    @property
    def variables(self) -> set[Any]:
        return {term for subject, _, value in self.edges for term in (subject, value) if is_variable(term)}

    def every(self) -> Iterator[Group]:
        """Yield the group and the optional groups in it."""
        yield self
        for group in self.optional:
            yield from group.every()


def parsed(sparql: str) -> Any:
    """Return the parse tree of a SELECT or ASK query, with full IRIs and without idle levels of the grammar.

    Raises:
        Untranslatable: the query is invalid, fetches data, or is of another form.
    """
    from rdflib.plugins.sparql.algebra import translatePrologue, traverse
    from rdflib.plugins.sparql.parser import parseQuery

    # rdflib logs each literal whose text does not fit its datatype, such as "1999"^^xsd:dateTime
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)
    try:
        forbid_fetching(sparql)
        tree = parseQuery(_without_some_spaces(to_standard_sparql(sparql)))
        prologue = translatePrologue(tree[0], None, {})
        query = traverse(tree[1], visitPost=functools.partial(_simplified, prologue=prologue))
    except QueryRejected as error:
        raise Untranslatable("not allowed") from error
    except Exception as error:  # rdflib raises many kinds of errors, including RecursionError
        raise Untranslatable("not valid SPARQL 1.1") from error
    ensure(query.name in ("SelectQuery", "AskQuery"), "neither SELECT nor ASK")
    while query.where.name == "SubSelect" and not any(name in query.where for name in _TAILS):
        if any("expr" in each for each in query.where.projection or ()):
            break
        query["where"] = query.where.where  # GrailQA renames or counts the only variable of a subquery
    return query


def _without_some_spaces(sparql: str) -> str:
    """Remove the spaces around `^^` and before `*` and `+` of property paths, which rdflib does not read."""
    items = list(tokens(sparql))
    kept = items[:1]
    for token, after in zip(items[1:], [*items[2:], *items[-1:]]):
        before = kept[-1]
        unreadable = (before.kind in ("iri", "name") and after.text in ("*", "+")) or "^^" in (before.text, after.text)
        if token.kind != "space" or not unreadable:
            kept.append(token)
    return "".join(token.text for token in kept)


def _simplified(node: Any, prologue: Any) -> Any:
    """Return what replaces a node of a parse tree; None if the node stays."""
    from rdflib import BNode, Variable
    from rdflib.plugins.sparql.algebra import translatePath, translatePName

    if isinstance(node, BNode):
        return Variable(f"_{node}")
    if getattr(node, "name", "") in _LEVELS and "other" not in node:
        return node.expr
    term = translatePName(node, prologue)
    return translatePath(node) if term is None else term  # an empty literal is false


def read_group(pattern: Any) -> Group:
    """Read a group pattern of a parse tree."""
    group = Group()
    if pattern.name == "SubSelect":
        group.add(read_group(pattern.where))
        group.unread.append("subquery")
    for part in pattern.part or ():
        if part.name == "TriplesBlock":
            for terms in part.triples:
                for at in range(0, len(terms), 3):
                    _read_fact(group, *terms[at : at + 3])
        elif part.name == "Filter":
            group.filters += parts(part.expr, "ConditionalAndExpression")
        elif part.name == "OptionalGraphPattern":
            group.optional.append(read_group(part.graph))
        elif part.name == "MinusGraphPattern":
            group.negated.append(read_group(part.graph))
        elif part.name == "GroupOrUnionGraphPattern":
            for each in part.graph:
                group.add(read_group(each))
            group.unread += ["union"] * (len(part.graph) > 1)
        elif part.name == "InlineData" and len(part.var) == 1:
            group.values.append((part.var[0], list(part.value or ())))
        elif part.name == "Bind":
            group.bound.append((part.var, part.expr))
        else:
            if part.name == "GraphGraphPattern":
                group.add(read_group(part.graph))
            group.unread.append(part.name)
    return group


def _read_fact(group: Group, subject: Any, path: Any, value: Any) -> None:
    """Add the facts of a property path of fixed length to a group."""
    from rdflib import BNode, URIRef, Variable

    name = type(path).__name__
    if name == "SequencePath":
        inner = [Variable(f"_{BNode()}") for _ in path.args[1:]]
        for each, here, there in zip(path.args, [subject, *inner], [*inner, value]):
            _read_fact(group, here, each, there)
    elif name == "InvPath":
        _read_fact(group, value, path.arg, subject)
    elif isinstance(path, URIRef):
        group.edges.append((subject, Step(str(path)), value))
    else:
        unread = {"Variable": "relation as a variable", "MulPath": "path of any length"}
        group.unread.append(unread.get(name, "alternative relations"))


def is_variable(term: Any) -> bool:
    """Return whether a term is a variable."""
    return type(term).__name__ == "Variable"


def is_entity(term: Any) -> bool:
    """Return whether a term is an IRI."""
    return type(term).__name__ == "URIRef"


def parts(expression: Any, name: str) -> list[Any]:
    """Return the parts of a conjunction or disjunction, whichever `name` says."""
    if getattr(expression, "name", "") != name:
        return [expression]
    return [each for part in [expression.expr, *expression.other] for each in parts(part, name)]


def nodes_in(tree: Any) -> Iterator[Any]:
    """Yield all nodes of a part of a parse tree, in the order of the query."""
    yield tree
    children: Iterable[Any] = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for child in children:
        yield from nodes_in(child)


class Facts:
    """The facts of a query as a graph; several uses of an entity or literal are not connected by it.

    Attributes:
        edges: map from a term to its steps and the terms at their other ends.
        distinct: the distinct facts.
    """

    def __init__(self, edges: Iterable[Edge], fixed: Mapping[Any, Any]) -> None:
        self.fixed = fixed
        self.distinct = list(dict.fromkeys((fixed.get(s, s), step, fixed.get(o, o)) for s, step, o in edges))
        self.edges: dict[Any, list[tuple[Step, Any]]] = {}
        for subject, step, value in self.distinct:
            self.edges.setdefault(subject, []).append((step, value))
            self.edges.setdefault(value, []).append((step.reversed(), subject))

    @property
    def entities(self) -> list[Any]:
        """The entities, in the order of the query."""
        return [term for term in self.edges if is_entity(term)]

    def starts(self, topic: Any) -> list[tuple[Step, Any]]:
        """Return the steps from an entity to variables."""
        return [(step, term) for step, term in self.edges.get(topic, ()) if is_variable(term)]

    def path(self, starts: Iterable[tuple[Step, Any]], goal: Any) -> tuple[tuple[Step, ...], tuple[Any, ...]] | None:
        """Return the steps of the shortest path through variables to a variable, and its nodes; None if there is none.

        Args:
            starts: the first steps that the path may take, with the variables that they lead to.
            goal: the variable.
        """
        paths: list[tuple[tuple[Step, ...], tuple[Any, ...]]] = [((step,), (node,)) for step, node in starts]
        reached = {nodes[-1] for _, nodes in paths}
        for steps, nodes in paths:
            if nodes[-1] == goal:
                return steps, nodes
            onward = [(step, node) for step, node in self.starts(nodes[-1]) if node not in reached]
            paths += [((*steps, step), (*nodes, node)) for step, node in onward]
            reached.update(node for _, node in onward)
        return None


def query_facts(sparql: str) -> tuple[Any, Facts, list[tuple[Any, Any]]]:
    """Return the first variable that a SELECT query asks for, its facts, and the pairs of terms that must not be equal.

    The facts of all alternatives and of what is optional are among them.

    Raises:
        Untranslatable: the query cannot be read, has no facts or asks for no variable.
    """
    query = parsed(sparql)
    ensure(query.name == "SelectQuery", "no variable is asked for")
    groups = list(read_group(query.where).every())
    answer = next((node for node in nodes_in(query.projection or query.where) if is_variable(node)), None)
    fixed = {variable: values[0] for group in groups for variable, values in group.values if len(values) == 1}
    facts = Facts([edge for group in groups for edge in group.edges], fixed)
    ensure(answer is not None and facts.distinct, "no facts")
    filters = [each for group in groups for each in nodes_in(group.filters) if getattr(each, "op", "") == "!="]
    return answer, facts, [(each.expr, each.other) for each in filters if is_variable(each.expr)]


@functools.lru_cache(maxsize=1 << 14)  # training reads the paths of a question several times
def query_paths(sparql: str, topics: tuple[str, ...] = ()) -> tuple[RelationPath, ...]:
    """Return for each topic the shortest path through variables of a query to the variable that the query asks for.

    Conditions of the query on other nodes, such as a role or a year, are not part of a path.

    Args:
        sparql: The gold query.
        topics: IRIs of the topics. If empty, the topic is an entity that the query excludes from the answers
            (`?x != <topic>`), or else the first entity with a path to the answer.
    """
    from rdflib import URIRef

    try:
        answer, facts, unequal = query_facts(sparql)
    except Untranslatable:
        return ()
    excluded = [value for _, value in unequal if is_entity(value) and value in facts.edges]
    wanted = list(map(URIRef, topics)) or excluded or facts.entities
    found = [(topic, path[0]) for topic in wanted if (path := facts.path(facts.starts(topic), answer))]
    return tuple(RelationPath(Entity(str(topic)), steps) for topic, steps in (found if topics else found[:1]))


def gold_paths(
    row: Mapping[str, Any], schema: Schema, *, by_local_name: Mapping[str, str] | None = None
) -> list[RelationPath]:
    """Return the gold paths of a question, at most one for each topic.

    Args:
        row: A line of a question file, with `gold_path`, `gold_chains` or `sparql`, and `topic_entities` if known.
        schema: Schema of the ids in the line.
        by_local_name: Map from the last part of a relation's IRI to the IRI, for chains that use only the last part.
    """
    topics = [_iri(item.get("id") or "", schema) for item in row.get("topic_entities") or ()]
    # a chain alternates between nodes and relations, and begins with the topic
    chains = [row["gold_path"]] if row.get("gold_path") else [chain[1::2] for chain in row.get("gold_chains") or ()]
    found = [
        RelationPath(Entity(topic), steps)
        for topic, chain in zip(topics, chains)
        if topic and (steps := _steps(chain, schema, by_local_name or {}))
    ]
    queries = [] if found else [row[key] for key in ("sparql", "sparql_portable") if row.get(key)]
    given = tuple(filter(None, topics))
    return next((list(paths) for sparql in queries if (paths := query_paths(sparql, given))), found)


def _steps(chain: Sequence[str], schema: Schema, by_local_name: Mapping[str, str]) -> tuple[Step, ...]:
    """Return the steps of a chain, or () if a relation is unknown; `^` marks a relation followed backwards."""
    steps = []
    for text in chain:
        name = text.removeprefix("^")
        relation = by_local_name.get(name) or _iri(name, schema)
        if relation is None:
            return ()
        steps.append(Step(relation, "in" if text.startswith("^") else "out"))
    return tuple(steps)


def _iri(text: str, schema: Schema) -> str | None:
    try:
        return schema.iri(text)
    except SchemaError:
        return None
