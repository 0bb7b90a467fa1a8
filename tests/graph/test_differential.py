"""Paths over random graphs: both stores, a plain walk, and the exported query by the engine and by rdflib agree."""

from __future__ import annotations

import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Join, Literal, RelationPath, Step
from kgqa.schema import parse_schema
from kgqa.settings.table import WALK_RULES
from tests.conftest import SOAK
from tests.graph.graph_factories import GraphFactory

EXAMPLES = {"embedded": 120 if SOAK else 40, "rdflib": 12 if SOAK else 4, "virtuoso": 30 if SOAK else 8}
SCHEMA = parse_schema(
    """
    name = "plain"
    [names]
    label = ["rdfs:label"]
    [relations]
    inverse = ["owl:inverseOf"]
    [noise]
    prefixes = ["owl:", "rdfs:"]
    """
)
NODES = [Entity(f"http://e/n{n}") for n in range(6)]
RELATIONS = [f"http://e/r{n}" for n in range(4)]
VALUES = [
    Literal("x"),
    Literal("x", language="en"),
    Literal("5", "http://www.w3.org/2001/XMLSchema#integer"),
    Literal("5"),
]
INVERSE_OF = "http://www.w3.org/2002/07/owl#inverseOf"

EDGES = st.tuples(
    st.sampled_from(NODES),
    st.sampled_from(RELATIONS),
    st.one_of(*[st.sampled_from(NODES)] * 4, st.sampled_from(VALUES)),
)
GRAPHS = st.lists(EDGES, max_size=25, unique=True)
STEPS = st.builds(Step, st.sampled_from(RELATIONS), st.sampled_from(["out", "in"]))
PATHS = st.builds(RelationPath, st.sampled_from(NODES), st.lists(STEPS, min_size=1, max_size=3).map(tuple))
PAIRS = st.lists(
    st.tuples(st.sampled_from(RELATIONS), st.sampled_from(RELATIONS)).filter(lambda p: p[0] < p[1]), max_size=1
)


def settings_for(graphs: GraphFactory, *, share: float = 1.0) -> settings:
    """Return the number of random graphs, smaller for a server, which is several times slower."""
    return settings(max_examples=max(4, int(share * EXAMPLES[graphs.kind])))


def write_to_store(graphs: GraphFactory, edges, pairs=(), **options) -> KnowledgeGraph:
    """Write a small graph as a named graph of its own."""
    triples = [(s, r, o) for s, r, o in edges] + [(Entity(left), INVERSE_OF, Entity(right)) for left, right in pairs]
    store, name = graphs.write_facts(triples)
    return KnowledgeGraph(store, SCHEMA, view=[name], **options)


def by_rdflib(edges, pairs) -> rdflib.Graph:
    graph = rdflib.Graph()

    def term(value):
        if isinstance(value, Entity):
            return rdflib.URIRef(value.iri)
        if value.language:
            return rdflib.Literal(value.value, lang=value.language)
        datatype = None if value.datatype.endswith("#string") else rdflib.URIRef(value.datatype)
        return rdflib.Literal(value.value, datatype=datatype)

    for s, r, o in edges:
        graph.add((rdflib.URIRef(s.iri), rdflib.URIRef(r), term(o)))
    for left, right in pairs:
        graph.add((rdflib.URIRef(left), rdflib.URIRef(INVERSE_OF), rdflib.URIRef(right)))
    return graph


def kgqa_term(term):
    if isinstance(term, rdflib.URIRef):
        return Entity(str(term))
    return Literal(str(term), str(term.datatype or "http://www.w3.org/2001/XMLSchema#string"), term.language or "")


# --- walks as tuples of nodes


def next_steps_by_hand(edges, node, step: Step):
    for s, r, o in edges:
        start, end = (s, o) if step.direction == "out" else (o, s)
        if r == step.relation and start == node:
            yield end


def is_reversal(step: Step, previous: Step, inverse: dict[str, str]) -> bool:
    if step.direction != previous.direction:
        return step.relation == previous.relation
    return inverse.get(step.relation) == previous.relation


