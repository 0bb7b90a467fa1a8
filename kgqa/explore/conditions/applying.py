"""Adds the conditions and the operation that a question asks for to the ranked paths."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.explore.conditions.beside import Beside
from kgqa.explore.conditions.filters import Wording, conditions_on
from kgqa.explore.conditions.operations import Operations, Scored
from kgqa.explore.conditions.requests import Request
from kgqa.explore.rows import read_rows
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.trace import Trace

LOOKED_AT = 3
"""Most paths beside which conditions are looked for."""
MARGIN = 0.1
"""Most difference between the scores of the best path and of a path beside which conditions are looked for."""
MAX_WALKS = 200


def with_conditions(
    graph: KnowledgeGraph, wording: Wording, ranked: Scored, trace: Trace
) -> Scored:
    """Return the paths with the conditions that the question puts on the best of them.

    Of the best paths, the one whose conditions explain the most words of the question comes first.

    Args:
        graph: The graph.
        wording: The question without its topics.
        ranked: Paths with their scores, best first.
        trace: Records the conditions.
    """
    best = [pair for pair in ranked[:LOOKED_AT] if (ranked[0][1] or 0.0) - (pair[1] or 0.0) <= MARGIN]
    near = [c for c, _ in best if wording.time or wording.excluded or wording.unexplained(c)]
    if not near:
        return ranked
    found = {rows.candidate: conditions_on(rows, wording, graph.relation_labels, graph.schema)
             for rows in read_rows(graph, near, trace, limit=MAX_WALKS)}
    with_some = [(found[c], score) for c, score in best if c in found and found[c].cues]
    if not with_some:
        return ranked
    chosen, score = max(with_some, key=lambda pair: pair[0].explained)
    return [(chosen.candidate, score), *ranked]


def with_operation(
    graph: KnowledgeGraph,
    encoder: CachedEncoder | None,
    request: Request,
    ranked: Scored,
    topics: Sequence[Entity],
    trace: Trace,
    *,
    worded: bool = True,
) -> Scored:
    """Return the best path on which the operation that a question asks for can be computed; empty if there is none.

    Args:
        graph: The graph.
        encoder: The embedding model; None to compare words only.
        request: What the question asks to compute.
        ranked: Paths with their scores, best first.
        topics: The topics of the question, in its order.
        trace: Records the operation.
        worded: Whether the question has words for the path, apart from its topics and cue words.
    """
    found = Operations(request, topics, Beside(graph, encoder), worded=worded).found(ranked)
    if found is None:
        return []
    return [found]
