"""The gold relation paths of a question, from each topic to the answer, read from the question's gold query or chain.

Conditions of the query on other nodes, such as a role or a year, are not part of a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import QueryRejected, SchemaError
from kgqa.graph.query.tokens import Token, prepare_for_engine, tokens
from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import Schema

TermTriple = tuple[str, str, str]
_TERMS = ("variable", "iri", "name", "string", "number", "blank")
_TAILS = ("ORDER", "GROUP", "HAVING", "LIMIT", "OFFSET")
_APART = ("EXISTS", "MINUS", "VALUES")


def gold_paths(
    row: Mapping[str, Any], schema: Schema, *, by_local_name: Mapping[str, str] | None = None
) -> list[RelationPath]:
    """Return the gold paths of a question, at most one for each topic.

    Args:
        row: A line of a question file, with `gold_path`, `gold_chains` or `sparql`, and `topic_entities` if known.
        schema: Schema of the ids in the line.
        by_local_name: Map from the last part of a relation's IRI to the IRI, for chains that use only the last part.
    """
    topics = [_iri(item.get("id"), schema) for item in _objects(row.get("topic_entities"))]
    for relations in _chains(row):
        found = [
            RelationPath(Entity(topic), steps)
            for topic, chain in zip(topics, relations)
            if topic and (steps := _steps(chain, schema, by_local_name or {}))
        ]
        if found:
            return found
    for key in ("sparql", "sparql_portable"):
        if isinstance(row.get(key), str) and (paths := query_paths(row[key], [t for t in topics if t])):
            return paths
    return []


def query_paths(sparql: str, topics: Sequence[str] = ()) -> list[RelationPath]:
    """Return for each topic the shortest path through variables of a query to the variable that the query asks for.

    Args:
        sparql: The gold query.
        topics: IRIs of the topics. If empty, the topic is an entity that the query excludes from the answers
            (`?x != <topic>`), or else the first entity with a path to the answer.
    """
    read = _read(sparql)
    if read is None:
        return []
    items, answer, edges, _ = read
    named = list(dict.fromkeys(term for s, _, o in edges for term in (s, o) if term.startswith("<")))
    wanted = (
        [f"<{topic}>" for topic in topics]
        or [
            value.text  # an entity that a variable must not equal
            for variable, operator, value in zip(items, items[1:], items[2:])
            if variable.kind == "variable" and operator.text == "!=" and value.kind == "iri" and value.text in named
        ]
    )
    found = [(term, steps) for term in wanted or named if (steps := _chain(edges, term, answer))]
    if not topics:
        found = found[:1]
    return [RelationPath(Entity(term[1:-1]), steps) for term, steps in found]


@dataclass(frozen=True, slots=True)
class QueryPattern:
    """The plain triple patterns of a gold query.

    Attributes:
        edges: Triples of terms; a term is `?name` or N-Triples text.
        different: Pairs of terms that must not be equal.
        answer: The variable that the query asks for.
    """

    edges: tuple[TermTriple, ...]
    different: tuple[tuple[str, str], ...]
    answer: str


def query_pattern(sparql: str) -> QueryPattern | None:
    """Return the triple patterns of a gold query; None if it has no triple pattern or asks for no variable."""
    read = _read(sparql)
    if read is None:
        return None
    items, answer, edges, stands_for = read
    triples = zip(items, items[1:], items[2:])
    unequal = [(_name(a), _name(c)) for a, b, c in triples if a.kind == "variable" and b.text == "!="]
    different = tuple((stands_for.get(a, a), stands_for.get(c, c)) for a, c in unequal if c[0] in "?<")
    if not any(answer in (s, o) for s, _, o in edges):
        # the variable asked for is bound to an expression (`?x AS ?value`)
        named = [_name(token) for token in items if token.kind == "variable"]
        answer = next((name for name in named if any(name in (s, o) for s, _, o in edges)), answer)
    return QueryPattern(edges, different, answer)


def _read(sparql: str) -> tuple[list[Token], str, tuple[TermTriple, ...], dict[str, str]] | None:
    """Return a query's tokens, first variable of the first SELECT, triple patterns and the entities of variables.

    Returns None if the query cannot be read, has no triple pattern or asks for no variable.
    """
    try:
        items = [token for token in tokens(prepare_for_engine(sparql)) if token.kind not in ("space", "comment")]
    except QueryRejected:
        return None
    select = next((n for n, token in enumerate(items) if token.text.upper() == "SELECT"), len(items))
    answer = next((_name(token) for token in items[select:] if token.kind == "variable"), None)
    stands_for = _values(items)
    edges = tuple((stands_for.get(s, s), r, stands_for.get(o, o)) for s, r, o in dict.fromkeys(_edges(items)))
    return (items, answer, edges, stands_for) if answer is not None and edges else None


def _values(items: Sequence[Token]) -> dict[str, str]:
    """Map each variable with a clause `VALUES ?x { <entity> }` to that entity."""
    found = {}
    for keyword, variable, opening, value, closing in zip(*(items[offset:] for offset in range(5))):
        is_values = keyword.text.upper() == "VALUES" and variable.kind == "variable"
        if is_values and opening.text == "{" and value.kind == "iri" and closing.text == "}":
            found[_name(variable)] = value.text
    return found


def _edges(items: Sequence[Token]) -> Iterator[TermTriple]:
    """Yield the triple patterns of a query, except those in EXISTS, MINUS and VALUES."""
    terms: list[str] = []
    plain = True
    at = 0
    while at < len(items):
        token = items[at]
        upper = token.text.upper() if token.kind == "word" else ""
        if token.text == "(":
            at = _after(items, at, "(", ")")
            continue
        if upper in _APART:
            while at < len(items) and items[at].text != "{":
                at += 1
            at = _after(items, at, "{", "}")
            continue
        if upper in ("SELECT", *_TAILS):
            while at < len(items) and items[at].text not in ("{", "}"):
                at = _after(items, at, "(", ")") if items[at].text == "(" else at + 1
            continue
        if token.kind in _TERMS:
            terms.append(_name(token))
        elif token.text in (".", ";", ",", "{", "}") or upper in ("FILTER", "OPTIONAL", "UNION", "BIND", "GRAPH"):
            if plain and len(terms) == 3:
                yield terms[0], terms[1], terms[2]
            terms = terms[: {";": 1, ",": 2}.get(token.text, 0)]
            plain = True
        elif token.kind == "mark":
            plain = False  # a property path, a list or a typed literal is not a plain triple pattern
        at += 1


def _after(items: Sequence[Token], at: int, opening: str, closing: str) -> int:
    """Return the index after the bracket that closes the one at `at`."""
    depth = 0
    while at < len(items):
        depth += {opening: 1, closing: -1}.get(items[at].text, 0)
        at += 1
        if depth <= 0:
            break
    return at


def _chain(edges: Sequence[TermTriple], start: str, goal: str) -> tuple[Step, ...]:
    """Return the shortest path through variables from an entity to a variable; of several, the first in the query."""
    reached: dict[str, tuple[Step, ...]] = {start: ()}
    frontier = [start]
    while frontier and goal not in reached:
        onward: list[str] = []
        for node in frontier:
            for subject, relation, value in edges:
                if not relation.startswith("<"):
                    continue
                for here, there, direction in ((subject, value, "out"), (value, subject, "in")):
                    if here == node and there[0] == "?" and there not in reached:
                        reached[there] = (*reached[node], Step(relation[1:-1], direction))  # type: ignore[arg-type]
                        onward.append(there)
        frontier = onward
    return reached.get(goal, ())


def _name(token: Token) -> str:
    return f"?{token.text[1:]}" if token.kind == "variable" else token.text


def _chains(row: Mapping[str, Any]) -> Iterator[list[list[str]]]:
    """Yield the gold chains of a line as written, each as a list with one chain of relations per topic."""
    path = row.get("gold_path")
    if isinstance(path, list) and path and all(isinstance(item, str) for item in path):
        yield [path]
    chains = row.get("gold_chains")
    if isinstance(chains, list) and chains and all(isinstance(chain, list) for chain in chains):
        # a chain alternates between nodes and relations, and begins with the topic
        yield [[str(item) for item in chain[1::2]] for chain in chains]


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


def _iri(text: Any, schema: Schema) -> str | None:
    try:
        return schema.iri(text) if isinstance(text, str) else None
    except SchemaError:
        return None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
