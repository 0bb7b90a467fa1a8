"""The functions of a graph: what they find, how they name relations, and what they say if a call cannot be run."""

from __future__ import annotations

import pytest

from kgqa.errors import StoreTimeout
from kgqa.llm.replies.action_lines import read_action_line
from kgqa.methods.counselor.functions import GraphFunctions
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


@pytest.fixture(scope="module")
def graph():
    return memory_graph(FACTS + NAMES + PEOPLE)


class Words(WordEncoder):
    encode = WordEncoder.encode_once


def run(graph, *lines, **options):
    """Run lines and return the last observation."""
    functions = GraphFunctions(graph, **options)
    for line in lines:
        for call in read_action_line(line).value:
            observation = functions.run(call)
    return observation


def names(observation):
    assert not observation.problem, observation.problem
    return [each.name for each in observation.found.values]


def test_a_relation_is_named_by_its_words_its_id_or_through_a_mediator(graph):
    for hop in ("children", "people.person.children", "the children", "people person children"):
        assert names(run(graph, f"Neighbour[Retrieve[m.ann], {hop}]")) == ["Bob", "Cid"], hop
    for hop in ("spouses", "spouse", "people.person.spouse_s: people.marriage.spouse"):
        assert names(run(graph, f"Neighbour[Retrieve[m.ann], {hop}]")) == ["Bob"], hop
    assert names(run(graph, "Neighbour[Retrieve[m.cid], parents]")) == ["Ann"]
    assert set(names(run(graph, "Neighbour[Retrieve[m.male], <- people.person.gender]"))) == {"Bob", "m.dan", "m.eve"}


def test_a_relation_without_an_inverse_is_followed_backwards_where_it_leads_nowhere(graph):
    found = run(graph, "Count[Neighbour[Retrieve[m.male], gender]]")
    assert found.found.numbers[0].number == 3 and "followed backwards" in found.text
    assert run(graph, "Count[Neighbour[Retrieve[m.male], people.person.gender]]").found.numbers[0].number == 0


def test_a_similar_name_of_a_relation_is_used_and_said():
    lines = ns(
        'm.a type.object.name "Alpha"@en', 'm.b type.object.name "Beta"@en', "m.a x.river.river_basin_country m.b"
    )
    encoder = CachedEncoder(Words(), None)
    found = run(memory_graph(lines), "Neighbour[Retrieve[Alpha], river basin country name]", encoder=encoder)
    assert names(found) == ["Beta"] and "was read as" in found.text
    assert "no relation" in run(memory_graph(lines), "Neighbour[Retrieve[Alpha], president]", encoder=encoder).problem


def test_a_node_is_found_by_id_by_name_and_by_a_similar_name(graph):
    assert names(run(graph, "Retrieve[m.bob]")) == names(run(graph, "Retrieve[bob]")) == ["Bob"]
    ann = run(graph, "Retrieve[Ann]")  # the one with more edges
    assert ann.found.values[0].id == "m.ann" and "m.other" in ann.text
    close = run(graph, "Retrieve[Movies]")
    assert names(close) == ["Movie"] and "most similar" in close.text
    assert run(graph, "Retrieve[qwertz]").problem


@pytest.mark.parametrize("many", [1, 10_000])
def test_all_names_are_compared_however_many(monkeypatch, many):
    encoder = CachedEncoder(Words(), None)
    monkeypatch.setattr("kgqa.methods.counselor.retrieval.MANY", many)
    monkeypatch.setattr("kgqa.methods.counselor.retrieval.BLOCK", 3)
    numbers = ("zero", "one", "two", "three", "four", "five", "six")
    lines = [f'm.{word} type.object.name "Prize number {word}"@en' for word in numbers]
    graph = memory_graph(ns(*lines, 'm.zero common.topic.alias "five"@en'))
    for word in ("zero", "five", "six"):
        assert names(run(graph, f"Retrieve[the prize number {word}]", retrieve="dense", encoder=encoder)) == [
            f"Prize number {word}"
        ]


def test_sets_numbers_and_lists_of_nodes(graph):
    assert names(run(graph, "Neighbour[[m.ann, m.bob], spouses]")) == ["Bob", "Ann"]
    numbers = run(graph, "Degree[[m.ann, m.bob], spouses]").found.numbers
    assert [(each.node.name, each.number) for each in numbers] == [("Ann", 1), ("Bob", 1)]
    assert run(graph, "Degree[Retrieve[m.cid], children]").found.numbers[0].number == 0
    assert names(run(graph, "Without[Neighbour[Retrieve[m.ann], spouses], m.bob]")) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Neighbour[nobody, film]", "Retrieve[nobody]"),
        ("Neighbour[]", "Neighbour[node, type]"),
        ("Intersect[m.ann]", "Intersect[nodes, nodes]"),
        ("Neighbour[Count[m.ann], film]", "is a number"),
        ("Neighbour[m.ann, Retrieve[film]]", "Neighbour[node, type]"),
        ("Retrieve[]", "Retrieve[text]"),
    ],
)
def test_a_call_that_cannot_be_run_says_what_is_right(graph, line, problem):
    found = run(graph, line)
    assert problem in found.problem and problem in found.text


def test_an_id_that_was_not_seen_is_used_and_said(graph):
    found = run(graph, "Neighbour[m.ann, children]")
    assert names(found) == ["Bob", "Cid"] and "m.ann was not seen before" in found.text
    assert "not seen" not in run(graph, "Retrieve[m.ann]", "Neighbour[m.ann, children]").text


