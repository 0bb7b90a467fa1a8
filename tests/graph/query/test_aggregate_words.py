"""Explanations of queries of other programs with aggregates: no variable that only the parser knows is shown."""

from __future__ import annotations

import pytest

from kgqa import open_graph
from kgqa.graph.query.explain import explain

WHERE = "{ ?x <http://e/p> ?y ; <http://e/q> ?z }"


@pytest.fixture(scope="module")
def demo_graph():
    with open_graph() as graph:
        yield graph


@pytest.mark.parametrize(
    "query, lines",
    [
        (f"SELECT (COUNT(?x) AS ?n) {WHERE}", ["?n is the number of ?x"]),
        (
            f"SELECT ?y (COUNT(DISTINCT ?x) AS ?n) {WHERE} GROUP BY ?y HAVING(COUNT(?x) > 3) ORDER BY DESC(COUNT(?x))",
            ["?n is the number of different ?x", "the number of ?x is greater than “3”", "Group by ?y.", "Sort them."],
        ),
        (
            f"SELECT (SUM(?z)/COUNT(*) AS ?mean) (MAX(?z) AS ?top) {WHERE}",
            ["?mean is a value computed from the sum of ?z and the number of rows", "?top is the largest ?z"],
        ),
        (
            f"SELECT ?y {WHERE} GROUP BY ?y HAVING(SUM(?z) + 1 > 4 && MIN(?z) IN (1, 2))",
            ["a value computed from the sum of ?z is greater than “4”", "the smallest ?z is one of: “1”, “2”"],
        ),
        (
            "SELECT ?c ?n { { SELECT ?c (AVG(?x) AS ?n) { ?c <http://e/p> ?x } GROUP BY ?c } FILTER(?n > 2) }",
            ["?n is the average of ?x", "?n is greater than “2”", "Group by ?c."],
        ),
    ],
)
def test_aggregates_in_words(demo_graph, query, lines):
    text = explain(demo_graph, query)
    found = [line.strip().split(". ", 1)[-1] if line.startswith("  ") else line for line in text.splitlines()]
    assert "__agg" not in text and "is computed" not in text
    assert [line for line in lines if line not in found] == []
