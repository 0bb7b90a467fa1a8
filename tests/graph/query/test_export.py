"""Exported queries: they find the answers without naming them, and are classified."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery

from kgqa.graph.query.explain import explain
from kgqa.graph.query.export import AnswerInQuery, check_no_answers, query_class
from kgqa.graph.query.templates import render_term
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step

NS = "http://rdf.freebase.com/ns/"
TOPIC, ANSWER, OTHER = Entity("http://e/topic"), Entity("http://e/answer"), Entity("http://e/other")
ACCEPTED_QUERY = "SELECT DISTINCT ?answer WHERE { <http://e/topic> <http://e/r> ?e1 . ?e1 <http://e/q> ?answer . %s }"


class TestRefused:
    @pytest.mark.parametrize(
        "pattern",
        [
            "VALUES ?answer { <http://e/other> }",
            "VALUES (?answer) { (<http://e/other>) }",
            "VALUES (?e1 ?answer) { (UNDEF <http://e/other>) }",
            "VALUES ( ?answer ?e1 ) { (<http://e/other> UNDEF) }",
            "values ?answer { 5 }",
            "FILTER(?answer IN (<http://e/other>))",
            "FILTER(?answer in (5))",
            "FILTER(?answer = <http://e/other>)",
            "FILTER(<http://e/other> = ?answer)",
            "FILTER(?answer=5)",
            "FILTER(sameTerm(?answer, <http://e/other>))",
            "FILTER(sameTerm(<http://e/other>, ?answer))",
            "FILTER(SAMETERM(?answer,<http://e/other>))",
            'FILTER(sameTerm("5"^^<http://e/t>, ?answer))',
            "BIND(<http://e/other> AS ?answer)",
            "bind(<http://e/other> as ?answer)",
            "FILTER((?answer) = <http://e/other>)",
        ],
    )
    def test_fixing_the_answer_variable(self, pattern):
        with pytest.raises(AnswerInQuery):
            check_no_answers(ACCEPTED_QUERY % pattern, [ANSWER], [TOPIC])

    @pytest.mark.parametrize(
        "pattern",
        [
            "FILTER(?answer != <http://e/answer>)",
            "?answer <http://e/q> <http://e/answer> .",
            "VALUES ?e1 { <http://e/answer> }",
            "FILTER(?e1 = <http://e/answer>)",
            "FILTER(?e1 = <http://e/\\u0061nswer>)",
            "FILTER(STR(?e1) = 'http://e/answer')",
        ],
    )
    def test_naming_the_answer(self, pattern):
        with pytest.raises(AnswerInQuery):
            check_no_answers(ACCEPTED_QUERY % pattern, [ANSWER], [TOPIC])

    def test_naming_the_answer_by_a_prefixed_name(self):
        query = "PREFIX e: <http://e/> " + ACCEPTED_QUERY % "VALUES ?e1 { e:answer }"
        with pytest.raises(AnswerInQuery):
            check_no_answers(query, [ANSWER], [TOPIC])

    @pytest.mark.parametrize(
        "answer, written",
        [
            (Literal("Paris"), '"Paris"'),
            (Literal("Paris"), "'Paris'"),
            (Literal("Paris", language="en"), '"Paris"@en'),
            (Literal("Paris", language="en"), '"Paris"@EN'),
            (Literal("5", "http://e/t"), '"5"^^<http://e/t>'),
            (Literal("5", "http://www.w3.org/2001/XMLSchema#integer"), "5"),
            (Literal("true", "http://www.w3.org/2001/XMLSchema#boolean"), "true"),
            (Literal('a"b'), '"a\\"b"'),
            (Literal('a"b'), "'a\"b'"),
        ],
    )
    def test_naming_a_literal(self, answer, written):
        with pytest.raises(AnswerInQuery):
            check_no_answers(ACCEPTED_QUERY % f"?e1 <http://e/name> {written} .", [answer], [TOPIC])

    @pytest.mark.parametrize(
        "pattern",
        [
            "",
            "FILTER(?answer != <http://e/topic>)",
            "FILTER(?answer != ?e1)",
            "VALUES ?e1 { <http://e/other> <http://e/more> }",
            'FILTER(!STRSTARTS(STR(?answer), "http://rdf.freebase.com/ns/g.x"))',
            "FILTER NOT EXISTS { ?answer <http://e/type> <http://e/T> . }",
            "# <http://e/answer> in a comment\n",
            "?answers <http://e/q> 'http://e/answer and more' .",
        ],
    )
    def test_accepted_queries(self, pattern):
        check_no_answers(ACCEPTED_QUERY % pattern, [ANSWER], [TOPIC])

    def test_prefix_that_is_also_an_answer(self):
        """The argument of STRSTARTS is a prefix, not a term of the graph."""
        check_no_answers(ACCEPTED_QUERY % 'FILTER(!STRSTARTS(STR(?answer), "g.x"))', [Literal("g.x")], [TOPIC])

    def test_topic_among_the_answers(self):
        check_no_answers(ACCEPTED_QUERY % "", [TOPIC, ANSWER], [TOPIC])


class TestClassification:
    @pytest.mark.parametrize(
        "answers, returned, restricted, expected",
        [
            ("ab", "ab", False, "exact"),
            ("ab", "ba", False, "exact"),
            ("ab", "ab", True, "restricted"),
            ("a", "ab", False, "superset"),
            ("a", "ab", True, "superset"),
            ("ab", "a", False, None),
            ("ab", "a", True, None),
            ("ab", "bc", False, None),
            ("a", "", False, None),
            ("aa", "a", False, "exact"),
        ],
    )
    def test_truth_table(self, answers, returned, restricted, expected):
        values = {letter: Entity(f"http://e/{letter}") for letter in "abc"}
        got = query_class([values[x] for x in answers], [values[x] for x in returned], restricted=restricted)
        assert got == expected

    def test_literals_differ_by_type_and_language(self):
        assert query_class([Literal("5")], [Literal("5", "http://e/t")], restricted=False) is None
        assert query_class([Literal("a", language="en")], [Literal("a")], restricted=False) is None


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
        assert set(returned) == set(graph.paths.ends([Candidate(which)])[0].values)
        assert query_class(graph.paths.ends([Candidate(which)])[0].values, returned, restricted=False) == "exact"
        check_no_answers(query, graph.paths.ends([Candidate(which)])[0].values, [which.topic])
        assert "LIMIT" not in query and "DISTINCT" in query

    def test_names_are_in_one_line_comments(self, graph):
        query = graph.answer_query(CHILDREN)
        comments = [line for line in query.splitlines() if line.startswith("#")]
        assert len(comments) == 1 and comments[0].endswith("= m.1") and "Ann" in comments[0]
        assert len(query.split("\n")) == len(query.splitlines())
        assert "DROP" not in "\n".join(line.split("#")[0] for line in query.splitlines())
        prepareQuery(query)

    def test_relations_are_verbalised(self, graph):
        query = graph.answer_query(SPOUSES)
        lines = [line for line in query.splitlines() if "people" in line and ". " in line]
        assert all("# " in line for line in lines if "?e1" in line)
        assert "spouse" in query.split("people.marriage.spouse>")[1].split("\n")[0]

    def test_restricted_entities_are_commented(self, graph):
        chosen = Entity(f"{NS}m.4")
        query = graph.answer_query(GENDERS, restricted={1: [chosen]})
        assert f"VALUES ?e1 {{ <{NS}m.4> }}" in query
        assert "selected by a model" in query
        assert any(line.startswith("#") and "Dan" in line and "m.4" in line for line in query.splitlines())
        prepareQuery(query)
        returned = graph.run_exported(query)
        assert returned == (Entity(f"{NS}m.f"),)
        assert query_class(returned, returned, restricted=True) == "restricted"
        check_no_answers(query, returned, [GENDERS.topic])

    def test_several_restricted_entities_are_explained(self, graph):
        chosen = [Entity(f"{NS}m.4"), Entity(f"{NS}m.5")]
        explained = explain(graph, graph.answer_query(GENDERS, restricted={1: chosen}))
        line = next(line for line in explained.splitlines() if "is one of" in line)
        assert line.endswith("(m.4), m.5") and "nothing" not in explained

    @pytest.mark.parametrize("others", [(), ("m.4",)])
    def test_restricting_to_an_answer_is_detected(self, graph, others):
        query = graph.answer_query(GENDERS, restricted={1: [Entity(NS + name) for name in ("m.f", *others)]})
        with pytest.raises(AnswerInQuery):
            check_no_answers(query, [Entity(f"{NS}m.f")], [GENDERS.topic])

    @pytest.mark.parametrize("index", [0, 2, 3, -1])
    def test_only_inner_nodes_can_be_restricted(self, graph, index):
        with pytest.raises(ValueError, match="inner"):
            graph.answer_query(GENDERS, restricted={index: [Entity(f"{NS}m.4")]})
        with pytest.raises(ValueError, match="no query"):
            graph.answer_query(RelationPath(GENDERS.topic))

    @pytest.mark.parametrize("topic", ["http://e/\u2028odd", "http://e/\u00a0odd"])
    def test_line_breaks_of_unicode_in_an_iri(self, graph, topic):
        """IRIs with Unicode line breaks are valid, and the query stays complete."""
        which = path(topic, "http://e/r")
        assert graph.paths.ends([Candidate(which)])[0].values == (Entity("http://e/end"),)
        assert graph.run_exported(graph.answer_query(which)) == (Entity("http://e/end"),)

    def test_space_like_characters_in_a_relation(self, graph):
        which = path("m.6", "http://e/\u3000rel\u3000")
        assert graph.run_exported(graph.answer_query(which)) == (Entity("http://e/end"),)

    def test_mediators_are_excluded_by_a_standard_filter(self, graph):
        query = graph.answer_query(path("m.1", "people.person.note"))
        assert "STRSTARTS" in query
        prepareQuery(query)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from(["", "en"]))
def test_any_named_literal_is_found(text, language):
    literal = Literal(text, language=language)
    with pytest.raises(AnswerInQuery):
        check_no_answers(ACCEPTED_QUERY % f"?e1 <http://e/name> {render_term(literal)} .", [literal], [TOPIC])


class TestHubs:
    """Four fully connected layers of forty nodes, with two million walks."""

    @pytest.fixture(scope="class")
    @staticmethod
    def layers(graphs):
        lines = [f"<http://e/start> <http://e/r> <http://e/n0_{i}> ." for i in range(40)]
        for layer in range(4):
            lines += [
                f"<http://e/n{layer}_{i}> <http://e/r> <http://e/n{layer + 1}_{j}> ."
                for i in range(40)
                for j in range(40)
            ]
        return graphs.make(lines, "rdfs", timeout=20)

    def test_query_does_not_enumerate_walks(self, layers):
        path = RelationPath(Entity("http://e/start"), (Step("http://e/r"),) * 5)
        query = layers.answer_query(path)
        assert len(layers.run_exported(query)) == 40
        assert set(layers.run_exported(query)) == set(layers.paths.ends([Candidate(path)])[0].values)

    @pytest.mark.parametrize(("length", "subqueries"), [(1, 0), (2, 0), (3, 1), (5, 3)])
    def test_only_long_paths_need_subqueries(self, layers, length, subqueries):
        query = layers.answer_query(RelationPath(Entity("http://e/start"), (Step("http://e/r"),) * length))
        assert query.count("SELECT") == subqueries + 1
