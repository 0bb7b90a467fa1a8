"""Exported queries: the query that returns the answers of a path, and the one that returns the evidence of an answer.

An exported query is built from the topic and the path, and must not contain an answer. It carries what it asks for, in
words, in its first comments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import Any

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
from kgqa.graph.query.patterns import pattern_text
from kgqa.graph.query.templates import Comment, render, render_term
from kgqa.graph.query.tokens import expand_prefixes, solid_tokens, tokens
from kgqa.graph.query.words import ExportableGraph, query_words
from kgqa.model import Candidate, Entity, QueryClass, RelationPath, Value
from kgqa.model.conditions import Comparison, Condition
from kgqa.text.words import clean

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


def query_class(seen: Collection[Value], returned: Collection[Value], *, restricted: bool) -> QueryClass | None:
    """Classify a query by the values that it returned.

    Returns:
        `exact`: the query returned exactly the values that were seen. `restricted`: it did, but it contains inner
        entities that a language model selected. `superset`: the query returned these and other values. None: a value is
        missing, which is a defect.
    """
    wanted, got = set(seen), set(returned)
    if wanted == got:
        return "restricted" if restricted else "exact"
    return "superset" if wanted < got else None


@dataclass(frozen=True, slots=True)
class StatementVocabulary:
    """The relations by which a graph describes statements and chunks.

    `subject`, `predicate`, `object`: from a statement to the parts of its triple. `mention`: from a statement to a
    place where it stands. `document`, `begin`, `end`: from such a place, or from a chunk, to its document and to its
    positions in the document.
    """

    subject: Entity
    predicate: Entity
    object: Entity
    mention: Entity
    document: Entity
    begin: Entity
    end: Entity


def evidence_query(
    view: Sequence[Entity], statements: Sequence[Entity], chunks: Sequence[Entity], vocabulary: StatementVocabulary
) -> str:
    """Return the SPARQL 1.1 query for statements and chunks, with the columns piece, s, p, o, document, begin, end.

    Args:
        view: the graphs that contain the statements and the chunks; empty for the store's default graph.
        statements: the statements' IRIs.
        chunks: the chunks' IRIs; s, p and o are unbound in their rows.
    """
    text = render("evidence", view=tuple(view), statements=statements, chunks=chunks, vocabulary=vocabulary)
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())
