"""The gold relation paths of a question: from each topic to what is asked for, read from its gold query or chain.

Only what leads from a topic to the answer counts; conditions on the nodes between (a role, a year) do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import QueryRejected, SchemaError
from kgqa.graph.query.tokens import Token, prepare_for_engine, tokens
from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import Schema

Triple = tuple[str, str, str]
_TERMS = ("variable", "iri", "name", "string", "number", "blank")
_TAILS = ("ORDER", "GROUP", "HAVING", "LIMIT", "OFFSET")
_APART = ("EXISTS", "MINUS", "VALUES")


def gold_paths(
    row: Mapping[str, Any], schema: Schema, *, by_local_name: Mapping[str, str] | None = None
) -> list[RelationPath]:
    """The gold paths of a question in the project's format, one for each topic that has one.

    Args:
        row: a line of a question file: `gold_path`, `gold_chains` or `sparql`, and `topic_entities` if known.
        by_local_name: relations of the graph by the end of their IRIs, for chains that name them so.
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
    """The shortest chain of variables from each topic to the variable that is asked for.

    Args:
        topics: IRIs; empty for what the query says is no answer of its own (`?x != <topic>`), else the first
            entity from which a chain leads to the answer.
    """
    try:
        items = [token for token in tokens(prepare_for_engine(sparql)) if token.kind not in ("space", "comment")]
    except QueryRejected:
        return []
    answer = _asked_for(items)
    stands_for = _values(items)
    edges = [(stands_for.get(s, s), r, stands_for.get(o, o)) for s, r, o in dict.fromkeys(_edges(items))]
    if answer is None or not edges:
        return []
    named = list(dict.fromkeys(term for s, _, o in edges for term in (s, o) if term.startswith("<")))
    wanted = [f"<{topic}>" for topic in topics] or [term for term in _excluded(items) if term in named]
    found = [(term, steps) for term in wanted or named if (steps := _chain(edges, term, answer))]
    if not topics:
        found = found[:1]
    return [RelationPath(Entity(term[1:-1]), steps) for term, steps in found]


@dataclass(frozen=True, slots=True)
class QueryPattern:
    """What a gold query matches, filters and all that is no plain triple pattern left out. Terms are `?name` or
    N-Triples text; `different`: pairs of terms that must not be equal; `answer`: the variable that is asked for.
    """

    edges: tuple[Triple, ...]
    different: tuple[tuple[str, str], ...]
    answer: str


def query_pattern(sparql: str) -> QueryPattern | None:
    """The triple patterns of a gold query; None where it has none, or asks for no variable."""
    try:
        items = [token for token in tokens(prepare_for_engine(sparql)) if token.kind not in ("space", "comment")]
    except QueryRejected:
        return None
    answer, stands_for = _asked_for(items), _values(items)
    edges = tuple((stands_for.get(s, s), r, stands_for.get(o, o)) for s, r, o in dict.fromkeys(_edges(items)))
    if answer is None or not edges:
        return None
    triples = zip(items, items[1:], items[2:])
    unequal = [(_name(a), _name(c)) for a, b, c in triples if a.kind == "variable" and b.text == "!="]
    different = tuple((stands_for.get(a, a), stands_for.get(c, c)) for a, c in unequal if c[0] in "?<")
    if not any(answer in (s, o) for s, _, o in edges):
        # what is asked for is bound to something else (`?x AS ?value`)
        named = [_name(token) for token in items if token.kind == "variable"]
        answer = next((name for name in named if any(name in (s, o) for s, _, o in edges)), answer)
    return QueryPattern(edges, different, answer)


def _asked_for(items: Sequence[Token]) -> str | None:
    """The first variable of the first SELECT."""
    select = next((n for n, token in enumerate(items) if token.text.upper() == "SELECT"), len(items))
    return next((_name(token) for token in items[select:] if token.kind == "variable"), None)


def _excluded(items: Sequence[Token]) -> list[str]:
    """Entities that a variable must not equal, in order."""
    triples = zip(items, items[1:], items[2:])
    return [c.text for a, b, c in triples if a.kind == "variable" and b.text == "!=" and c.kind == "iri"]


def _values(items: Sequence[Token]) -> dict[str, str]:
    """Variables that `VALUES ?x { <entity> }` makes another name of one entity."""
    found = {}
    for at, token in enumerate(items[:-4]):
        if token.text.upper() == "VALUES" and items[at + 1].kind == "variable" and items[at + 2].text == "{":
            if items[at + 3].kind == "iri" and items[at + 4].text == "}":
                found[_name(items[at + 1])] = items[at + 3].text
    return found


def _edges(items: Sequence[Token]) -> Iterator[Triple]:
    """The triple patterns of all groups but those that only test (EXISTS, MINUS) or give values."""
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
            plain = False  # a property path, a list or a typed literal: no single edge
        at += 1


def _after(items: Sequence[Token], at: int, opening: str, closing: str) -> int:
    """The index after the bracket that closes the one at `at`."""
    depth = 0
    while at < len(items):
        depth += {opening: 1, closing: -1}.get(items[at].text, 0)
        at += 1
        if depth <= 0:
            break
    return at


def _chain(edges: Sequence[Triple], start: str, goal: str) -> tuple[Step, ...]:
    """The shortest way from an entity to a variable through variables, the first in the text among equals."""
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
    """Chains of relations as the files write them, a list with one for each topic."""
    path = row.get("gold_path")
    if isinstance(path, list) and path and all(isinstance(item, str) for item in path):
        yield [path]
    chains = row.get("gold_chains")
    if isinstance(chains, list) and chains and all(isinstance(chain, list) for chain in chains):
        # nodes and relations in turn, the topic first
        yield [[str(item) for item in chain[1::2]] for chain in chains]


def _steps(chain: Sequence[str], schema: Schema, by_local_name: Mapping[str, str]) -> tuple[Step, ...]:
    """The steps of a chain, `^` before a relation that is taken backwards; () where one is not known."""
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