def test_published_functions_have_no_sets_and_show_ids(graph):
    assert "no function Count" in run(graph, "Count[m.ann]", sets=False).problem
    assert run(graph, "Neighbour[Retrieve[m.ann], spouses]", ids_only=True).text.endswith(": m.bob")


def test_a_query_that_takes_too_long_is_said_and_the_next_call_runs(graph, monkeypatch):
    functions = GraphFunctions(graph)
    select = graph.store.select

    def slow(query, **options):
        if "spouse" in query:
            raise StoreTimeout("The query took too long.")
        return select(query, **options)

    monkeypatch.setattr(graph.store, "select", slow)
    calls = read_action_line("Neighbour[Retrieve[m.ann], spouses], Neighbour[Retrieve[m.ann], children]").value
    late, children = map(functions.run, calls)
    assert late.problem and "too long" in late.text
    assert names(children) == ["Bob", "Cid"]


def test_sets_that_are_too_large_are_counted_by_the_graph(monkeypatch):
    monkeypatch.setattr("kgqa.methods.counselor.functions.MAX_VALUES", 20)
    graph = memory_graph(ns(*(f"m.a x.y.to m.n{number:04}" for number in range(60))))
    found = run(graph, "Neighbour[Retrieve[m.a], to]")
    assert found.found.approximate and found.found.total == 60 and "60 values" in found.text
    assert run(graph, "Count[Neighbour[Retrieve[m.a], to]]").found.numbers[0].number == 60


COAUTHORS = ns(
    *(f'm.a{number} type.object.name "Author {number}"@en' for number in range(4)),
    *(f"m.a0 author.paper m.p{number}" for number in range(6)),
    *(
        f"m.p{number} paper.author m.a{author}"
        for number in range(6)
        for author in (0, *range(1, 4))[: 1 + number // 2]
    ),
    *(f"m.p{number} paper.author m.a1" for number in range(6)),
)
OWN = "Neighbour[Retrieve[Author 0], author.paper]"


def test_most_leaves_out_the_topic_that_all_nodes_lead_back_to():
    graph = memory_graph(COAUTHORS)
    done = played(graph, f"Most[{OWN}, paper.author]", "Finish[Author 1]")
    assert names(done.observations[0]) == ["Author 1"] and "shared by 6 of 6" in done.observations[0].text
    assert done.answer.query_class == "exact" and [each.name for each in done.answer.answers] == ["Author 1"]


def test_most_ranks_all_nodes_or_says_approximate(monkeypatch):
    monkeypatch.setattr("kgqa.methods.counselor.functions.MAX_NODES", 2)
    graph = memory_graph(COAUTHORS)
    assert "shared by 6 of 6: " in run(graph, f"Most[{OWN}, paper.author]").text
    monkeypatch.setattr("kgqa.methods.counselor.functions.MAX_VALUES", 1)
    found = run(graph, f"Most[{OWN}, paper.author]")
    assert "approximate" in found.text and found.found.approximate


@pytest.mark.parametrize(
    ("program", "question", "number"),
    [
        (["Count[Neighbour[Retrieve[Author 0], nothing]]"], "", None),
        (["Count[Neighbour[Retrieve[Author 3], author.paper]]"], "", "0"),
        ([f"Count[Intersect[{OWN}, Neighbour[Retrieve[Author 3], author.paper]]]"], "", "0"),
        ([f"Count[Without[{OWN}, {OWN}]]"], "", "0"),
        (["Degree[Retrieve[Author 3], author.paper]"], "", "0"),
        (["Neighbour[Retrieve[Author 0]]"], "How many papers has author 0?", "6"),
        (["Neighbour[Retrieve[Author 1]]"], "On how many papers is author 1?", "6"),
    ],
)
def test_counts_of_zero_and_listed_counts_have_queries(program, question, number):
    graph = memory_graph([*COAUTHORS, *ns("m.a3 author.paper.of m.x", "m.y author.paper m.z")])
    answer = played(graph, *program, f"Finish[{number or 0}]", question=question).answer
    if number is None:
        assert answer.grounding == "model"
        return
    assert [each.name for each in answer.answers] == [number]
    assert answer.query_class == "exact" and "COUNT" in answer.sparql


def test_over_50_nodes_are_counted_and_each_shows_its_value():
    films = [f"m.d director.film m.f{number:02}" for number in range(60)]
    names_ = [f'm.f{number:02} type.object.name "{"Long " * 40}film {number:02}"@en' for number in range(60)]
    years = [f'm.f{number:02} film.year "{1900 + number}"' for number in range(60)]
    genres = [f"m.f{number:02} film.genre m.g{genre:02}" for number in range(60) for genre in range(20)]
    graph = memory_graph(ns(*films, *names_, *years, *genres))
    text = run(graph, "Feature[Neighbour[Retrieve[m.d], film], year]").text
    assert "60 nodes: " in text and text.endswith("more") and len(text) <= 3000
    shown = [year for year in range(1900, 1960) if f": {year}" in text]
    assert len(shown) >= 20 and f"and {60 - len(shown)} more" in text, "all that is left out is counted"
    text = run(graph, "Neighbour[[m.f01, m.f02, m.f03], genre]").text
    assert text.count("(m.f0") == 3 and text.count("more") >= 1, "no node hides the values of another"
