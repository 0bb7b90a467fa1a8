"""From a path to the one SPARQL query that returns its answers, and what that query is worth.

The query is built from the topic and the path; no answer may stand in it. Whether it returns exactly the
answers is found out by running it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kgqa.errors import KgqaError
from kgqa.graph.patterns import Walk
from kgqa.graph.queries import Comment, render, render_term
from kgqa.graph.sparql_text import Token, tokens
from kgqa.model import Entity, QueryClass, RelationPath, Value
from kgqa.words import clean, short_words

if TYPE_CHECKING:
    from kgqa.graph.graph import KnowledgeGraph


class AnswerInQuery(KgqaError):
    """A query that should find its answers names them. A defect of the exporter, never shown as a result."""


def answer_query(
    graph: KnowledgeGraph, path: RelationPath, *, restricted: Mapping[int, Sequence[Entity]] | None = None
) -> str:
    """The SPARQL 1.1 query whose result is the ends of a path, uncapped, with names as comments.

    Args:
        restricted: for inner nodes (1 is the first after the topic) the entities that a model selected there.

    Raises:
        ValueError: the path has no steps, or a restriction is not on an inner node.
    """
    if not path.steps:
        raise ValueError("a path without steps has no query")
    restricted = restricted or {}
    if any(not 0 < index < len(path.steps) for index in restricted):
        raise ValueError("only inner nodes can be restricted")
    walk = _commented(graph, graph.walk(path))
    names = graph.labels([path.topic, *(e for chosen in restricted.values() for e in chosen)])
    comments = [Comment(f"{_name(names, path.topic)} = {graph.schema.short_id(path.topic.iri)}")]
    for chosen in restricted.values():
        comments += [Comment(f"{_name(names, e)} = {graph.schema.short_id(e.iri)}, selected by a model") for e in chosen]
    text = render(
        "answer",
        view=graph.view,
        walk=walk,
        comments=comments,
        restricted=[(walk.nodes[index], list(chosen)) for index, chosen in sorted(restricted.items())],
        chosen=Comment("inner entities selected by a model"),
    )
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _commented(graph: KnowledgeGraph, walk: Walk) -> Walk:
    edges = []
    for edge in walk.edges:
        words = short_words(edge.relation.iri, graph.schema, graph.relation_labels)
        edges.append(replace(edge, comment=Comment(words)))
    return replace(walk, edges=tuple(edges))


def _name(names: Mapping[Entity, str], entity: Entity) -> str:
    return clean(names.get(entity, "")) or "(no name)"


def refuse_answers(sparql: str, answers: Iterable[Value], topics: Collection[Entity]) -> None:
    """Check that a query finds its answers instead of naming them.

    Refused: an answer's IRI or literal anywhere in the query, topics excepted; and any VALUES, BIND, IN or
    equality that fixes the variable it selects.

    Raises:
        AnswerInQuery: it names one.
    """
    solid = [token for token in tokens(sparql) if token.kind not in ("space", "comment")]
    texts = [token.text for token in solid]
    named = {render_term(a) for a in answers if a not in topics}
    written = _terms(solid)
    if found := named & written:
        raise AnswerInQuery(f"the exported query names its answer {sorted(found)[0][:80]}")
    variable = _selected(solid)
    for index, token in enumerate(solid):
        if token.kind != "variable" or token.text[1:] != variable:
            continue
        before = texts[index - 1].upper() if index else ""
        after = texts[index + 1].upper() if index + 1 < len(texts) else ""
        if before in ("VALUES", "AS", "=") or after in ("IN", "="):
            raise AnswerInQuery(f"the exported query fixes ?{variable} by {before if before in ('VALUES', 'AS') else after}")
        if before == "(" and _opens_values(texts, index):
            raise AnswerInQuery(f"the exported query fixes ?{variable} by VALUES")
        if "SAMETERM" in (text.upper() for text in texts[max(0, index - 4) : index]):
            raise AnswerInQuery(f"the exported query fixes ?{variable} by sameTerm")


def _terms(solid: list[Token]) -> set[str]:
    """IRIs and literals as they are written, a literal with its language or datatype; the strings that
    STRSTARTS compares with are left out: they are prefixes, not terms of the graph."""
    found = set()
    for index, token in enumerate(solid):
        if token.kind == "iri":
            found.add(token.text)
        elif token.kind == "string":
            text = token.text
            rest = solid[index + 1 : index + 3]
            if rest and rest[0].kind == "language":
                text += rest[0].text
            elif len(rest) == 2 and rest[0].text == "^^":
                text += "^^" + rest[1].text
            found.add(text)
    return found


def _selected(solid: list[Token]) -> str:
    return next(token.text[1:] for token in solid if token.kind == "variable")


def _opens_values(texts: list[str], index: int) -> bool:
    back = index
    while back > 0 and (texts[back] == "(" or texts[back].startswith(("?", "$"))):
        back -= 1
    return texts[back].upper() == "VALUES"


def query_class(answers: Collection[Value], returned: Collection[Value], *, restricted: bool) -> QueryClass | None:
    """What a query that was run again is worth: `exact`, `restricted` (a model chose inner entities that stand
    in it), `superset` (it returns the answers and more), or None: it misses an answer, which is a defect."""
    wanted, got = set(answers), set(returned)
    if wanted == got:
        return "restricted" if restricted else "exact"
    return "superset" if wanted < got else None


