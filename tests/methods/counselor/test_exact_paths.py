"""Whatever calls are composed: the query of a path returns exactly the values of which the path is said to be the whole."""

from __future__ import annotations

import random

import pytest

from kgqa.llm.replies.action_lines import Call, call_text
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.methods.counselor.sets import returned
from tests.graph.facts import RDFS, ns
from tests.memory_graph import memory_graph

from ...conftest import SOAK

LINKS = ("a.b.likes", "a.b.knows", "a.b.owns")
HOPS = (*LINKS, "<- a.b.likes", "a.b.record: a.record.of")


def random_graph(draw):
    """A graph with cycles, loops, and records (mediators) between some nodes."""
    nodes = [f"m.n{number}" for number in range(8)]
    triples = [f"{draw.choice(nodes)} {draw.choice(LINKS)} {draw.choice(nodes)}" for _ in range(22)]
    for number in range(8):
        triples += [f"{draw.choice(nodes)} a.b.record g.r{number}", f"g.r{number} a.record.of {draw.choice(nodes)}"]
    triples += [f'{node} type.object.name "Node {node[3:]}"@en' for node in nodes]
    triples += ["a.b.record " + f"{RDFS}range a.record", 'a.record freebase.type_hints.mediator "true"']
    return memory_graph(ns(*dict.fromkeys(triples)))


def random_call(draw, depth):
    node = f"m.n{draw.randrange(8)}"
    if depth == 0:
        return Call("Retrieve", (node,))
    name = draw.choice(["Neighbour"] * 5 + ["Intersect", "Without", "Most"])
    first = random_call(draw, depth - 1)
    if name in ("Intersect", "Without"):
        return Call(name, (first, random_call(draw, draw.randrange(depth)) if draw.random() < 0.8 else node))
    return Call(name, (node if draw.random() < 0.1 else first, draw.choice(HOPS)))


@pytest.mark.soak
def test_paths_of_whole_sets_return_these_sets():
    draw = random.Random(7)
    whole = 0
    for _ in range(150 if SOAK else 25):
        graph = random_graph(draw)
        functions = GraphFunctions(graph)
        for _ in range(12):
            call = random_call(draw, draw.randint(1, 3))
            for source in functions.run(call).found.nodes.sources:
                if source.whole and source.candidate.path.steps:
                    whole += 1
                    got = set(returned(graph.with_walks("free"), source.candidate))
                    assert got == set(source.values), (call_text(call), source.candidate, graph.store)
    assert whole > 100
