"""Questions about the instances of a class, with and without a label."""

from __future__ import annotations

import pytest

from kgqa.methods.ask import ask, open_resources
from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import INSTANCE_OF
from kgqa.search.classes import find_topics, starts
from kgqa.search.conditions.requests import read_request
from kgqa.search.topics import mentions_of_request
from tests.ferries import FERRIES, V, thing
from tests.memory_graph import turtle_graph

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
FERRY, TOWN = Entity(V + "Ferry"), Entity(V + "HarbourTown")


@pytest.fixture(scope="module")
def graph():
    return turtle_graph(FERRIES)


@pytest.fixture(scope="module")
def resources(graph):
    return open_resources(graph)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which ferry is red?", [FERRY]),
        ("Which ferries are red?", [FERRY]),  # not Southern Ferries
        ("Which harbour towns are there?", [TOWN]),
        ("Which harbour town has Petra?", [thing("petra")]),
        ("Who directs Southern Ferries?", [thing("southern")]),
        ("Who lives in Old Harbour Town Street?", []),  # a part of a name
        ("Which shipping companies operate ferries?", [Entity(V + "ShippingCompany")]),
    ],
)
def test_class_is_a_topic_if_nothing_else_is_named(graph, question, expected):
    assert [each.matches[0].entity for each in find_topics(graph, question)] == expected


@pytest.mark.parametrize(
    ("topics", "options", "paths"),
    [
        ([FERRY], {}, [RelationPath(FERRY, (Step(TYPE, "in"),))]),
        ([FERRY, thing("olga")], {}, [RelationPath(thing("olga"))]),
        ([FERRY, thing("olga")], {"all_topics": True}, [RelationPath(FERRY), RelationPath(thing("olga"))]),
        ([thing("olga"), thing("northline")], {}, [RelationPath(thing("olga")), RelationPath(thing("northline"))]),
        ([], {}, []),
    ],
)
def test_paths_start_at_instances_if_all_topics_are_classes(graph, topics, options, paths):
    found = starts(graph, topics, **{"all_topics": False, **options})
    assert [each.path for each in found] == paths


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Which ferries are there?", "Olga Petra Runa"),
        ("List all harbour towns.", "Asker Brim"),
        ("Which ferries are red?", "Olga Runa"),
        ("Which red ferries does Northline have?", "Olga"),
        ("Which ferries have over 800 seats?", "Olga Petra"),
        ("Which ferries are red and have more than 800 seats?", "Olga"),
        ("Which ferries were launched after 2000?", "Petra Runa"),
        ("When were the ferries launched?", "1998-05-01 2005-03-02 2015-09-09"),
        ("How many ferries are there?", "3"),
        ("How many ferries have less than 1,000 seats?", "2"),
        ("How many harbour towns are there?", "2"),
        ("Which ferry is the longest?", "Petra"),
        ("Which ferry has the fewest seats?", "Runa"),
        ("What is the average length of the ferries?", "81.833333333333333333"),
        ("Which persons direct shipping companies?", "Ida_Holm Jon_Moe"),
        ("Which ferries sail at night?", "Petra Runa"),
        ("What is the home port of the longest ferry?", "Asker"),
        ("In which harbour town is the oldest ferry?", "Brim"),
        ("Which shipping company operates the oldest ferry?", "Northline"),
        ("Which person is the director of the operator of the newest ferry?", "Jon_Moe"),
        ("What is the motto of the longest ferry?", ""),  # the motto of another one is no answer
        # what nothing in the graph explains is not left out
        ("Which ferries are haunted?", ""),
        ("Which ferries are red and longer than 100 m?", ""),
        ("How many ferries are haunted?", ""),
    ],
)
def test_questions_about_a_class(resources, question, answers):
    found = ask(question, resources=resources)
    assert sorted(each.name.replace(" ", "_") for each in found.answers) == answers.split()
    assert found.query_class == ("exact" if answers else "none")


SUBCLASSES = f"""
@prefix f: <{V}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
f:CarFerry rdfs:subClassOf f:Ferry ; rdfs:label "car ferry" .
f:Ferry rdfs:subClassOf f:Ship .
f:Ship rdfs:label "ship" .
<http://ferries.example/id/sula> a f:CarFerry ; rdfs:label "Sula" ; f:lengthM 200 ;
  f:operator <http://ferries.example/id/northline> .
"""


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("How many ferries are there?", ["4"]),
        ("How many ferries does Northline have?", ["3"]),
        ("Which ferry is the longest?", ["Sula"]),
        ("Which car ferries are there?", ["Sula"]),
        ("How many ships are there?", ["4"]),
        ("What is the home port of the longest ferry?", []),  # that of the next longest is no answer
    ],
)
def test_instances_of_a_subclass_are_instances(question, answers):
    with open_resources(turtle_graph(FERRIES + SUBCLASSES)) as resources:
        found = ask(question, resources=resources)
    assert [each.name for each in found.answers] == answers
    assert found.query_class == ("exact" if answers else "none")
    assert all(triple.relation != INSTANCE_OF for path in found.paths for triple in path.triples)


def test_a_list_of_a_class_is_weak_only_if_it_leaves_words_out(resources):
    for question in ("Which ferries are there?", "Which ferry is the longest?", "Which ferries have over 800 seats?"):
        assert not ask(question, resources=resources).weak
    found = ask("Who directs haunted ferries?", resources=resources)
    assert found.weak and any("explains “directs”" in note for note in found.notes)


def test_an_extreme_is_one_of_the_class_that_its_noun_names(graph):
    request = read_request("Of which shipping company is the oldest harbour town?")
    (mention,) = mentions_of_request(graph, request, fit=None)
    assert mention.matches[0].entity == TOWN
