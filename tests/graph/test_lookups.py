"""Look-ups are valid SPARQL, alone and several in one query, and rows are told apart."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from rdflib.plugins.sparql import prepareQuery

from kgqa.graph import lookups
from kgqa.graph.lookups import MOST_ROWS, NODE, Branch
from kgqa.graph.query.patterns import PathPattern, path_pattern
from kgqa.graph.query.templates import Variable
from kgqa.graph.query.tokens import prepare_for_engine
from kgqa.graph.store import Rows
from kgqa.graph.tables.declarations import SIDES
from kgqa.model import Literal, Step
from tests.graph.query.test_templates import WALK, A, B, R

START = PathPattern(nodes=(A,), edges=())
ONE = path_pattern(A, [Step(R.iri)], "free", inverse={}.get)
HOP = path_pattern(NODE, [Step(R.iri), Step("http://e/q", "in")], "topic-not-end", inverse={}.get)
NONE = {"out": [], "in": []}
BRANCHES = {
    "ends": [lookups.ends_branch(walk) for walk in (WALK, ONE)],
    "walks": [lookups.walks_branch(walk, None) for walk in (WALK, ONE)],
    "walks to an end": [lookups.walks_branch(WALK, [B]), lookups.walks_branch(ONE, [Literal("true")])],
    "relations": [
        lookups.relations_branch(walk, cap=5, not_node=topic, returning=returning)
        for walk, topic, returning in ((START, None, NONE), (START, A, NONE), (WALK, A, NONE), (WALK, None, {"out": [R], "in": [R, B]}))
    ],
    "onward": [lookups.onward_branch(A, [R, B])],
    "unclaimed": [
        lookups.unclaimed_branch(walk, R, B, out=out, cap=5, untrue=[(R, A)]) for walk in (WALK, ONE) for out in (True, False)
    ],
    "present": [lookups.present_branch(A), lookups.present_branch(B)],
    "pairs": [lookups.pairs_branch(R)],
    "relations of subjects": [lookups.subject_relations_branch(R, sample=5)],
    "quiet edges": [
        lookups.quiet_edges_branch(A, side, noise=noise, kept=kept)
        for side in SIDES
        for noise, kept in (([], []), ([Literal("http://e/x"), Literal('"')], [R]))
    ],
}  # fmt: skip
NODES = {
    "hop": lookups.hop_lookups([A, B], HOP),
    "hop counts": lookups.hop_count_lookups([A, B], HOP),
    "edges": lookups.edge_lookups([A, B], "out"),
    "edge counts": lookups.edge_count_lookups([A, B], "in", by_relation=True),
}


@pytest.mark.parametrize("view", [(), (A, B)])
@pytest.mark.parametrize("name", [*BRANCHES, *NODES])
def test_is_valid_sparql(name, view):
    every = (BRANCHES | NODES)[name]
    for asked in (every, *([each] for each in every)):
        for limit in (None, 5):
            text = type(asked[0]).query(asked, view, limit)
            prepareQuery(text)
            ox.Store().query(prepare_for_engine(text))
            assert text.count("FROM <") == len(view)


def test_rows_of_several_branches():
    branches = [Branch((Variable("a"), Variable("b")), ""), Branch((Variable("b"),), "")]
    rows = Rows(("number", "a", "b"), [(Literal("1"), None, B), (Literal("0"), A, R)])
    assert Branch.rows(branches, rows, None) == [[(A, R)], [(B,)]]


def test_rows_of_several_nodes_are_complete_or_refused():
    every = NODES["edges"]
    rows = Rows(("node", "relation", "value"), [(A, R, B), (B, R, A), (A, R, R)])
    assert type(every[0]).rows(every, rows, 2) == [[(R, B), (R, R)], [(R, A)]]
    assert type(every[0]).rows(every, Rows(rows.variables, rows.rows * 2), 3) is None
    assert f"LIMIT {MOST_ROWS + 1}" in type(every[0]).query(every, (), MOST_ROWS + 1)
