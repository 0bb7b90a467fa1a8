"""The functions of a graph: what they find, how they name relations, and what they say if a call cannot be run."""

from __future__ import annotations

import pytest

from kgqa.errors import StoreTimeout
from kgqa.rank.embedding.encoder import CachedEncoder
from tests.corpus.word_encoder import WordEncoder
from tests.graph.facts import FACTS, NAMES, RDFS, ns
from tests.memory_graph import memory_graph

from .conftest import played

PEOPLE = ns(
    *(f'm.{name} type.object.name "{name.title()}"@en' for name in ("ann", "bob", "cid", "movie", "prize")),
    'm.other type.object.name "Ann"@en',
    f"people.person.children {RDFS}range people.person",
    "m.dan people.person.gender m.male",
    "m.eve people.person.gender m.male",
)
COAUTHORS = ns(
    *(f'm.a{number} type.object.name "Author {number}"@en' for number in range(4)),
    *(f"m.a0 author.paper m.p{number}" for number in range(6)),
    *(f"m.p{number} paper.author m.a{author}" for number in range(6) for author in range(1 + number // 2)),
    *(f"m.p{number} paper.author m.a1" for number in range(6)),
)
OWN = "Neighbour[Retrieve[Author 0], author.paper]"


@pytest.fixture(scope="module")
def graph():
    return memory_graph(FACTS + NAMES + PEOPLE)


class Words(WordEncoder):
    encode = WordEncoder.encode_once


def run(graph, *lines, **options):
    """Run lines and return the last observation."""
    return played(graph, *lines, **options).observations[-1]


def names(observation):
    assert not observation.problem, observation.problem
    return [each.name for each in observation.found.values]


def numbers(observation):
    return [each.number for each in observation.found.numbers]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Neighbour[Retrieve[m.ann], children]", ["Bob", "Cid"]),
        ("Neighbour[Retrieve[m.ann], people.person.children]", ["Bob", "Cid"]),
        ("Neighbour[Retrieve[m.ann], the children]", ["Bob", "Cid"]),
        ("Neighbour[Retrieve[m.ann], spouse]", ["Bob"]),
        ("Neighbour[Retrieve[m.ann], people.person.spouse_s: people.marriage.spouse]", ["Bob"]),
        ("Neighbour[Retrieve[m.cid], parents]", ["Ann"]),
        ("Neighbour[Retrieve[m.male], <- people.person.gender]", ["Bob", "m.dan", "m.eve"]),
        ("Neighbour[[m.ann, m.bob], spouses]", ["Bob", "Ann"]),
        ("Without[Neighbour[Retrieve[m.ann], spouses], m.bob]", []),
        ("Retrieve[bob]", ["Bob"]),
        ("Retrieve[Ann]", ["Ann"]),
    ],
)
def test_relations_and_nodes_are_named_by_their_words_or_ids(graph, line, found):
    assert sorted(names(run(graph, line))) == sorted(found)


def test_a_relation_without_an_inverse_is_followed_backwards_where_it_leads_nowhere(graph):
    found = run(graph, "Count[Neighbour[Retrieve[m.male], gender]]")
    assert numbers(found) == [3] and "followed backwards" in found.text
    assert numbers(run(graph, "Count[Neighbour[Retrieve[m.male], people.person.gender]]")) == [0]


def test_similar_names_are_used_and_said(graph):
    close = run(graph, "Retrieve[Movies]")
    assert names(close) == ["Movie"] and "most similar" in close.text
    rivers = memory_graph(ns('m.a type.object.name "Alpha"@en', "m.a x.river.river_basin_country m.b"))
    encoder = CachedEncoder(Words(), None)
    found = run(rivers, "Neighbour[Retrieve[Alpha], river basin country name]", encoder=encoder)
    assert names(found) == ["m.b"] and "was read as" in found.text


@pytest.mark.parametrize("many", [1, 10_000])
def test_all_names_are_compared_however_many(monkeypatch, many):
    monkeypatch.setattr("kgqa.methods.counselor.names.MANY", many)
    monkeypatch.setattr("kgqa.methods.counselor.names.BLOCK", 3)
    words = ("zero", "one", "two", "three", "four", "five", "six")
    graph = memory_graph(ns(*(f'm.{word} type.object.name "Prize number {word}"@en' for word in words)))
    for word in ("zero", "six"):
        options = {"retrieve": "dense", "encoder": CachedEncoder(Words(), None)}
        assert names(run(graph, f"Retrieve[the prize number {word}]", **options)) == [f"Prize number {word}"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Retrieve[qwertz]", "No node has a name"),
        ("Retrieve[]", "Retrieve[text]"),
        ("Neighbour[nobody, film]", "Retrieve[nobody]"),
        ("Neighbour[Retrieve[m.ann], president]", "The nearest are: "),
        ("Neighbour[m.ann, Retrieve[film]]", "Neighbour[node, type]"),
        ("Neighbour[Count[m.ann], film]", "is a number"),
        ("Intersect[m.ann]", "Intersect[nodes, nodes]"),
    ],
)
def test_a_call_that_cannot_be_run_says_what_is_right(graph, line, problem):
    found = run(graph, line)
    assert problem in found.problem and problem in found.text


