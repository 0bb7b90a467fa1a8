"""Exported queries, of the answers of a path and of the evidence of an answer, and their words.

An exported query is built from the topic and the path, and must not contain an answer. It carries what it asks for, in
words, in its first comments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import Any, Protocol

from kgqa.errors import KgqaError
from kgqa.graph.query.operations import (
    MAX_ROWS,
    Top,
    look_query,
    operation_query,
    query_text,
    top_of,
    totals,
    valued,
)
from kgqa.graph.query.text import Comment, Node, PathPattern, pattern_text, render, render_term
from kgqa.graph.query.tokens import expand_prefixes, solid_tokens, tokens
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.model.conditions import Comparison, Condition, Operation
from kgqa.schema import Schema
from kgqa.text.words import clean, short_words

COMPARED = {
    "=": "is", "!=": "is not", "<": "is less than", ">": "is greater than", "<=": "is at most", ">=": "is at least",
}  # fmt: skip
_IN_TIME = {"=": "is {}", "!=": "is not {}", "<": "is before", "<=": "is {} or before", ">": "is after",
            ">=": "is {} or after"}  # fmt: skip
_RANKS = ("", "second ", "third ", *(f"{number}th " for number in range(4, 11)))
_BEST = {"most": ("most", "latest", "most"), "least": ("least", "earliest", "fewest")}
"""The words for the best number, date and count."""


class ExportableGraph(Protocol):
    """The part of `KnowledgeGraph` that the export needs."""

    schema: Schema
    tables: Any
    paths: Any
    queries: Any

    def labels(self, entities: Sequence[Entity]) -> dict[Entity, str]: ...


def condition_words(graph: ExportableGraph, condition: Condition, length: int) -> str:
    """Return a condition in words, such as “government position held from” of ?e1 is in or before 1962.

    Args:
        length: the number of steps of the path; its last node is ?answer.
    """
    test, steps = condition.test, condition.steps
    node = "?answer" if condition.at == length else f"?e{condition.at}"
    relation = relations_words(graph, steps)
    if test is None:
        return f"there is {'no ' if condition.negated else ''}{relation} of {node}"
    if not steps:
        tested = _value_words(test) if isinstance(test, Comparison) else f"is {node_words(graph, test)}"
        return f"{node} {tested.replace('is ', 'is not ', 1) if condition.negated else tested}"
    if isinstance(test, Comparison):
        text = f"{relation} of {node} {_value_words(test)}"
    elif len(steps) == 1 and steps[0].direction == "in":
        text = f"{node_words(graph, test)} has {relation}: {node}"
    else:
        text = f"{node} has {relation}: {node_words(graph, test)}"
    return f"it is not true that {text}" if condition.negated else text


def operation_words(graph: ExportableGraph, operation: Operation, path: Sequence[Step]) -> str:
    """Return an operation in words, such as: Of these, take the one with the most “river length”, ...

    Args:
        path: the steps of the path. An operation without steps is on the nodes of the path, and is worded by the step
            that leads to them.
    """
    relation = relations_words(graph, operation.steps or path[: operation.at][-1:])
    topics = " and ".join(node_words(graph, topic) for topic in operation.topics)
    if operation.kind in operation.returns_ends:
        best = _BEST[operation.kind][2 if operation.counted else operation.scale == "day"]
        rank = _RANKS[operation.rank - 1]
        return f"Of {topics or 'these'}, take the one with the {rank}{best} {relation}, or those that are equal."
    return {
        "count": "Count every different ?answer.",
        "exists": "Is there anything?",
        "sum": f"Add up {relation}.",
        "average": f"Find the average of {relation}.",
        "difference": f"Find the difference between {relation} of {topics}.",
    }[operation.kind]


def all_words(graph: ExportableGraph, candidate: Candidate) -> tuple[tuple[str, ...], str]:
    """Return the conditions and the operation of a candidate in words; "" for no operation."""
    path, operation = candidate.path, candidate.operation
    words = tuple(condition_words(graph, each, len(path)) for each in candidate.conditions)
    return words, operation_words(graph, operation, path.steps) if operation else ""


def query_words(graph: ExportableGraph, candidate: Candidate, walk: PathPattern | None) -> list[str]:
    """Return what an exported query asks for: a first line, numbered conditions, and a last line for an extreme.

    Args:
        walk: the pattern of the path; None if an operation compares topics.
    """
    conditions, computed = all_words(graph, candidate)
    if walk is None:
        return [computed]
    details = [(at, _selection_words(graph, walk.nodes[at], chosen)) for at, chosen in candidate.restricted]
    details += [(at, line) for at, join in walk.joins for line in _walk_words(graph, join)]
    details += [(condition.at, words) for condition, words in zip(candidate.conditions, conditions)]
    lines = [f"{number}. {text}" for number, text in enumerate(_walk_words(graph, walk, details), 1)]
    if candidate.operation and candidate.operation.is_computed:
        return [f"{computed.rstrip('.?')} such that", *lines]
    return ["Find every ?answer such that", *lines, *([computed] if computed else [])]


def _selection_words(graph: ExportableGraph, node: Node, chosen: Sequence[Entity]) -> str:
    names = ", ".join(node_words(graph, each) for each in chosen)
    return f"{node_words(graph, node)} is {'one of: ' if len(chosen) > 1 else ''}{names}, selected by a model"


def _walk_words(graph: ExportableGraph, walk: PathPattern, details: Sequence[tuple[int, str]] = ()) -> list[str]:
    """Return one line for each edge, and the details of the node to which it leads."""
    lines = []
    for at, (subject, relation, object_) in enumerate(walk.edges, start=1):
        here = walk.nodes[at]
        others = " or ".join(node_words(graph, other) for node, other in walk.different if node == here)
        where = f", where {node_words(graph, here)} is not {others}" if others else ""
        named = relations_words(graph, [Step(relation.iri)])
        lines.append(f"{node_words(graph, subject)} has {named}: {node_words(graph, object_)}{where}")
        lines += [words for place, words in details if place == at]
    return [*lines, f"{node_words(graph, walk.end)} is not a mediator"] if walk.not_mediator else lines


def _value_words(test: Comparison) -> str:
    value = test.value.value
    if test.scale in ("text", "number"):
        return f"{COMPARED[test.operator]} {value if test.scale == 'number' else f'“{clean(value)}”'}"
    preposition = "on" if test.scale == "day" else "in"
    return f"{_IN_TIME[test.operator].format(preposition)} {value}"


def relations_words(graph: ExportableGraph, steps: Sequence[Step]) -> str:
    """Return the relations on the way to a value in words, such as “length” of “river mouth”."""
    words = (short_words(step.relation, graph.schema, graph.tables.relation_labels) for step in reversed(steps))
    return " of ".join(f"“{clean(each)}”" for each in words)


def node_words(graph: ExportableGraph, node: Node) -> str:
    """Return a variable, or an entity by its label and id."""
    if not isinstance(node, Entity):
        return f"?{node.name}"
    label, short = graph.labels([node]).get(node), clean(graph.schema.short_id(node.iri))
    return f"{clean(label)} ({short})" if label else short


_DIGEST = "# digest of this query: "
"""The comment after the words of an exported query. A query that has another digest was changed by hand."""


class AnswerInQuery(KgqaError):
    """A defect of the export: the exported query contains an answer instead of finding it."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported query, and what was seen when it was built.

    Attributes:
        sparql: the query.
        top: the ends that an extreme returns, and their rivals; None for another operation.
        totals: the sum, average or differences of the values that were seen; None if not all of them were.
    """

    sparql: str
    top: Top | None = None
    totals: Sequence[float] | None = None


def export(graph: ExportableGraph, candidate: Candidate) -> Exported:
    """Return the SPARQL 1.1 query whose result is all ends of a path.

    With an operation, the result is the answer of the operation: some of the ends, or a computed value. The values that
    it compares or adds are looked at first.

    Raises:
        ValueError: the path has no steps, and no operation compares topics.
        PartialResult: too many ends share the value that an extreme is about.
        StoreError: the look at the values failed.
    """
    operation, queries = candidate.operation, graph.queries
    if not candidate.path.steps and not (operation and operation.topics):
        raise ValueError("a path without steps has no query")
    walk: Any = graph.paths.pattern(candidate) if candidate.path.steps else None
    graph.labels([entity for _, entities in candidate.restricted for entity in entities])  # by one query, for the words
    words = query_words(graph, candidate, walk)
    if operation is None:
        head = f"SELECT DISTINCT {render_term(walk.end)}"
        return Exported(_with_words(query_text(head, queries.view, pattern_text(walk)), words))
    block = valued(operation, walk)
    top = sums = None
    if operation.kind not in ("count", "exists"):
        limit = min(MAX_ROWS, queries.store.capabilities.row_cap or MAX_ROWS)
        rows = queries.rows(look_query(operation, block, queries.view, limit))
        filtered = len(rows) == limit and bool(block.scale)
        if filtered:  # values that cannot be converted may have taken the place of others
            rows = queries.rows(look_query(operation, replace(block, pattern=block.readable), queries.view, limit))
        if operation.kind in operation.returns_ends:
            top = top_of(operation, block, rows, complete=len(rows) < limit, filtered=filtered)
        elif len(rows) < limit:
            sums = totals(operation, rows)
    return Exported(_with_words(operation_query(operation, block, top, queries.view), words), top, sums)


def carried_words(sparql: str) -> list[str]:
    """Return the words that an exported query carries, one text a line; none if it carries none or was changed."""
    comments = [token.text for token in tokens(sparql) if token.kind == "comment"]
    lines = [clean(text[1:]) for text in takewhile(lambda text: not text.startswith(_DIGEST), comments)]
    digest = comments[len(lines)].removeprefix(_DIGEST).strip() if len(lines) < len(comments) else ""
    return lines if digest == _digest(sparql, lines) else []


def _with_words(sparql: str, lines: Sequence[str]) -> str:
    comments = [render_term(Comment(line)) for line in lines]
    digest = _digest(sparql, [clean(comment[1:]) for comment in comments])
    return "\n".join([*comments, _DIGEST + digest, sparql])


def _digest(sparql: str, lines: Sequence[str]) -> str:
    """Return a digest of a query without its white space, comments and prefixes, and of its words."""
    texts = (token.text for token in solid_tokens(expand_prefixes(sparql)))
    query = dropwhile(lambda text: text not in ("SELECT", "ASK"), texts)
    return hashlib.sha256("\n".join([*lines, *query]).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def refuse_named_end(path: RelationPath, conditions: Sequence[Condition]) -> None:
    """Check that no condition says what the end of a path is, since the query would name its answer.

    Raises:
        AnswerInQuery: a condition names the end.
    """
    for each in conditions:
        if each.at == len(path) and not each.steps and not each.negated:
            text = isinstance(each.test, Comparison) and each.test.operator == "=" and each.test.scale == "text"
            if text or isinstance(each.test, Entity):
                raise AnswerInQuery("the exported query names its answer")


def evidence_query(
    view: Sequence[Entity], statements: Sequence[Entity], chunks: Sequence[Entity], vocabulary: Mapping[str, Entity]
) -> str:
    """Return the SPARQL 1.1 query for statements and chunks, with the columns piece, s, p, o, document, begin, end.

    Args:
        view: the graphs that contain the statements and the chunks; empty for the store's default graph.
        statements: the statements' IRIs.
        chunks: the chunks' IRIs; s, p and o are unbound in their rows.
        vocabulary: the relations by which the graphs describe statements and chunks. `subject`, `predicate`, `object`:
            from a statement to the parts of its triple. `mention`: from a statement to a place where it stands.
            `document`, `begin`, `end`: from such a place, or from a chunk, to its document and to its positions there.
    """
    text = render("evidence", view=tuple(view), statements=statements, chunks=chunks, vocabulary=vocabulary)
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())
