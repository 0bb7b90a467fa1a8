"""Conditions and operations give the same answers on all stores, and those of a naive evaluator."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.export import export
from kgqa.graph.query.text import render_term
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step
from kgqa.model.conditions import DAY, MONTH, XSD, YEAR, Comparison, Condition, Operation, year
from kgqa.schema import parse_schema
from tests.conftest import SOAK
from tests.graph.condition_evaluator import NaiveGraph, written
from tests.graph.test_both_stores import PHASES
from tests.memory_graph import memory_graph

RANDOM_GRAPHS = 50 if SOAK else 4
SCHEMA = parse_schema('name = "plain"')


def entity(name: str) -> Entity:
    return Entity(f"http://e/{name}")


def steps(*names: str) -> tuple[Step, ...]:
    return tuple(Step(f"http://e/{name}") for name in names)


def number(text: str) -> Literal:
    return Literal(text, XSD + "decimal")


def is_(name: str, operator, value: Literal, *, negated: bool = False) -> Condition:
    return Condition(1, steps(name), Comparison(operator, value), negated)


A, X = entity("a"), entity("x")
B = [entity(f"b{n}") for n in range(6)]
FACTS = [
    (subject, f"http://e/{relation}", value)
    for subject, relation, value in [
        *((A, "has", each) for each in B),
        (B[0], "pop", Literal("5", XSD + "integer")), (B[1], "pop", Literal("7.5")), (B[2], "pop", number("7.5")),
        (B[3], "pop", Literal("abc")), (B[4], "pop", Literal("1e3", XSD + "double")),
        (B[0], "since", Literal("1967", YEAR)), (B[1], "since", Literal("1967-05-02", DAY)),
        (B[2], "since", Literal("-0044-03-15", DAY)), (B[3], "since", Literal("1999-01-01T00:00:00", XSD + "dateTime")),
        (B[4], "since", Literal("1999-02")),
        (B[0], "in", X), (B[1], "in", X), (B[1], "in", entity("y")), (B[0], "to", Literal("1")),
        (B[0], "next", entity("c0")), (B[1], "next", entity("c1")), (B[1], "next", entity("c0")),
        (B[0], "mass", Literal("5.972E24", XSD + "double")), (B[1], "mass", Literal("6.39E23", XSD + "double")),
        (B[2], "mass", Literal("0.1234567890123456789012")), (B[3], "mass", Literal("1e-30", XSD + "double")),
        (B[4], "mass", Literal("200000000000000000000")),
        (B[0], "zoned", Literal("1967+02:00", YEAR)), (B[1], "zoned", Literal("1967-05:00")),
        (B[2], "zoned", Literal("1967-05-02:00", MONTH)), (B[3], "zoned", Literal("1967-05+14:00")),
        (B[4], "zoned", Literal("1967-05-02-10:00", DAY)), (B[5], "zoned", Literal("1967+2:00")),
        (B[0], "price", Literal("1e20")), (B[1], "price", number("150000000000000000000")),
        (B[0], "cost", number("9007199254740993")), (B[1], "cost", number("0.1")), (B[2], "cost", Literal("0.2")),
        (entity("c0"), "pop", Literal("3", XSD + "integer")), (entity("c1"), "pop", Literal("4", XSD + "integer")),
    ]
]  # fmt: skip
HAS = RelationPath(A, steps("has"))
NEXT = HAS.then(*steps("next"))
PAIR = {"path": RelationPath(B[0]), "topics": (B[0], B[1])}
CASES = {
    "in x": ([Condition(1, steps("in"), X)], "b0 b1"),
    "not in x": ([Condition(1, steps("in"), X, True)], "b2 b3 b4 b5"),
    "no to": ([Condition(1, steps("to"), None, True)], "b1 b2 b3 b4 b5"),
    "pop > 6": ([is_("pop", ">", number("6"))], "b1 b2 b4"),
    "pop = 7.50": ([is_("pop", "=", number("7.50"))], "b1 b2"),
    "since 1967": ([is_("since", "=", year(1967))], "b0 b1"),
    "after a month": ([is_("since", ">", Literal("1999-01", MONTH))], "b4"),
    "before a month": ([is_("since", "<", Literal("1999-01", MONTH))], "b0 b1 b2"),
    "a year is not after a day": ([is_("since", ">", Literal("1967-01-01", DAY))], "b1 b3 b4"),
    "did not begin before a day": ([is_("since", "<", Literal("1999-01-02", DAY), negated=True)], "b4 b5"),
    "from a day": ([is_("since", ">=", Literal("1967-05-02", DAY))], "b1 b3 b4"),
    "before a day before Christ": ([is_("since", "<", Literal("-0044-03-16", DAY))], "b2"),
    "a year with a time zone": ([is_("zoned", "=", year(1967))], "b0 b1 b2 b3 b4"),
    "a month with a time zone": ([is_("zoned", "=", Literal("1967-05", MONTH))], "b2 b3 b4"),
    "before a day with time zones": ([is_("zoned", "<", Literal("1967-05-02", DAY))], "b0 b1 b2 b3"),
    "first with a time zone": (Operation("least", steps("zoned"), "day"), "b0 b1"),
    "second with a time zone": (Operation("least", steps("zoned"), "day", rank=2), "b2 b3"),
    "a text": ([is_("pop", "=", Literal("abc"))], "b3"),
    "two": ([is_("pop", ">", number("6")), is_("since", "<", year(1990))], "b1 b2"),
    "is b0": ([Condition(1, (), B[0])], "b0"),
    "is not b0": ([Condition(1, (), B[0], True)], "b1 b2 b3 b4 b5"),
    "of a node on the way": ([Condition(1, steps("in"), entity("y"))], "c0 c1", NEXT),
    "count": (Operation("count"), "6"),
    "count of some": ([Condition(1, steps("in"), X)], Operation("count"), "2"),
    "exists": ([Condition(1, (), B[0])], Operation("exists"), "true"),
    "does not exist": ([Condition(1, (), X)], Operation("exists"), "false"),
    "most": (Operation("most", steps("pop")), "b4"),
    "second": (Operation("most", steps("pop"), rank=2), "b1 b2"),
    "least": (Operation("least", steps("pop")), "b0"),
    "oldest": (Operation("least", steps("since"), "day"), "b2"),
    "most counted": (Operation("most", steps("next"), counted=True), "b1"),
    "most after two hops": (Operation("most", steps("pop")), "c1", NEXT),
    "most on the way": (Operation("most", steps("pop"), at=1), "c0 c1", NEXT),
    "oldest on the way": (Operation("least", steps("since"), "day", at=1), "c0", NEXT),
    "most counted on the way": (Operation("least", steps("in"), counted=True, at=1), "c1 c0", NEXT),
    "most of values": (Operation("most"), "1000", HAS.then(*steps("pop"))),
    "second of dates": (Operation("least", scale="day", rank=2), "1967", HAS.then(*steps("since"))),
    "most of some": ([is_("since", "<", year(1990))], Operation("most", steps("pop")), "b1 b2"),
    "sum": (Operation("sum", steps("pop")), "1020"),
    "average": (Operation("average", steps("pop")), "255"),
    "sum of large values": (Operation("sum", steps("mass")), "6.611e+24"),
    "a large sum": (Operation("sum", steps("price")), "2.5e+20"),
    "difference of large values": (Operation("difference", steps("mass"), topics=(B[0], B[1])), "5.333e+24", RelationPath(B[0])),
    "difference": (Operation("difference", steps("pop"), topics=(B[0], B[1])), "2.5", RelationPath(B[0])),
}  # fmt: skip


def answers(graph: KnowledgeGraph, path: RelationPath, conditions, operation) -> set:
    query = graph.answer_query(path, conditions=conditions, operation=operation)
    return written(graph.run_exported(query))


@pytest.fixture(scope="module")
def small(graphs) -> KnowledgeGraph:
    store, name = graphs.write_facts(FACTS)
    return KnowledgeGraph(store, SCHEMA, view=[name], walks="free")


@pytest.mark.parametrize("case", CASES)
def test_answers(small, case):
    *asked, expected = (part for part in CASES[case] if not isinstance(part, RelationPath))
    conditions = next((part for part in asked if isinstance(part, list)), [])
    operation = next((part for part in asked if isinstance(part, Operation)), None)
    path = next((part for part in CASES[case] if isinstance(part, RelationPath)), HAS)
    found = answers(small, path, conditions, operation)
    assert found == {entity(word) if word[0] in "bc" else word for word in expected.split()}
    assert found == written(NaiveGraph(FACTS).answer(path, conditions, operation))
    exported = export(small, Candidate(path, conditions=tuple(conditions), operation=operation))
    if exported.totals is not None:  # what the search computes itself is compared with the query's result
        assert list(exported.totals) == pytest.approx([float(value) for value in found], rel=1e-3)


@pytest.mark.parametrize("kind", ["sum", "average"])
def test_a_total_is_of_values_of_the_ends(kind):
    with pytest.raises(ValueError, match="of the ends"):
        Operation(kind, steps("pop"), at=1)


# --- random graphs

NODES, RELATIONS = [entity(f"n{n}") for n in range(5)], [f"http://e/r{n}" for n in range(3)]
TEXTS = ["5", "5.0", "+5", "-3", ".5", "7.", "1e1", "1E-2", "abc", "", "5 km", "0x5", "NaN", "INF", "--5", "é"]
DATES = ["1967", "0067", "-0044", "1967Z", "1967-05", "1967-05Z", "1967-05-02", "1967-05-02Z", "1967-05-02+14:00",
         "1967-12-31T23:59:59Z", "-0044-03-15", "12024-01-01", "67-5-2", "1967-05:00", "1967+02:00", "1967-05+02:00", "1967-05-02:00", "1967-5"]  # fmt: skip
TYPED = [
    ("5", "integer"), ("-3", "int"), ("2.5", "decimal"), ("5", "decimal"), ("2.5E0", "double"), ("0.5", "float"),
    ("1967", "gYear"), ("1967-05", "gYearMonth"), ("1967-05-02", "date"), ("-0044-03-15", "date"),
    ("1967-05-02T00:00:00", "dateTime"), ("true", "boolean"),
]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from([Literal(text) for text in TEXTS + DATES]),
    st.sampled_from([Literal(text, XSD + name) for text, name in TYPED]),
    st.sampled_from([Literal("5", language="en"), Literal("5", "http://e/unit"), Literal("abc", language="de")]),
)
node, link = st.sampled_from(NODES), st.sampled_from(RELATIONS)
HAS_VALUE = "http://e/v"
RANDOM_FACTS = st.builds(
    lambda links, values: list(dict.fromkeys(links + values)),
    st.lists(st.tuples(node, link, node), min_size=6, max_size=15),
    st.lists(
        st.tuples(node, st.sampled_from([HAS_VALUE, HAS_VALUE, RELATIONS[0]]), VALUES),
        min_size=5,
        max_size=15,
        unique_by=lambda fact: (fact[0], str(fact[2])),
    ),
)
LINKS = st.builds(Step, link, st.sampled_from(["out", "in"]))
TO_VALUE = st.lists(LINKS, max_size=1).map(lambda links: (*links, Step(HAS_VALUE)))
WAYS = st.one_of(TO_VALUE, TO_VALUE, st.lists(LINKS, min_size=1, max_size=2).map(tuple))
operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
COMPARISONS = st.one_of(
    st.builds(Comparison, operators, st.sampled_from(["5", "2.5", "-3", "1e1", "+.5"]).map(number)),
    st.builds(Comparison, operators, st.sampled_from([1967, -44, 67, 5]).map(year)),
    st.builds(Comparison, operators, st.sampled_from([Literal("1967-05", MONTH), Literal("-0044-03", MONTH)])),
    st.builds(Comparison, operators, st.sampled_from([Literal("1967-05-02", DAY), Literal("-0044-03-15", DAY)])),
    st.builds(
        Comparison, st.sampled_from(["=", "!="]), st.sampled_from([Literal("abc"), Literal("5 km"), Literal("")])
    ),
)


def condition(length: int) -> st.SearchStrategy[Condition]:
    at, some = st.integers(1, length), WAYS
    tests = st.one_of(st.none(), node, COMPARISONS, COMPARISONS)
    return st.one_of(
        st.builds(Condition, at, some, tests, st.booleans()),
        st.builds(Condition, at, st.just(()), COMPARISONS),
        st.builds(Condition, at, st.just(()), node, st.booleans()),
    )


extreme = st.sampled_from(["most", "least"])
pair = st.tuples(node, node)
OPERATIONS = st.one_of(
    st.none(),
    st.builds(Operation, st.sampled_from(["count", "exists"])),
    st.builds(Operation, extreme, WAYS, st.sampled_from(["number", "day"]), rank=st.sampled_from([1, 1, 2, 3])),
    st.builds(Operation, extreme, WAYS, counted=st.just(True), rank=st.sampled_from([1, 2])),
    st.builds(Operation, extreme, WAYS, st.sampled_from(["number", "day"]), at=st.just(1)),
    st.builds(Operation, extreme, scale=st.sampled_from(["number", "day"]), rank=st.sampled_from([1, 2])),
    st.builds(Operation, st.sampled_from(["sum", "average"]), st.one_of(WAYS, st.just(()))),
    st.builds(Operation, extreme, WAYS, st.sampled_from(["number", "day"]), topics=pair),
    st.builds(Operation, st.just("difference"), WAYS, topics=pair),
)


@st.composite
def questions(draw):
    operation = draw(OPERATIONS)
    if operation and operation.topics:
        return RelationPath(operation.topics[0]), (), operation
    path = RelationPath(draw(node), draw(st.one_of(st.lists(LINKS, min_size=1, max_size=3).map(tuple), TO_VALUE)))
    return path, draw(st.lists(condition(len(path)), max_size=2).map(tuple)), operation


@pytest.mark.soak
def test_random_questions(graphs):
    @settings(max_examples=RANDOM_GRAPHS, phases=PHASES, deadline=None)
    @given(RANDOM_FACTS, st.lists(questions(), min_size=8, max_size=8))
    def check(facts, asked):
        store, name = graphs.write_facts(facts)
        graph, naive = KnowledgeGraph(store, SCHEMA, view=[name], walks="free"), NaiveGraph(facts)
        for path, conditions, operation in asked:
            wanted = written(naive.answer(path, conditions, operation))
            query = graph.answer_query(path, conditions=conditions, operation=operation)
            assert written(graph.run_exported(query)) == wanted, query
        graph.tables.close()

    check()


def test_conditions_on_one_record():
    """The bounds of a range are on one value, and the year and colour of a medal on one medal."""
    ann, bob, medals = entity("ann"), entity("bob"), [entity(f"m{n}") for n in range(4)]
    facts = [(A, "http://e/has", ann), (A, "http://e/has", bob)]
    for medal, owner, since, colour in zip(medals, (ann, ann, bob, bob), (1990, 2010, 2000, 2000), "rgrg"):
        facts += [(owner, "http://e/won", medal), (medal, "http://e/since", year(since))]
        facts.append((medal, "http://e/colour", Literal(colour)))
    early, late = (
        Condition(1, steps("won", "since"), Comparison(operator, year(number)))
        for operator, number in ((">=", 1995), ("<=", 2005))
    )
    graph = memory_graph([" ".join(map(render_term, (s, Entity(relation), o))) + " ." for s, relation, o in facts])
    for conditions, expected in (
        ((early, late), {bob}),
        ((early, is_colour("r")), {bob}),
        ((is_colour("r"), is_colour("g")), {ann, bob}),
    ):
        query = graph.answer_query(RelationPath(A, steps("has")), conditions=conditions)
        assert set(graph.run_exported(query)) == expected


def is_colour(text: str) -> Condition:
    return Condition(1, steps("won", "colour"), Comparison("=", Literal(text)))
