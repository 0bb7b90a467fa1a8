"""Explanations: exported queries carry theirs until they are changed, others are put into words part by part."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kgqa import open_graph
from kgqa.errors import QueryRejected
from kgqa.graph.query.explain import explain, is_of_graph
from kgqa.graph.query.export import _with_words
from kgqa.graph.query.tokens import shorten_iris
from kgqa.model import Entity, RelationPath, Step
from kgqa.model.conditions import Comparison, Condition, year
from tests.memory_graph import memory_graph

E = "http://e/"
WHERE = "{ ?x <http://e/p> ?y ; <http://e/q> ?z }"
LAND = Entity(E + "land")
HAS = RelationPath(LAND, (Step(E + "has"),))


@pytest.fixture(scope="module")
def demo_graph():
    with open_graph() as graph:
        yield graph


@pytest.fixture(scope="module")
def graph():
    names = ("ays", "bex", "cor")
    lines = [f"<{E}land> <{E}has> <{E}{name}> ." for name in names]
    return memory_graph([*lines, *(f'<{E}{name}> <{E}pop> "{at}" .' for at, name in enumerate(names))], schema="rdfs")


@pytest.fixture(scope="module")
def exported(graph):
    since = Condition(1, (Step(E + "since"),), Comparison("<=", year(1998)))
    return graph.answer_query(HAS, conditions=[since])


def _shortened(query: str) -> str:
    return shorten_iris(query, {"e": E})


WORDS = """Find every ?answer such that
  1. http://e/land has “has”: ?answer, where ?answer is not http://e/land
  2. “since” of ?answer is in or before 1998"""


def test_an_exported_query_carries_its_explanation(graph, demo_graph, exported):
    assert explain(graph, exported) == explain(demo_graph, exported) == WORDS
    assert is_of_graph(demo_graph, exported)


@pytest.mark.parametrize("saved", [_shortened, lambda query: query.replace("\n", "\r\n"), lambda query: "\n " + query])
def test_it_is_read_back_from_a_file_and_with_prefixes(graph, exported, saved):
    assert explain(graph, saved(exported)) == WORDS


@pytest.mark.parametrize(
    ("old", "new"), [("e/since", "e/until"), ("DISTINCT ", ""), ("<= <", "< <"), ("is not http", "is http")]
)
def test_a_query_changed_by_hand_is_not_explained_by_what_it_carries(graph, exported, old, new):
    assert old in exported
    words = explain(graph, exported.replace(old, new))
    assert words != WORDS and words.startswith("Find every ?answer such that\n  1. http://e/land has “has”: ?answer")


def test_escapes_are_resolved(graph):
    query = "SELECT ?x { <http://e/l\\u0061nd> <http://e/caf\\u00e9> ?x ; <http://e/q> '\\u0041' }"
    assert "café" in explain(graph, query) and "“A”" in explain(graph, query)
    assert not is_of_graph(graph, query) and is_of_graph(graph, query.replace("caf\\u00e9", "h\\u0061s"))


def test_words_do_not_hide_a_query_that_fetches_data(graph):
    query = _with_words("SELECT ?x WHERE { SERVICE <http://elsewhere/> { ?x ?y ?z } }", ["Find every ?x"])
    with pytest.raises(QueryRejected, match="SERVICE"):
        explain(graph, query)


OTHERS = {
    f"SELECT (COUNT(?x) AS ?n) {WHERE}": ["?n is the number of ?x"],
    f"SELECT ?y (COUNT(DISTINCT ?x) AS ?n) {WHERE} GROUP BY ?y HAVING(COUNT(?x) > 3) ORDER BY DESC(COUNT(?x))":
        ["?n is the number of different ?x", "the number of ?x is greater than “3”", "for each ?y", "the rows are sorted"],
    f"SELECT (SUM(?z)/COUNT(*) AS ?mean) (MAX(?z) AS ?top) {WHERE}":
        ["?mean is a value computed from the sum of ?z, the number of rows", "?top is the largest ?z"],
    f"SELECT ?y {WHERE} GROUP BY ?y HAVING(SUM(?z) + 1 > 4 && MIN(?z) IN (1, 2))":
        ["a value computed from the sum of ?z, “1” is greater than “4” and the smallest ?z is one of: “1”, “2”"],
    "SELECT ?c ?n { { SELECT ?c (AVG(?x) AS ?n) { ?c <http://e/p> ?x } GROUP BY ?c } FILTER(?n > 2) }":
        ["?n is the average of ?x", "?n is greater than “2”", "for each ?c"],
    f"SELECT ?x {WHERE} LIMIT 5 OFFSET 10": ["of all rows, those from 11 to 15"],
    "SELECT ?x { ?x <http://e/p> ?y OPTIONAL { ?x <http://e/q> ?z FILTER(?z > 5) } }":
        ["optionally: ?x has “q”: ?z and ?z is greater than “5”"],
    "SELECT ?x { ?x <http://e/p> ?y MINUS { ?x <http://e/q> ?z . ?z <http://e/r> ?w } }":
        ["but not: ?x has “q”: ?z and ?z has “r”: ?w"],
    "SELECT ?x { { ?x <http://e/p> 1 } UNION { ?x <http://e/q> 2 } FILTER(!isIRI(?x) || REGEX(STR(?x), 'a')) }":
        ["either ?x has “p”: “1” — or ?x has “q”: “2”",
         "either it is not true that isIRI of ?x — or REGEX of ?x, “a”"],
    "SELECT ?x { VALUES ?x { 1 2 } FILTER NOT EXISTS { ?x <http://e/p>/<http://e/q> <http://e/ann_b> } }":
        ["?x is one of: “1”, “2”", "it is not true that ?x has a property path: ann b (http://e/ann_b)"],
    "ASK { ?x <http://e/p> ?y }": ["Is there anything such that", "?x has “p”: ?y"],
}  # fmt: skip


@pytest.mark.parametrize(("query", "lines"), OTHERS.items())
def test_parts_of_other_queries_in_words(demo_graph, query, lines):
    text = explain(demo_graph, query)
    found = [line.strip().split(". ", 1)[-1] if line.startswith("  ") else line for line in text.splitlines()]
    assert "__agg" not in text and [line for line in lines if line not in found] == [], text


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from kgqa.graph.query.explain import parse_query
from kgqa.training.gold_queries import query_paths
queries = [f"SELECT ?x {{ <http://e/{n}> <http://e/p>/<http://e/q> ?x . FILTER(?x != 'a'@en) }}" for n in range(40)]
with ThreadPoolExecutor(8) as pool:
    paths, trees = pool.map(query_paths, queries), pool.map(parse_query, queries)
    print({len(found) for found in paths}, {tree[1].name for tree in trees})
"""


def test_the_first_queries_of_a_process_may_come_from_many_threads():
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=60)
    assert done.stdout == "{1} {'SelectQuery'}\n", done.stderr
