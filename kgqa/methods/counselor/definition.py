"""What prompts tell about a graph: its types and relations, or the relations of one node nearest to a question."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.methods.counselor.calls.hops import HopNames
from kgqa.methods.counselor.calls.observation_text import safe
from kgqa.model import Entity, Named, Step
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import bm25
from kgqa.words import type_words

MAX_RELATIONS = 60
"""Most relations of a graph whose definition is shown as a whole."""
NEAREST = 25
"""How many relations of a retrieved node are shown if the graph has more."""
ANY = "any node"
_KNOWN: WeakKeyDictionary[GraphTables, tuple[str, tuple[str, ...]]] = WeakKeyDictionary()


def definition_lines(graph: KnowledgeGraph, hops: HopNames) -> tuple[str, ...]:
    """Return the types of nodes, each with its relations; nothing for a graph with many relations.

    Args:
        graph: The graph.
        hops: Names its relations.
    """
    version = graph.tables.version()
    known = _KNOWN.get(graph.tables)
    if known is None or known[0] != version:
        known = _KNOWN[graph.tables] = version, tuple(_lines(graph, hops))
    return known[1]


def is_defined(graph: KnowledgeGraph) -> bool:
    """Return whether the definition of a graph is shown as a whole."""
    return len(_relations(graph)) <= MAX_RELATIONS


def nearest_relations(
    named: Named, question: str, hops: HopNames, encoder: CachedEncoder | None, *, most: int = NEAREST
) -> list[str]:
    """Return the names of those relations of a node that are nearest to a question, nearest first.

    Args:
        named: The node.
        question: The question.
        hops: Names the relations of the node.
        encoder: Compares texts; None to compare their words.
        most: Most relations that are returned.
    """
    if not isinstance(named.value, Entity):
        return []
    names = list(dict.fromkeys(hops.present((named.value,)).values()))
    if len(names) > 1:
        if encoder is not None:
            scores = [float(each) for each in encoder.encode(names) @ encoder.encode_questions([question])[0]]
        else:
            scores = [float(each) for each in bm25(question, names)]
        order = sorted(range(len(names)), key=lambda at: (-scores[at], names[at]))
        names = [names[at] for at in order]
    return [safe(name) for name in names[:most]]


def _relations(graph: KnowledgeGraph) -> list[str]:
    return [name for name in graph.relations if not graph.is_noise(name)]


def _lines(graph: KnowledgeGraph, hops: HopNames) -> Iterator[str]:
    """Yield a line for each type of nodes: its relations, with the types to which they lead."""
    if not is_defined(graph):
        return
    by_type: dict[str, dict[str, None]] = {}
    for relation in sorted(_relations(graph)):
        steps = [Step(relation)]
        if (back := graph.inverse(relation)) and back not in graph.relations:
            steps.append(Step(relation, "in"))
        for step in steps:
            start, end = graph.target_type(step.reversed()), graph.target_type(step)
            leads = f" ({type_words(end, graph.schema)})" if end else ""
            here = type_words(start, graph.schema) if start else ANY
            by_type.setdefault(here, {})[safe(f"{hops.name((step,))}{leads}")] = None
    for here in sorted(by_type, key=lambda each: (each == ANY, each)):
        yield f"{safe(here)}: {', '.join(by_type[here])}"
