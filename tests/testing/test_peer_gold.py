"""The gold of questions whose gold paths are known, in the words of the prompts."""

from __future__ import annotations

import pytest

from benchmarks.peer_gold import gold_along
from kgqa import open_graph, open_resources
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing.gold_table import gold_for
from kgqa.training.gold_queries import query_paths
from tests.testing.test_gold_table import ANTHEM, CAPITAL, question


@pytest.fixture(scope="module")
def demo(session_cache):
    with open_graph(cache=Cache(session_cache)) as graph:
        yield graph


def test_given_gold_paths_are_the_only_solutions(demo):
    query = """PREFIX ns: <http://rdf.freebase.com/ns/> SELECT ?x WHERE {
      ns:m.demo_kimigayo ns:government.national_anthem.national_anthem_of ?a .
      ?a ns:government.national_anthem_of_a_country.country ?c . ?c ns:location.country.capital ?x }"""
    resources = open_resources(demo, settings=resolve({"rank.embeddings": "off"}))
    found = gold_along(CAPITAL, resources, query_paths(query))
    assert found.solutions == (frozenset({ANTHEM}),) and found.answers == ("Tokyo",)
    assert {"Japan", "Tokyo"} <= found.nodes
    assert {
        "government.national_anthem.national_anthem_of", "government.national_anthem_of_a_country.country",
        "location.country.capital",
    } <= found.relations  # fmt: skip
    # an end that is not a gold answer is wrong, and so is a step that leads only to it
    other = gold_along(question("?", CAPITAL.topics, ("m.demo_oslo", "Oslo")), resources, query_paths(query))
    assert (other.answers, other.nodes) == (("Oslo",), frozenset())
    assert gold_along(CAPITAL, resources, []).solutions == gold_for(CAPITAL, resources).solutions


def test_gold_paths_of_two_topics_join_at_the_mediator(demo):
    query = """PREFIX ns: <http://rdf.freebase.com/ns/> SELECT ?x WHERE {
      ns:m.demo_julie_andrews ns:film.actor.film ?y . ns:m.demo_the_sound_of_music ns:film.film.starring ?y .
      ?y ns:film.performance.character ?x }"""
    topics = ("m.demo_julie_andrews", "m.demo_the_sound_of_music")
    which = question("Who?", topics, ("m.demo_maria_von_trapp", "Maria von Trapp"))
    paths = query_paths(query, tuple(f"http://rdf.freebase.com/ns/{topic}" for topic in topics))

    def solutions(**given):
        settings = {"rank.embeddings": "off", **{name.replace("__", "."): value for name, value in given.items()}}
        resources = open_resources(demo, settings=resolve(variants=settings))
        return set(gold_along(which, resources, paths).solutions)

    assert solutions() == {
        frozenset({"Julie Andrews -> film: character", "The Sound of Music -> starring"}),
        frozenset({"Julie Andrews -> film", "The Sound of Music -> starring: character"}),
    }
    assert solutions(explore__combine="separate") == {
        frozenset({"Julie Andrews -> film: character"}),
        frozenset({"The Sound of Music -> starring: character"}),
    }
