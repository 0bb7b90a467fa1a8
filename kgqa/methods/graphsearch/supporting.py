"""Stored facts that say what a sub-question was answered: between a name in it and one of its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.graphsearch.history import StepAnswer
from kgqa.model import Piece, Triple, Value
from kgqa.text.words import normalise


def supporting_facts(steps: Sequence[StepAnswer], graph: KnowledgeGraph) -> list[Piece]:
    """Return the facts, among those that were shown, that support answers of sub-questions.

    A fact supports an answer if one of its nodes is called like the answer, and the sub-question names the other one.
    Of a path, only such triples are returned.

    Args:
        steps: The answered sub-questions.
        graph: The graph of the corpus.

    Raises:
        StoreError: The graph failed.
    """
    shown = [(step, piece) for step in steps if step.answers for piece in step.found.facts]
    nodes = dict.fromkeys(node for _, piece in shown for triple in piece.triples for node in _ends(triple))
    names = {each.value: normalise(each.name) for each in graph.named(nodes)}
    found: dict[str, Piece] = {}
    for step, piece in shown:
        triples = tuple(triple for triple in piece.triples if _supports(triple, step, names))
        if triples:
            found.setdefault(piece.iri, replace(piece, triples=triples))
    return list(found.values())


def _ends(triple: Triple) -> tuple[Value, Value]:
    return triple.subject, triple.object


def _supports(triple: Triple, step: StepAnswer, names: Mapping[Value, str]) -> bool:
    answers = {normalise(answer) for answer in step.answers}
    asked = f" {normalise(step.query.text)} "
    subject, object_ = (names[node] for node in _ends(triple))
    return any(
        one in answers and other and other not in answers and f" {other} " in asked
        for one, other in ((subject, object_), (object_, subject))
    )