def walks(edges, path: RelationPath, rule: str, inverse: dict[str, str], *, final: bool) -> list[tuple]:
    found = [(path.topic,)]
    for index, step in enumerate(path.steps):
        longer = []
        for walk in found:
            for node in next_steps_by_hand(edges, walk[-1], step):
                last = final and index == len(path.steps) - 1
                if node == path.topic and (rule == "topic-never" or (rule == "topic-not-end" and last)):
                    continue
                reversal = index and is_reversal(step, path.steps[index - 1], inverse)
                if not (rule == "no-return" and reversal and node == walk[-2]):
                    longer.append((*walk, node))
        found = longer
    return found


class TestEnds:
    @pytest.mark.soak
    @pytest.mark.parametrize("rule", WALK_RULES)
    def test_four_implementations_agree(self, graphs, rule):
        @settings_for(graphs)
        @given(GRAPHS, PATHS, PAIRS)
        def check(edges, path, pairs):
            graph = write_to_store(graphs, edges, pairs, walks=rule)
            inverse = {a: b for left, right in pairs for a, b in ((left, right), (right, left))}
            assert graph.tables.inverses == inverse
            expected_walks = walks(edges, path, rule, inverse, final=True)
            expected = {walk[-1] for walk in expected_walks}
            ends = graph.paths.ends([Candidate(path)])[0]
            assert set(ends.values) == expected and len(ends.values) == len(expected) and not ends.approximate
            query = graph.answer_query(path)
            assert {row[0] for row in graph.store.select(query)} == expected
            assert query.count(f"FROM <{graph.view[0].iri}>") == 1
            assert {kgqa_term(row[0]) for row in by_rdflib(edges, pairs).query(without_graph_clause(query))} == expected
            assert set(graph.paths.walks([Candidate(path)], limit=10_000)[0]) == set(expected_walks)
            if expected:
                limited = graph.paths.ends([Candidate(path)], limit=1)[0]
                assert limited.approximate == (len(expected) > 1) and set(limited.values) <= expected

        check()

    @pytest.mark.parametrize("steps", [3, 4])
    def test_several_entities_selected_where_a_number_stands(self, graphs, steps):
        """Virtuoso compares IRIs with the number and fails, with a plan that it chooses in most of its runs."""
        path = RelationPath(NODES[0], (Step(RELATIONS[0]), Step(RELATIONS[1]), *[Step(RELATIONS[0])] * (steps - 2)))
        number = Literal("5", "http://www.w3.org/2001/XMLSchema#integer")
        edges = [
            (NODES[0], RELATIONS[0], NODES[0]),
            (NODES[0], RELATIONS[1], number),
            (NODES[0], RELATIONS[1], NODES[1]),
        ]
        edges += [(NODES[1], RELATIONS[0], NODES[1])]
        for _ in range(4):
            graph = write_to_store(graphs, edges)
            query = graph.answer_query(path, restricted={2: NODES[:2]})
            assert {row[0] for row in graph.store.select(query)} == {NODES[1]}


