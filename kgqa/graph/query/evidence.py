"""The query for the statements and chunks that an answer rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.graph.query.templates import render
from kgqa.model import Entity


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
