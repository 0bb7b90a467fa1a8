"""What prompts tell about a graph: its types and relations, or the relations of one node nearest to a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.methods.counselor.hops import HopNames
from kgqa.methods.counselor.writing import safe
from kgqa.model import Entity, Named, Step
from kgqa.rank.embedding.encoder import CachedEncoder, cosines
from kgqa.rank.lexical import bm25
from kgqa.text.words import type_words

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
        scores = bm25(question, names) if encoder is None else cosines(encoder, question, names)
        order = sorted(range(len(names)), key=lambda at: (-scores[at], names[at]))
        names = [names[at] for at in order]
    return [safe(name) for name in names[:most]]


def _relations(graph: KnowledgeGraph) -> list[str]:
    return [name for name in graph.tables.relations if not graph.tables.is_noise(name)]


def _lines(graph: KnowledgeGraph, hops: HopNames) -> Iterator[str]:
    """Yield a line for each type of nodes: its relations, with the types to which they lead."""
    if not is_defined(graph):
        return
    relations = sorted(_relations(graph))
    starts = _domains(graph, relations)
    by_type: dict[str, dict[str, None]] = {}
    for relation in relations:
        out, back = Step(relation), graph.tables.inverses.get(relation)
        ends = [each for each in (graph.tables.target_type(out),) if each]
        directions = [(out, starts[relation], ends)]
        if back and back not in graph.tables.relations:
            directions.append((out.reversed(), ends, starts[relation]))
        for step, here, there in directions:
            leads = ", ".join(type_words(each, graph.schema) for each in there)
            name = safe(f"{hops.name((step,))}{f' ({leads})' if leads else ''}")
            for type_ in here or [""]:
                by_type.setdefault(type_words(type_, graph.schema) if type_ else ANY, {})[name] = None
    for name in sorted(by_type, key=lambda each: (each == ANY, each)):
        yield f"{safe(name)}: {', '.join(by_type[name])}"


def _domains(graph: KnowledgeGraph, relations: Sequence[str]) -> dict[str, list[str]]:
    """Return the types of nodes from which each relation leads, as the graph declares them."""
    found: dict[str, dict[str, None]] = {relation: {} for relation in relations}
    for predicate in graph.schema.domain:
        declared = graph.paths.hop(map(Entity, relations), (Step(predicate),))
        for node, types in declared.items():
            found[node.iri] |= {each.iri: None for each in sorted(types, key=str) if isinstance(each, Entity)}
    for relation in relations:
        if not found[relation] and (type_ := graph.tables.target_type(Step(relation, "in"))):
            found[relation] = {type_: None}
    return {relation: list(types) for relation, types in found.items()}
