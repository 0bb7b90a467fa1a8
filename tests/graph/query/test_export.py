"""Exported queries: they find the answers without naming them, and are classified."""

from __future__ import annotations

import pytest
from rdflib.plugins.sparql import prepareQuery

from kgqa.graph.query.export import AnswerInQuery, refuse_named_end
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step
from kgqa.model.conditions import Comparison, Condition

NS = "http://rdf.freebase.com/ns/"


LINES = [
    f"<{NS}m.1> <{NS}people.person.marriage> <{NS}g.x1> .",
    f"<{NS}m.1> <{NS}people.person.marriage> <{NS}g.x2> .",
    f"<{NS}g.x1> <{NS}people.marriage.spouse> <{NS}m.2> .",
    f"<{NS}g.x2> <{NS}people.marriage.spouse> <{NS}m.3> .",
    f"<{NS}g.x2> <{NS}people.marriage.spouse> <{NS}m.1> .",
    f"<{NS}m.1> <{NS}people.person.children> <{NS}m.4> .",
    f"<{NS}m.1> <{NS}people.person.children> <{NS}m.5> .",
    f"<{NS}m.1> <{NS}people.person.note> <{NS}m.4> .",
    f"<{NS}m.1> <{NS}people.person.note> <{NS}g.x1> .",
    f"<{NS}m.4> <{NS}people.person.gender> <{NS}m.f> .",
    f"<{NS}m.5> <{NS}people.person.gender> <{NS}m.m> .",
    f'<{NS}m.1> <{NS}type.object.name> "Ann\\n}} DROP ALL #\\u2028\\u202e<{NS}m.2>"@en .',
    f'<{NS}m.4> <{NS}type.object.name> "Dan\\r\\n?answer = <{NS}m.2>"@en .',
    '<http://e/\u2028odd> <http://e/r> <http://e/end> .',
    "<http://e/\u00a0odd> <http://e/r> <http://e/end> .",
    f'<{NS}m.6> <http://e/\u3000rel\u3000> <http://e/end> .',
]  # fmt: skip


@pytest.fixture(scope="module")
def graph(graphs):
    return graphs.make(LINES)


def path(topic: str, *steps: str) -> RelationPath:
    """Build a path; `name` follows a relation, `^name` follows it backwards."""
    return RelationPath(
        Entity(topic if "://" in topic else NS + topic),
        tuple(Step((s if "://" in s else NS + s).replace("^", ""), "in" if "^" in s else "out") for s in steps),
    )


SPOUSES = path("m.1", "people.person.marriage", "people.marriage.spouse")
CHILDREN = path("m.1", "people.person.children")
GENDERS = path("m.1", "people.person.children", "people.person.gender")


class TestQueryText:
    @pytest.mark.parametrize(
        "which, expected",
        [
            (SPOUSES, {"m.2", "m.3"}),
            (CHILDREN, {"m.4", "m.5"}),
            (GENDERS, {"m.f", "m.m"}),
            (path("m.1", "people.person.note"), {"m.4"}),
            (path("m.2", "^people.marriage.spouse", "^people.person.marriage"), {"m.1"}),
        ],
    )
    def test_returns_the_ends_of_the_path(self, graph, which, expected):
        query = graph.answer_query(which)
        prepareQuery(query)
        returned = graph.run_exported(query)
        assert {value.iri.removeprefix(NS) for value in returned} == expected
        assert {*graph.paths.ends([Candidate(which)])[0].values} == {*returned}
        assert "LIMIT" not in query and "DISTINCT" in query

    def test_names_are_in_one_line_comments(self, graph):
        query = graph.answer_query(CHILDREN)
        assert query.splitlines()[1].startswith("# 1. Ann } DROP ALL # <http://") and "(m.1) has “" in query
        assert len(query.split("\n")) == len(query.splitlines())
        assert "DROP" not in "\n".join(line.split("#")[0] for line in query.splitlines())
        prepareQuery(query)


class TestHubs:
    """Four fully connected layers of forty nodes, with two million walks."""

    @pytest.fixture(scope="class")
    @staticmethod
    def layers(graphs):
        pairs = [("start", f"n0_{i}") for i in range(40)]
        pairs += [(f"n{n}_{i}", f"n{n + 1}_{j}") for n in range(4) for i in range(40) for j in range(40)]
        lines = [f"<http://e/{one}> <http://e/r> <http://e/{two}> ." for one, two in pairs]
        return graphs.make(lines, "rdfs", timeout=20)

    def test_query_does_not_enumerate_walks(self, layers):
        path = RelationPath(Entity("http://e/start"), (Step("http://e/r"),) * 5)
        query = layers.answer_query(path)
        assert len(layers.run_exported(query)) == 40
        assert set(layers.run_exported(query)) == set(layers.paths.ends([Candidate(path)])[0].values)


@pytest.mark.parametrize("test", [Entity("http://e/b"), Comparison("=", Literal("b"))])
def test_query_that_names_its_answer_is_refused(test):
    path = RelationPath(Entity("http://e/a"), (Step("http://e/r"),))
    with pytest.raises(AnswerInQuery):
        refuse_named_end(path, [Condition(1, (), test)])
    refuse_named_end(path, [Condition(1, path.steps, test)])
