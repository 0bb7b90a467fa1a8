"""Answers from the text of `Finish`: which of the observed values it names, and the query that returns them."""

from __future__ import annotations

import pytest

from kgqa.llm.replies.action_lines import Call
from kgqa.methods.counselor.functions import GraphFunctions
from tests.graph.facts import ns
from tests.memory_graph import memory_graph

from .conftest import played

GOOD = "The Good, the Bad and the Ugly"
TITLES = (GOOD, "The Good", "Ugly", "A Film, Part 2", "Rain", "Sun and Moon", "1984", "Rain")
YEARS = (1966, 1985, 1999, 2004, 2004, 2010, 1984, 2011)
FILMS = ns(
    *(f'm.f{number} type.object.name "{title}"@en' for number, title in enumerate(TITLES)),
    *(f'm.f{number} film.film.year "{year}"' for number, year in enumerate(YEARS)),
    *(f"m.dir director.film m.f{number}" for number in range(8)),
    *(f"m.f{number} film.film.genre m.g{number % 2}" for number in range(8)),
    *(f'm.f{number} film.film.seen "{year}-05-02"' for number, year in enumerate(YEARS)),
    *(f'm.f{number} film.film.parts "{number % 3}"' for number in range(8)),
    *(f'm.f{number} film.film.share "{number + 4}%"' for number in range(8)),
    *(
        f'm.{node} type.object.name "{name}"@en'
        for node, name in (("dir", "Dora"), ("g0", "Comedy"), ("g1", "Western"))
    ),
    'm.f1 film.film.cost "1200"',
    "m.f1 film.film.sequel m.f1",
    "m.f1 film.film.sequel m.f2",
    "m.f2 film.film.sequel m.f1",
)
ALL = "Neighbour[Retrieve[Dora], film]"


@pytest.fixture(scope="module")
def graph():
    return memory_graph(FILMS)


def answer(graph, *program, question=""):
    return played(graph, *program, question=question).answer


@pytest.mark.parametrize(
    ("text", "ids", "others"),
    [
        (GOOD, ["m.f0"], ()),
        ("the ugly and A Film, Part 2", ["m.f2", "m.f3"], ()),
        ('"Sun and Moon", "Rain"', ["m.f5", "m.f4", "m.f7"], ()),
        ("Rain (m.f7)", ["m.f7"], ()),
        ("m.f7, m.f1", ["m.f7", "m.f1"], ()),
        ("['m.f0', 'm.f2']", ["m.f0", "m.f2"], ()),
        ("Ugly Betty, The Goodbye, Rain", ["m.f4", "m.f7"], ("Ugly Betty", "The Goodbye")),
        ("the film 1984", [], ("the film 1984",)),
        ("1984.", ["m.f6"], ()),
        ("Washington, D.C.; Rain (m.f4); Paris", ["m.f4"], ("Washington, D.C", "Paris")),
    ],
)
def test_longest_names_are_read_first_and_the_rest_is_cut_at_commas(graph, text, ids, others):
    functions = GraphFunctions(graph)
    functions.run(Call("Neighbour", (Call("Retrieve", ("Dora",)), "film")))
    chosen = functions.seen.chosen(text)
    assert ([each.id for each in chosen.values], chosen.others) == (ids, others)


def test_a_part_that_was_not_observed_makes_the_answer_the_models(graph):
    found = answer(graph, ALL, "Finish[Ugly, Snow]")
    assert [each.name for each in found.answers] == ["Ugly", "Snow"]
    assert (found.grounding, found.sparql) == ("model", "") and "Snow" in found.notes[-1]
    assert answer(graph, "Retrieve[Dora]", "Finish[Dora]").grounding == "model"
    assert answer(graph, f"Count[{ALL}]", "Finish[9]").grounding == "model"
    assert answer(graph, ALL, "Finish[]") is None


def test_an_id_that_the_language_model_gave_is_noted(graph):
    found = answer(graph, "Neighbour[m.f1, genre]", "Finish[Western]")
    assert found.query_class == "exact" and "gave their ids: The Good (m.f1)" in found.notes[-1]
    assert not answer(graph, "Neighbour[Retrieve[m.f1], genre]", "Finish[Western]").notes


@pytest.mark.parametrize(
    ("call", "text", "answers", "part"),
    [
        (f"Count[{ALL}]", "eight", ["8"], "COUNT"),
        (f"Count[{ALL}]", f"Count[{ALL}]", ["8"], "COUNT"),
        ("Degree[Retrieve[Dora], film]", "8 films.", ["8"], "COUNT"),
        ("Degree[Retrieve[m.f1], sequel]", "2", ["2"], "COUNT"),  # with the loop
        ("Feature[Retrieve[m.f0], seen]", "May 2nd, 1966", ["1966-05-02"], "film.seen"),
        ("Feature[Retrieve[m.f0], share]", "4 %", ["4%"], "film.share"),
        ("Feature[Retrieve[m.f1], parts]", "One", ["1"], "film.parts"),
        ("Feature[Retrieve[m.f1], cost]", "1,200", ["1200"], "film.cost"),
    ],
)
def test_numbers_count_again_and_values_have_other_forms(graph, call, text, answers, part):
    found = answer(graph, call, f"Finish[{text}]")
    assert [each.name for each in found.answers] == answers
    assert found.query_class == "exact" and part in found.sparql