def test_a_query_that_takes_too_long_is_said_and_the_next_call_runs(graph, monkeypatch):
    select = graph.store.select

    def slow(query, **options):
        if "spouse" in query:
            raise StoreTimeout("The query took too long.")
        return select(query, **options)

    monkeypatch.setattr(graph.store, "select", slow)
    done = played(graph, "Neighbour[Retrieve[m.ann], spouses]", "Neighbour[Retrieve[m.ann], children]")
    assert "too long" in done.problems[0] and names(done.observations[1]) == ["Bob", "Cid"]


def test_sets_that_are_too_large_are_counted_by_the_graph(monkeypatch):
    monkeypatch.setattr("kgqa.methods.counselor.functions.MAX_VALUES", 20)
    graph = memory_graph(ns(*(f"m.a x.y.to m.n{number:04}" for number in range(60))))
    found = run(graph, "Neighbour[Retrieve[m.a], to]")
    assert found.found.approximate and "60 values" in found.text
    assert numbers(run(graph, "Count[Neighbour[Retrieve[m.a], to]]")) == [60]
    assert "too large" in run(graph, "Count[Without[Neighbour[Retrieve[m.a], to], m.n0001]]").problem


def test_most_leaves_out_the_topic_and_ranks_all_nodes_or_says_approximate(monkeypatch):
    graph = memory_graph(COAUTHORS)
    monkeypatch.setattr("kgqa.methods.counselor.functions.MAX_NODES", 2)
    done = played(graph, f"Most[{OWN}, paper.author]", "Finish[Author 1]")
    assert names(done.observations[0]) == ["Author 1"] and "shared by 6 of 6: " in done.observations[0].text
    assert done.answer.query_class == "exact"
    monkeypatch.setattr("kgqa.methods.counselor.functions.MAX_VALUES", 1)
    found = run(graph, f"Most[{OWN}, paper.author]")
    assert "approximate" in found.text and found.found.approximate


@pytest.mark.parametrize(
    ("call", "question", "number"),
    [
        ("Count[Neighbour[Retrieve[Author 3], author.paper]]", "", "0"),
        (f"Count[Intersect[{OWN}, Neighbour[Retrieve[Author 3], author.paper]]]", "", "0"),
        (f"Count[Without[{OWN}, {OWN}]]", "", "0"),
        ("Degree[Retrieve[Author 3], author.paper]", "", "0"),
        ("Neighbour[Retrieve[Author 0]]", "How many papers has author 0?", "6"),
        ("Neighbour[Retrieve[Author 1]]", "On how many papers is author 1?", "6"),
    ],
)
def test_counts_of_zero_and_listed_counts_have_queries(call, question, number):
    graph = memory_graph([*COAUTHORS, *ns("m.a3 author.paper.of m.x", "m.y author.paper m.z")])
    answer = played(graph, call, f"Finish[{number}]", question=question).answer
    assert [each.name for each in answer.answers] == [number]
    assert answer.query_class == "exact" and "COUNT" in answer.sparql


def test_over_50_nodes_are_counted_and_each_shows_its_value():
    films = [f"m.d director.film m.f{number:02}" for number in range(60)]
    titles = [f'm.f{number:02} type.object.name "{"Long " * 40}film {number:02}"@en' for number in range(60)]
    years = [f'm.f{number:02} film.year "{1900 + number}"' for number in range(60)]
    genres = [f"m.f{number:02} film.genre m.g{genre:02}" for number in range(60) for genre in range(20)]
    graph = memory_graph(ns(*films, *titles, *years, *genres))
    text = run(graph, "Feature[Neighbour[Retrieve[m.d], film], year]").text
    assert "60 nodes: " in text and text.endswith("more") and len(text) <= 3000
    shown = [year for year in range(1900, 1960) if f": {year}" in text]
    assert len(shown) >= 20 and f"and {60 - len(shown)} more" in text, "all that is left out is counted"
    text = run(graph, "Neighbour[[m.f01, m.f02, m.f03], genre]").text
    assert text.count("(m.f0") == 3 and text.count("more") >= 1, "no node hides the values of another"
