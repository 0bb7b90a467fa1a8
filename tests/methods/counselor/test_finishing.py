"""Answers from the text of `Finish`: which of the observed values it names, and the query that returns them."""

from __future__ import annotations

import pytest

from kgqa.llm.replies.action_lines import read_action_line
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.trace.trace import Trace
from tests.graph.facts import ns
from tests.memory_graph import memory_graph

from .conftest import played

TITLES = (
    "The Good, the Bad and the Ugly",
    "The Good",
    "Ugly",
    "A Film, Part 2",
    "Rain",
    "Sun and Moon",
    "1984",
    "Rain",
)
YEARS = (1966, 1985, 1999, 2004, 2004, 2010, 1984, 2011)
FILMS = ns(
    *(f'm.f{number} type.object.name "{title}"@en' for number, title in enumerate(TITLES)),
    *(f'm.f{number} film.film.year "{year}"' for number, year in enumerate(YEARS)),
    *(f"m.dir director.film m.f{number}" for number in range(8)),
    *(f"m.f{number} film.film.genre m.g{number % 2}" for number in range(8)),
    *(f'm.f{number} film.film.seen "{year}-05-02"' for number, year in enumerate(YEARS)),
    *(f'm.f{number} film.film.parts "{number % 3}"' for number in range(8)),
    *(f'm.f{number} film.film.share "{number + 4}%"' for number in range(8)),
    'm.dir type.object.name "Dora"@en',
    'm.g0 type.object.name "Comedy"@en',
    'm.g1 type.object.name "Western"@en',
    *(f"m.g{number} genre.parent m.g{number + 5}" for number in range(2)),
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
        ("The Good, the Bad and the Ugly", ["m.f0"], ()),
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
    trace = Trace()
    functions = GraphFunctions(graph.for_question(trace))
    functions.run(read_action_line(ALL).value[0])
    chosen = functions.seen.chosen(text)
    assert ([each.id for each in chosen.values], chosen.others) == (ids, others)


def test_a_part_that_was_not_observed_makes_the_answer_the_models(graph):
    found = answer(graph, ALL, "Finish[Ugly, Snow]")
    assert [each.name for each in found.answers] == ["Ugly", "Snow"]
    assert (found.grounding, found.sparql) == ("model", "") and "Snow" in found.notes[-1]
    assert answer(graph, "Retrieve[Dora]", "Finish[Dora]").grounding == "model"
    assert answer(graph, ALL, "Finish[]") is None
    assert answer(graph, f"Count[{ALL}]", "Finish[9]").grounding == "model"


def test_an_id_that_the_language_model_gave_is_noted(graph):
    found = answer(graph, "Neighbour[m.f1, genre]", "Finish[Western]")
    assert found.query_class == "exact" and "gave their ids: The Good (m.f1)" in found.notes[-1]
    assert not answer(graph, "Neighbour[Retrieve[m.f1], genre]", "Finish[Western]").notes


@pytest.mark.parametrize(
    ("program", "answers"),
    [
        ((f"Count[{ALL}]", "Finish[8]"), ["8"]),
        ((f"Count[{ALL}]", f"Finish[Count[{ALL}]]"), ["8"]),
        (("Degree[Retrieve[Dora], film]", "Finish[8 films.]"), ["8"]),
        (("Retrieve[Dora]", ALL, "Degree[m.f1, sequel]", "Finish[2]"), ["2"]),  # with the loop
    ],
)
def test_numbers_count_again(graph, program, answers):
    found = answer(graph, *program)
    assert [each.name for each in found.answers] == answers
    assert found.query_class in ("exact", "restricted") and "COUNT" in found.sparql


def test_topics_are_compared_by_what_was_looked_up_of_both(graph):
    years = [f"Feature[Retrieve[m.f{number}], year]" for number in (1, 2)]
    found = answer(graph, *years, "Finish[Ugly]", question="Which is later, The Good or Ugly?")
    assert found.query_class == "exact" and [each.id for each in found.answers] == ["m.f2"]
    assert answer(graph, years[0], "Finish[The Good]").grounding == "model", "only looked up by its name"


@pytest.mark.parametrize(
    ("question", "lookup", "finish", "word"),
    [
        ("Which film by Dora is the oldest?", "year", "The Good, the Bad and the Ugly", "MIN"),
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
