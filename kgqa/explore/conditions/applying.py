"""Adds the conditions and the operation that a question asks for to the ranked paths."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.explore.conditions.beside import Beside
from kgqa.explore.conditions.operations import Operations, Scored
from kgqa.explore.conditions.requests import Request
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.trace import Trace


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
