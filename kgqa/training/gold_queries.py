"""Gold queries read with the SPARQL parser of rdflib: facts, what their patterns have beside facts, and relation paths.

The parse tree is used instead of rdflib's algebra, which changes the order of the facts.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kgqa.errors import SchemaError
from kgqa.graph.query.explain import parse_query
from kgqa.graph.query.tokens import Token, forbid_fetching, to_standard_sparql, tokens
from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import Schema

Fact = tuple[Any, Any, Any]
"""Subject, step and object. Subject and object are terms of rdflib; a relation that is not fixed stays a path of it."""
_LEVELS = frozenset(
    ("ConditionalOrExpression", "ConditionalAndExpression", "RelationalExpression", "AdditiveExpression",
     "MultiplicativeExpression")
)  # fmt: skip
_TAILS = ("expr", "limitoffset", "orderby", "groupby", "having", "valuesClause")
_CONDITIONS = ("Builtin_EXISTS", "Builtin_NOTEXISTS", "MinusGraphPattern")


class Untranslatable(Exception):
    """A query, or a part of it, has no translation; the message says what the part is."""


def ensure(holds: object, reason: str) -> None:
    """Raise `Untranslatable` with a reason unless a condition holds."""
    if not holds:
        raise Untranslatable(reason)


def parsed(sparql: str) -> Any:
    """Return the parse tree of a SELECT or ASK query, with full IRIs and without idle levels of the grammar.

    Blank nodes are variables.

    Raises:
        Untranslatable: the query is invalid, fetches data, or is of another form.
    """
    from rdflib.plugins.sparql import algebra

    # rdflib logs each literal whose text does not fit its datatype, such as "1999"^^xsd:dateTime
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)
    try:
        forbid_fetching(sparql)
        tree = parse_query(_without_some_spaces(to_standard_sparql(sparql)))
        prologue = algebra.translatePrologue(tree[0], None, {})
        query = algebra.traverse(tree[1], visitPost=functools.partial(_simplified, prologue=prologue))
    except Exception as error:  # rdflib raises many kinds of errors, including RecursionError
        raise Untranslatable("not allowed, or not valid SPARQL 1.1") from error
    ensure(query.name in ("SelectQuery", "AskQuery"), "neither SELECT nor ASK")
    return query


def _without_some_spaces(sparql: str) -> str:
    """Remove the spaces around `^^` and before `*` and `+` of property paths, which rdflib does not read."""
    space = Token("space", " ")
    items = [space, *tokens(sparql), space]
    return "".join(
        here.text
        for before, here, after in zip(items, items[1:], items[2:])
        if here.kind != "space"
        or not ("^^" in (before.text, after.text) or (before.kind in ("iri", "name") and after.text in ("*", "+")))
    )


def _simplified(node: Any, prologue: Any) -> Any:
    """Return what replaces a node of a parse tree; None if the node stays."""
    from rdflib import BNode, Variable
    from rdflib.plugins.sparql.algebra import translatePath, translatePName

    if isinstance(node, BNode):
        return Variable(f"_{node}")
    if name_of(node) in _LEVELS and "other" not in node:
        return node.expr
    term = translatePName(node, prologue)
    return translatePath(node) if term is None else term  # an empty literal is false


def name_of(node: Any) -> str:
    """Return the name of a node of a parse tree; "" for a term."""
    return getattr(node, "name", "")


def is_variable(term: Any) -> bool:
    """Return whether a term is a variable."""
    return type(term).__name__ == "Variable"


def is_entity(term: Any) -> bool:
    """Return whether a term is an IRI."""
    return type(term).__name__ == "URIRef"


def nodes_in(tree: Any, *, outside: Sequence[str] = ()) -> Iterator[Any]:
    """Yield all nodes of a part of a parse tree in the order of the query, except inside nodes with certain names."""
    yield tree
    children: Iterable[Any] = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for child in children:
        if name_of(child) not in outside:
            yield from nodes_in(child, outside=outside)


def parts(expression: Any, name: str) -> list[Any]:
    """Return the parts of a conjunction or disjunction, whichever `name` says."""
    if name_of(expression) != name:
        return [expression]
    return [each for part in [expression.expr, *expression.other] for each in parts(part, name)]


def read_group(pattern: Any) -> tuple[list[Fact], list[Any]]:
    """Return the facts of a group pattern, and its other parts; a conjunction in a filter is several parts.

    Raises:
        Untranslatable: the pattern is a subquery that does more than name its variables, or has a relation that is
            not fixed.
    """
    every = list(_parts_of(pattern))
    facts = [fact for part in every if part.name == "TriplesBlock" for fact in _facts_in(part)]
    ensure(all(isinstance(step, Step) for _, step, _ in facts), "relation that is not fixed")
    filters = [each for part in every if part.name == "Filter" for each in parts(part.expr, "ConditionalAndExpression")]
    return facts, [*filters, *(part for part in every if part.name not in ("TriplesBlock", "Filter"))]


def _parts_of(pattern: Any) -> Iterator[Any]:
    """Yield the parts of a group pattern, and of the groups in it that add no condition of their own."""
    while pattern.name == "SubSelect":
        names = {*pattern, *(name for each in pattern.projection or () for name in each)}
        ensure(names.isdisjoint(_TAILS), "subquery")
        pattern = pattern.where
    for part in pattern.part or ():
        alone = part.name == "GroupOrUnionGraphPattern" and len(part.graph) == 1
        yield from _parts_of(part.graph[0]) if alone else [part]


def _facts_in(block: Any) -> Iterator[Fact]:
    for terms in block.triples:
        for at in range(0, len(terms), 3):
            yield from _facts_along(*terms[at : at + 3])


def _facts_along(subject: Any, path: Any, value: Any) -> Iterator[Fact]:
    """Yield the facts of a property path, one for each step."""
    from rdflib import BNode, Variable

    name = type(path).__name__
    if name == "SequencePath":
        inner = [Variable(f"_{BNode()}") for _ in path.args[1:]]
        for terms in zip([subject, *inner], path.args, [*inner, value]):
            yield from _facts_along(*terms)
    elif name == "InvPath":
        yield from _facts_along(value, path.arg, subject)
    else:
        yield subject, Step(str(path)) if is_entity(path) else path, value


def edges_of(facts: Iterable[Fact]) -> dict[Any, list[tuple[Step, Any]]]:
    """Return a map from each term to its steps and the terms at their other ends."""
    edges: dict[Any, list[tuple[Step, Any]]] = {}
    for subject, step, value in dict.fromkeys(facts):
        edges.setdefault(subject, []).append((step, value))
        edges.setdefault(value, []).append((step.reversed(), subject))
    return edges


def query_facts(sparql: str) -> tuple[Any, list[Fact], list[tuple[Any, Any]], dict[Any, Any]]:
    """Return the first variable that a SELECT query asks for, and the facts of the query.

    Also returned are the pairs of terms that must not be equal, the first a variable, and the values of the variables
    that have a single one in VALUES; the facts have the values in place of these variables. The facts of all
    alternatives and of what is optional are among the facts.

    Raises:
        Untranslatable: the query cannot be read, has no facts or asks for no variable.
    """
    query = parsed(sparql)
    ensure(query.name == "SelectQuery", "no variable is asked for")
    nodes = list(nodes_in(query.where, outside=_CONDITIONS))
    values = {
        node.var[0]: node.value[0]
        for node in nodes
        if name_of(node) == "InlineData" and len(node.var) == len(node.value or ()) == 1
    }
    facts = [fact for node in nodes if name_of(node) == "TriplesBlock" for fact in _facts_in(node)]
    known = [(values.get(s, s), step, values.get(o, o)) for s, step, o in facts if isinstance(step, Step)]
    answer = next((node for node in nodes_in(query.projection or query.where) if is_variable(node)), None)
    ensure(answer is not None and known, "no facts")
    unequal = [(node.expr, node.other) for node in nodes if getattr(node, "op", "") == "!=" and is_variable(node.expr)]
    return answer, list(dict.fromkeys(known)), unequal, values


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
        answer, facts, unequal, _ = query_facts(sparql)
    except Untranslatable:
        return ()
    edges = edges_of(facts)
    excluded = [value for _, value in unequal if is_entity(value) and value in edges]
    wanted = list(map(URIRef, topics)) or excluded or list(filter(is_entity, edges))
    found = [(topic, steps) for topic in wanted if (steps := _shortest(edges, topic, answer))]
    return tuple(RelationPath(Entity(str(topic)), steps) for topic, steps in (found if topics else found[:1]))


def _shortest(edges: Mapping[Any, Sequence[tuple[Step, Any]]], topic: Any, answer: Any) -> tuple[Step, ...]:
    """Return the steps of the shortest path through variables; () if there is none."""
    steps: dict[Any, tuple[Step, ...]] = {topic: ()}
    queue = [topic]
    for node in queue:
        for step, other in edges.get(node, ()):
            if is_variable(other) and other not in steps:
                steps[other] = (*steps[node], step)
                queue.append(other)
    return steps.get(answer, ())


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
    names = [text.removeprefix("^") for text in chain]
    relations = [by_local_name.get(name) or _iri(name, schema) for name in names]
    steps = [Step(iri, "in" if text.startswith("^") else "out") for text, iri in zip(chain, relations) if iri]
    return tuple(steps) if len(steps) == len(chain) else ()


def _iri(text: str, schema: Schema) -> str | None:
    try:
        return schema.iri(text)
    except SchemaError:
        return None
