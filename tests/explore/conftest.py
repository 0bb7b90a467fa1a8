"""Small graphs, loaded by the real engine and opened under the Freebase schema."""

from __future__ import annotations

import pytest

from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.opening import open_graph
from kgqa.model import Entity, RelationPath, Step

NS = "http://rdf.freebase.com/ns/"
MEDIATOR = f'<{NS}film.performance> <{NS}freebase.type_hints.mediator> "true" .'


def ent(name: str) -> Entity:
    return Entity(NS + name)


def path(topic: str, *steps: str) -> RelationPath:
    """`name` follows a relation, `^name` goes against it."""
    return RelationPath(
        ent(topic), tuple(Step(NS + s.removeprefix("^"), "in" if s.startswith("^") else "out") for s in steps)
    )


@pytest.fixture
def small(tmp_path):
    """`small("m.a r.r m.b", ...) -> KnowledgeGraph`; objects in quotes are literals."""
    opened = []

    def small(*triples: str, schema: str = "freebase", **options):
        lines = [MEDIATOR]
        for triple in triples:
            s, p, o = triple.split(" ", 2)
            lines.append(f"<{NS}{s}> <{NS}{p}> {o if o.startswith(chr(34)) else f'<{NS}{o}>'} .")
        file = tmp_path / f"g{len(opened)}.nt"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        load_graph(tmp_path / f"g{len(opened)}", [file])
        opened.append(open_graph(tmp_path / f"g{len(opened)}", schema=schema, **options))
        return opened[-1]

    yield small
    for graph in opened:
        graph.close()
