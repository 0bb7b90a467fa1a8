"""Small graphs in memory under the Freebase schema."""

from __future__ import annotations

import pytest

from kgqa.model import Entity, RelationPath, Step

from ..memory_graph import memory_graph

NS = "http://rdf.freebase.com/ns/"
MEDIATOR = f'<{NS}film.performance> <{NS}freebase.type_hints.mediator> "true" .'


def ent(name: str) -> Entity:
    return Entity(NS + name)


def path(topic: str, *steps: str) -> RelationPath:
    """Build a path; `name` follows a relation, `^name` follows it backwards."""
    return RelationPath(
        ent(topic), tuple(Step(NS + s.removeprefix("^"), "in" if s.startswith("^") else "out") for s in steps)
    )


@pytest.fixture
def small():
    """Return `small("m.a r.r m.b", ...) -> KnowledgeGraph`; objects in quotes are literals."""

    def small(*triples: str, **options):
        lines = [MEDIATOR]
        for triple in triples:
            s, p, o = triple.split(" ", 2)
            lines.append(f"<{NS}{s}> <{NS}{p}> {o if o.startswith(chr(34)) else f'<{NS}{o}>'} .")
        return memory_graph(lines, **options)

    return small