class TestNextSteps:
    @pytest.mark.soak
    @pytest.mark.parametrize("rule", WALK_RULES)
    @pytest.mark.parametrize("steps", [0, 1, 2])
    def test_next_steps_are_exact(self, graphs, rule, steps):
        paths = st.builds(RelationPath, st.sampled_from(NODES), st.tuples(*[STEPS] * steps))

        @settings_for(graphs, share=0.5)
        @given(GRAPHS, paths)
        def check(edges, path):
            before = walks(edges, path, rule, {}, final=False)
            if any(isinstance(node, Literal) for walk in before for node in walk[:-1]):
                return  # paths through values are never proposed
            every = [Step(relation, side) for relation in RELATIONS for side in ("out", "in")]
            longer = {step: walks(edges, path.then(step), rule, {}, final=True) for step in every}
            expected = {step for step, found in longer.items() if any(isinstance(walk[-2], Entity) for walk in found)}
            graph = write_to_store(graphs, edges, walks=rule)
            found = graph.paths.steps([Candidate(path)])[0]
            assert set(found.steps) == expected and len(found.steps) == len(expected)
            assert not found.approximate
            for step in found.steps:
                if rule != "topic-not-end":
                    assert graph.paths.ends([Candidate(path.then(step))])[0].values

        check()

    @pytest.mark.soak
    def test_folding_inverse_relations_loses_no_answer(self, graphs):
        """With both directions of an inverse pair present, a folded step reaches what its inverse would."""

        @settings_for(graphs, share=0.5)
        @given(
            st.lists(
                st.tuples(st.sampled_from(NODES), st.sampled_from(RELATIONS[:2]), st.sampled_from(NODES)),
                max_size=15,
                unique=True,
            ),
            st.sampled_from(NODES),
        )
        def check(edges, topic):
            twin = {RELATIONS[0]: RELATIONS[1], RELATIONS[1]: RELATIONS[0]}
            both = list(dict.fromkeys(edges + [(o, twin[r], s) for s, r, o in edges]))
            graph = write_to_store(graphs, both, [(RELATIONS[0], RELATIONS[1])])
            path = RelationPath(topic)
            steps = graph.paths.steps([Candidate(path)])[0].steps
            reached = {frozenset(graph.paths.ends([Candidate(path.then(step))])[0].values) for step in steps}
            for relation in RELATIONS[:2]:
                for direction in ("out", "in"):
                    ends = frozenset(graph.paths.ends([Candidate(path.then(Step(relation, direction)))])[0].values)
                    assert not ends or ends in reached
            assert not any(Step(twin[s.relation], "in") in steps for s in steps if s.direction == "out")

        check()


class TestJoins:
    @pytest.mark.soak
    @pytest.mark.parametrize("rule", WALK_RULES)
    def test_joined_walks(self, graphs, rule):
        @settings_for(graphs)
        @given(GRAPHS, PATHS, PATHS, st.integers(1, 3))
        def check(edges, path, other, position):
            position = min(position, len(path))
            graph = write_to_store(graphs, edges, walks=rule)
            met = {walk[-1] for walk in walks(edges, other, rule, {}, final=True)}
            expected = {walk for walk in walks(edges, path, rule, {}, final=True) if walk[position] in met}
            join = [Join(position, other)]
            assert set(graph.paths.ends([Candidate(path, joins=join)])[0].values) == {walk[-1] for walk in expected}
            assert set(graph.paths.walks([Candidate(path, joins=join)], limit=10_000)[0]) == expected
            query = graph.answer_query(path, joins=join)
            assert {row[0] for row in graph.store.select(query)} == {walk[-1] for walk in expected}

        check()

    @pytest.mark.soak
    @pytest.mark.parametrize("rule", ["free", "topic-not-end"])
    def test_restricted_walks(self, graphs, rule):
        @settings_for(graphs)
        @given(GRAPHS, PATHS, st.lists(st.sampled_from(NODES), min_size=1, max_size=3, unique=True), st.integers(1, 2))
        def check(edges, path, allowed, at):
            if len(path) < 2:
                path = path.then(*path.steps)
            at = min(at, len(path) - 1)
            graph = write_to_store(graphs, edges, walks=rule)
            expected = {walk[-1] for walk in walks(edges, path, rule, {}, final=True) if walk[at] in allowed}
            restricted = ((at, tuple(allowed)),)
            assert set(graph.paths.ends([Candidate(path, restricted=restricted)])[0].values) == expected
            query = graph.answer_query(path, restricted=dict(restricted))
            assert {row[0] for row in graph.store.select(query)} == expected
            assert {kgqa_term(row[0]) for row in by_rdflib(edges, ()).query(without_graph_clause(query))} == expected

        check()


def without_graph_clause(query: str) -> str:
    """Return the query without its graph clause, for an engine that has only this graph."""
    return "\n".join(line for line in query.split("\n") if not line.startswith("FROM"))
