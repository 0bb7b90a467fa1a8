"""Patterns of gold queries compared with the answers of the SPARQL engine."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.evaluation.fictional.facts import read_facts
from kgqa.evaluation.fictional.patterns import answers, pattern_of, solutions
from kgqa.evaluation.fictional.rewiring import NodeKinds, Rewiring
from kgqa.evaluation.fictional.units import split_into_units
from kgqa.training.gold_queries import Untranslatable, query_facts
from tests.evaluation.fictional.graphs import NS, random_graphs
from tests.evaluation.fictional.test_rewiring import open_lines

QUERIES = (
    "SELECT DISTINCT ?x WHERE { <f0> <film.film.director> ?x . }",
    "SELECT DISTINCT ?x WHERE { <f0> <film.film.director> ?p . ?y <film.film.director> ?p . ?y <film.film.director> ?x . }",
    "SELECT DISTINCT ?x WHERE { <f0> <film.film.director> ?p . ?x <film.film.director> ?p . FILTER(?x != <f0>) }",
    "SELECT DISTINCT ?x WHERE { <f0> <film.film.starring> ?c . ?c <film.performance.actor> ?x . }",
    "SELECT DISTINCT ?x WHERE { <p0> <people.person.sibling> ?x . ?x <people.person.sibling> ?y . FILTER(?y != <p0>) }",
    "SELECT DISTINCT ?x WHERE { <f0> <film.film.director> ?x . <f1> <film.film.director> ?x . }",
    "SELECT DISTINCT ?x WHERE { <f0> <film.film.director> ?a . ?b <people.person.sibling> ?a . "
    "?b <people.person.gender> ?x . FILTER(?a != ?b) }",
    "SELECT DISTINCT ?c WHERE { ?c <film.performance.actor> <p0> . ?c <film.performance.film> ?f . "
    "?f <film.film.director> ?d . ?d <people.person.gender> <g0> . }",
)


def with_full_iris(query):
    for ident in ("f0", "f1", "p0", "g0"):
        query = query.replace(f"<{ident}>", f"<{NS}m.{ident}>")
    return query.replace("<film.", f"<{NS}film.").replace("<people.", f"<{NS}people.")


def engine_answers(lines, query):
    store = ox.Store()
    store.bulk_load("".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES)
    return {str(row[0]) for row in store.query(query)}


@settings(max_examples=20)
@given(random_graphs(), st.sampled_from(QUERIES), st.integers(0, 2))
def test_pattern_answers_equal_query_answers(lines, query, seed):
    query = with_full_iris(query)
    with open_lines(lines) as graph:
        facts = read_facts(graph)
        pattern = pattern_of(query, facts)
        if pattern is None:  # the query names something that is not in this graph
            assert engine_answers(lines, query) == set()
            return
        world = Rewiring(
            split_into_units(facts, graph), NodeKinds(facts, graph.schema, pattern.relations), seed, pattern.relations
        )
        world.shuffle()
        _compare(world, facts, pattern, query)
        for number, group in enumerate(world.units.groups):
            for first in range(len(group.holes)):
                second = world.chance.randrange(len(group.holes))
                if number in world.pools and world.may_exchange(group, first, second, restoring=True):
                    world.exchange(number, first, second)
        _compare(world, facts, pattern, query)


def _compare(world, facts, pattern, query):
    found = answers(pattern, world)
    assert {facts.terms[node] for node in found} == engine_answers(list(world.units.lines()), query)
    for node in found:
        binding, lacking = next(solutions(pattern, world, random.Random(0), bound={pattern.answer: node}, steps=10_000))
        assert binding[pattern.answer] == node and not lacking


@pytest.mark.parametrize(
    ("query", "edges", "different", "answer"),
    [
        ("SELECT ?x { <urn:a> <urn:r> ?x FILTER(?x != <urn:a>) }", 1, 1, "?x"),
        ("SELECT (?x0 AS ?value) WHERE { SELECT DISTINCT ?x0 WHERE { ?x0 <urn:r> ?x1 . VALUES ?x1 { <urn:a> } "
         "FILTER(?x0 != ?x1) } }", 1, 1, "?x0"),
        ("SELECT ?x { <urn:a> <urn:r> ?y . ?y <urn:s> ?x . FILTER NOT EXISTS { ?y <urn:t> ?z } }", 2, 0, "?x"),
    ],
)  # fmt: skip
def test_facts_of_a_query(query, edges, different, answer):
    asked, facts, unequal, _ = query_facts(query)
    assert (len(facts), len(unequal), asked.n3()) == (edges, different, answer)


@pytest.mark.parametrize("query", ["", "ASK { ?a ?b ?c }", "SELECT ?x { }", "not sparql \x00"])
def test_queries_without_facts(query):
    with pytest.raises(Untranslatable):
        query_facts(query)
