"""Export of a path as the SPARQL query that returns its answers, and checks of exported queries.

An exported query is built from the topic and the path, and must not contain an answer. The query is then run, to find
out whether it returns exactly the answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from kgqa.errors import KgqaError
from kgqa.graph.query.handwritten import SELECTED
from kgqa.graph.query.operations import operation_query
from kgqa.graph.query.pattern_text import nested_text
from kgqa.graph.query.patterns import PathPattern
from kgqa.graph.query.templates import Comment, render
from kgqa.graph.query.tokens import Token, decode_codepoints, expand_prefixes, tokens
from kgqa.model import Candidate, Entity, Join, Literal, QueryClass, RelationPath, Value
from kgqa.model.conditions import Condition, Operation
from kgqa.schema import Schema
from kgqa.text.words import clean, short_words


class ExportableGraph(Protocol):
    """The part of `KnowledgeGraph` that the export needs."""

    @property
    def schema(self) -> Schema: ...

    @property
    def view(self) -> tuple[Entity, ...]: ...

    @property
    def tables(self) -> Any: ...

    @property
    def paths(self) -> Any: ...

    def labels(self, entities: Iterable[Entity]) -> dict[Entity, str]: ...


class AnswerInQuery(KgqaError):
    """A defect of the export: the exported query contains an answer instead of finding it."""


def answer_query(
    graph: ExportableGraph,
    path: RelationPath,
    *,
    joins: Sequence[Join] = (),
    restricted: Mapping[int, Sequence[Entity]] | None = None,
    conditions: Sequence[Condition] = (),
    operation: Operation | None = None,
) -> str:
    """Return the SPARQL 1.1 query whose result is all ends of a path, with the names of entities as comments.

    With an operation, the result is the answer of the operation: some of the ends, or a computed value.

    Args:
        joins: paths from other topics; only walks that meet all these paths count.
        restricted: the entities that a language model selected for inner nodes, by index (1: the node after the topic).
        conditions: conditions on nodes of the path.
        operation: an operation on the ends.

    Raises:
        ValueError: the path has no steps and the operation names no topics, or the path has steps or conditions and the
            operation names topics, or a restriction is not on an inner node.
    """
    compared = operation.topics if operation else ()
    if not path.steps and not compared:
        raise ValueError("a path without steps has no query")
    if compared and (path.steps or conditions):
        raise ValueError("an operation on topics takes a path without steps and no conditions")
    restricted = restricted or {}
    if any(not 0 < index < len(path.steps) for index in restricted):
        raise ValueError("only inner nodes can be restricted")
    chosen_at = tuple((index, tuple(chosen)) for index, chosen in sorted(restricted.items()))
    topics = list(dict.fromkeys(compared or [path.topic, *(join.path.topic for join in joins)]))
    tested = [each.test for each in conditions if isinstance(each.test, Entity)]
    names = graph.labels([*topics, *tested, *(e for chosen in restricted.values() for e in chosen)])
    comments = [Comment(f"{_name(names, e)} = {graph.schema.short_id(e.iri)}") for e in dict.fromkeys(topics + tested)]
    for chosen in restricted.values():
        comments += [Comment(f"{_name(names, e)} = {graph.schema.short_id(e.iri)}{SELECTED}") for e in chosen]
    candidate = Candidate(path, joins=tuple(joins), restricted=chosen_at, conditions=tuple(conditions))
    walk = _commented(graph, graph.paths.pattern(candidate)) if path.steps else None
    if operation is None:
        assert walk is not None
        text = render("answer", view=graph.view, end=walk.end, pattern=nested_text(walk), comments=comments)
    else:
        text = operation_query(operation, walk, view=graph.view, comments=comments)
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def _commented(graph: ExportableGraph, walk: PathPattern) -> PathPattern:
    words = [short_words(edge.relation.iri, graph.schema, graph.tables.relation_labels) for edge in walk.edges]
    edges = tuple(replace(edge, comment=Comment(text)) for edge, text in zip(walk.edges, words))
    return replace(walk, edges=edges, joins=tuple((at, _commented(graph, join)) for at, join in walk.joins))


def _name(names: Mapping[Entity, str], entity: Entity) -> str:
    return clean(names.get(entity, "")) or "(no name)"


def is_ask(sparql: str) -> bool:
    """Return whether an exported query asks whether there is an answer."""
    return any(line.strip() == "ASK" for line in sparql.split("\n"))


def check_no_answers(sparql: str, answers: Iterable[Value], topics: Collection[Entity]) -> None:
    """Check that a query finds its answers and does not contain them.

    The query must not contain the IRI or text of an answer in any notation, unless the answer is a topic. The selected
    variable may occur only in triple patterns, in `?answer != ...`, in the filter on mediator IRIs, and converted in
    conditions that compare its text.

    Raises:
        AnswerInQuery: the query contains an answer, or uses the selected variable in any other place.
    """
    check_names_no_answers(sparql, answers, topics)
    _check_variable(_solid(sparql))


def check_names_no_answers(sparql: str, answers: Iterable[Value], topics: Collection[Entity]) -> None:
    """Check that a query does not contain the IRI or text of an answer in any notation, unless the answer is a topic.

    Raises:
        AnswerInQuery: the query contains an answer.
    """
    iris, texts = _terms_in(_solid(sparql))
    known = {topic.iri for topic in topics}
    for answer in answers:
        if isinstance(answer, Literal):
            found = answer.value in texts
        else:
            found = answer.iri not in known and (answer.iri in iris or answer.iri in texts)
        if found:
            raise AnswerInQuery(f"the exported query names its answer {str(answer)[:100]}")


def _solid(sparql: str) -> list[Token]:
    """Return the tokens of a query, with full IRIs, except spaces and comments."""
    return [t for t in tokens(expand_prefixes(decode_codepoints(sparql))) if t.kind not in ("space", "comment")]


def _check_variable(solid: list[Token]) -> None:
    words = [token.text.upper() for token in solid]
    selected = next(token.text[1:] for token in solid if token.kind == "variable")
    depth = 0
    for index, token in enumerate(solid):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.kind != "variable" or token.text[1:] != selected:
            continue
        before = words[max(0, index - 5) : index]
        unequal = before[-2:] == ["FILTER", "("] and words[index + 1 : index + 2] == ["!="]
        prefixed = before == ["!", "STRSTARTS", "(", "STR", "("]
        converted = before[-2:] == ["STR", "("] and words[index + 1 : index + 3] in ([")", ","], [")", "!="])
        if depth and not unequal and not prefixed and not converted:
            raise AnswerInQuery(f"the exported query has a filter on ?{selected} other than inequality")
        if not depth and before[-1:] in (["VALUES"], ["AS"]):
            raise AnswerInQuery(f"the exported query binds ?{selected} by {before[-1]}")


def _terms_in(solid: list[Token]) -> tuple[set[str], set[str]]:
    """Return the IRIs in a query, and the texts of its literals, numbers and booleans.

    Prefixes in STRSTARTS are left out, because they are not RDF terms. Literals in NOT EXISTS are left out, because
    they are markers of mediator types.
    """
    iris: set[str] = set()
    texts: set[str] = set()
    words = [token.text.upper() for token in solid]
    negated = 0
    for index, token in enumerate(solid):
        if negated or words[index - 2 : index] == ["NOT", "EXISTS"]:
            negated += {"{": 1, "}": -1}.get(token.text, 0)
        if token.kind == "iri":
            iris.add(_unescaped(token.text[1:-1]))
        elif negated:
            continue
        elif token.kind == "string" and "STRSTARTS" not in words[max(0, index - 7) : index]:
            quotes = 3 if token.text[:3] in ('"""', "'''") else 1
            texts.add(_unescaped(token.text[quotes:-quotes]))
        elif token.kind == "number" or words[index] in ("TRUE", "FALSE"):
            texts.add(token.text.lower())
    return iris, texts


_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SHORT = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


def _unescaped(text: str) -> str:
    def char(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code and int(code, 16) <= 0x10FFFF else _SHORT.get(match[3], match[3] or match[0])

    return _ESCAPE.sub(char, text)


def query_class(answers: Collection[Value], returned: Collection[Value], *, restricted: bool) -> QueryClass | None:
    """Classify a query by the values that the query returned.

    Returns:
        `exact`: the query returned exactly the answers. `restricted`: the query returned exactly the answers, but it
        contains inner entities that a language model selected. `superset`: the query returned the answers and other
        values. None: an answer is missing, which is a defect.
    """
    wanted, got = set(answers), set(returned)
    if wanted == got:
        return "restricted" if restricted else "exact"
    return "superset" if wanted < got else None