def test_topics_are_compared_by_what_was_looked_up_of_both(graph):
    years = [f"Feature[Retrieve[m.f{number}], year]" for number in (1, 2)]
    found = answer(graph, *years, "Finish[Ugly]", question="Which is later, The Good or Ugly?")
    assert found.query_class == "exact" and [each.id for each in found.answers] == ["m.f2"]


@pytest.mark.parametrize(
    ("question", "lookup", "finish", "word"),
    [
        ("Which film by Dora is the oldest?", "year", GOOD, "MIN"),
        ("What was the last film?", "year", "m.f7", "MAX"),
        ("Which came out after 2004?", "year", "Sun and Moon, m.f7", " > "),
        ("Which was seen before 3 May 1985?", "seen", "m.f0, m.f1, m.f6", "1985-05-03"),
        ("Which has two parts?", "parts", "m.f2, m.f5", "2"),
        ("Which has a share of 5 %?", "share", "m.f1", "5%"),
        ("Which came out in 2004 or later?", "year", "m.f3, m.f4, m.f5, m.f7", " >= "),
        ("Which of her films are a comedy?", "genre", "m.f0, Ugly, m.f4, 1984", "m.g0"),
    ],
)
def test_values_picked_by_a_look_up_become_part_of_the_query(graph, question, lookup, finish, word):
    found = answer(graph, ALL, f"Feature[{ALL}, {lookup}]", f"Finish[{finish}]", question=question)
    assert found.query_class == "exact" and word in found.sparql
    # the nodes may be looked up one by one, if none is left out
    each = [f"Feature[m.f{number}, {lookup}]" for number in range(8)]
    assert answer(graph, ALL, *each, f"Finish[{finish}]", question=question).sparql == found.sparql
    some = answer(graph, ALL, *each[1:], f"Finish[{finish}]", question=question)
    assert (some.grounding, some.query_class) == ("graph", "superset")


def test_values_picked_by_their_degrees(graph):
    found = answer(graph, ALL, f"Degree[{ALL}, sequel]", "Finish[The Good]", question="Which has the most sequels?")
    assert found.query_class == "exact" and "COUNT" in found.sparql


PAPERS = ("Alpha", "Beta, Inc", "Foo [Live]", "a] b", "Gamma (film)", "Alpha")
MADE, PLACE = "Neighbour[Retrieve[Dora], made]", "http://example.org"
SHOWN = [f"{name} ({PLACE}/f{number}, paper)" for number, name in enumerate(PAPERS)]


@pytest.fixture(scope="module")
def papers():
    label, type_ = "<http://www.w3.org/2000/01/rdf-schema#label>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = [f'<{PLACE}/dora> {label} "Dora" .']
    for number, name in enumerate(PAPERS):
        node = f"<{PLACE}/f{number}>"
        lines += [f'{node} {label} "{name}" .', f"{node} {type_} <{PLACE}/paper> ."]
        lines += [f"<{PLACE}/dora> <{PLACE}/made> {node} .", f'{node} <{PLACE}/code> "x{number}" .']
    return memory_graph(lines, schema="rdfs")


@pytest.mark.parametrize("number", [0, 1, 2, 4, 5])
def test_a_node_is_copied_into_calls_as_it_was_shown(papers, number):
    node = SHOWN[number]
    done = played(papers, MADE, f"Feature[{node}, code]", f"Neighbour[{node}]", f"Intersect[{MADE}, {node}]")
    assert node in done.observations[0].text and not done.problems
    _, code, relations, both = done.observations
    assert [each.name for each in code.found.values] == [f"x{number}"] and "code (1)" in relations.text
    assert [each.iri for each in both.found.nodes.nodes] == [f"{PLACE}/f{number}"]


@pytest.mark.parametrize("numbers", [[0], [1], [5], [0, 3], [1, 2, 4]])
@pytest.mark.parametrize("between", ["; ", ", ", "\n- "])
def test_a_node_is_copied_into_finish_as_it_was_shown(papers, numbers, between):
    if 3 in numbers and "\n" in between:
        return  # an unpaired bracket ends a list over lines
    text = between.join(SHOWN[number] for number in numbers)
    found = answer(papers, MADE, f"Finish[\n- {text}\n]" if "\n" in between else f"Finish[{text}]")
    assert [each.value.iri for each in found.answers] == [f"{PLACE}/f{number}" for number in numbers]
    assert found.grounding == "graph", "the type is no answer"
