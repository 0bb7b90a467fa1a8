"""Triples written as N-Triples, for edits in tests."""

from __future__ import annotations

from collections.abc import Iterable

import pyoxigraph as ox

from kgqa.graph.query.text import decode_term
from kgqa.model import Entity, Triple


def triples(lines: str | Iterable[str]) -> list[Triple]:
    """Return the triples of some lines."""
    text = lines if isinstance(lines, str) else "\n".join(lines)
    quads = ox.parse(text, format=ox.RdfFormat.TURTLE)
    return [Triple(Entity(q.subject.value), q.predicate.value, decode_term(_text(q.object))) for q in quads]


def _text(term: object) -> str:
    return f"_:{term.value}" if isinstance(term, ox.BlankNode) else str(term)
