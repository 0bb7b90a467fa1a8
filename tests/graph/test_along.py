"""Single hops from many nodes, on all stores."""

from __future__ import annotations

import pytest

from kgqa.model import Candidate, RelationPath
from tests.graph.facts import FACTS, ent, ns, short, step

HOPS = (
    "people.person.spouse_s people.marriage.spouse",
    "film.actor.film film.performance.film",
    "base.mixed.about",
    "^people.person.gender",
    "people.person.height",
    "people.person.children",
    "a.loop",
)
LOOPS = ns("m.ann a.loop m.ann", "m.ann a.loop m.bob", "m.bob a.loop m.ann", "m.bob a.loop m.bob")


@pytest.fixture(scope="module")
def looped(make):
    return make(FACTS + LOOPS)


@pytest.mark.parametrize("hop", HOPS)
def test_values_and_counts_are_the_ends_of_a_path_from_each_node(looped, hop):
    steps = tuple(map(step, hop.split()))
    nodes = [ent(name) for name in ("m.ann", "m.bob", "m.cid", "m.movie", "m.nowhere")]
    ends = looped.paths.ends([Candidate(RelationPath(node, steps), "") for node in nodes])
    expected = {node: set(each.values) for node, each in zip(nodes, ends) if each.values}
    assert {node: set(values) for node, values in looped.paths.hop(nodes, steps).items()} == expected
    assert looped.paths.hop_counts(nodes, steps) == {node: len(expected.get(node, ())) for node in nodes}


def test_a_node_may_be_its_own_value_where_loops_are_asked_for(looped):
    hop = [step("a.loop")]
    assert short(looped.paths.hop([ent("m.ann")], hop, loops=True)[ent("m.ann")]) == {"m.ann", "m.bob"}
    assert looped.paths.hop_counts([ent("m.ann")], hop, loops=True) == {ent("m.ann"): 2}


def test_a_hub_does_not_take_the_rows_of_other_nodes(make):
    hub = make(ns(*(f"m.hub a.to m.{n:03}" for n in range(200)), *(f"m.small{n} a.to m.{n}" for n in range(60))))
    nodes = [ent("m.hub"), *(ent(f"m.small{n}") for n in range(60))]
    found = hub.paths.hop(nodes, [step("a.to")], limit=20)
    assert 20 < len(found[ent("m.hub")]) < 200
    assert [short(found[node]) for node in nodes[1:]] == [{f"m.{n}"} for n in range(60)]
    assert hub.paths.hop_counts(nodes, [step("a.to")])[ent("m.hub")] == 200
