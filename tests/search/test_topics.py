"""Topics that are given by their names."""

from __future__ import annotations

import pytest

from kgqa.errors import QuestionError
from kgqa.model import Entity
from kgqa.search.topics import check_topics, generic_topics, request_of
from kgqa.settings.values import resolve

from ..memory_graph import memory_graph
from .conftest import ent

LONG = "A long title about " + "very " * 30 + "much"
NAMES = (
    'm.spring type.object.name "Springfield"@en',
    'm.field type.object.name "Springfield"@en',
    'm.shelby type.object.name "Shelbyville"@en',
    'm.shelby common.topic.alias "The Rival"@en',
    'm.ogden type.object.name "Ogdenville"@en',
    'm.ogden common.topic.alias "Shelbyville"@en',
    'm.alien type.object.name "Alien:Romulus"@en',
    f'm.long type.object.name "{LONG}"@en',
)


@pytest.fixture
def topics(small):
    graph = small(*NAMES)

    def check(*given: str):
        notes: list[str] = []
        return check_topics(graph, given, resolve({"graph.path": "my graph/"}), notes), notes

    return check


def test_a_name_of_one_entity_is_taken_and_said(topics):
    assert topics("the RIVAL") == ([ent("m.shelby")], ["Read the topic “the RIVAL” as Shelbyville (m.shelby)."])


def test_a_single_similar_name_is_taken_and_said(topics):
    note = 'Read the topic “{}” as Ogdenville (m.ogden) (inexact match); use topics="ID" to choose another.'
    for name in ("Ogdenvile", "ogden"):  # a slip, and a part of the name
        assert topics(name) == ([ent("m.ogden")], [note.format(name)])


def test_a_label_comes_before_an_alias_of_another_entity_which_the_note_names(topics):
    found, [note] = topics("Shelbyville")
    assert found == [ent("m.shelby")] and "it could also be Ogdenville (m.ogden)" in note
    assert topics("alien:romulus")[0] == [ent("m.alien")] and topics(LONG)[0] == [ent("m.long")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("springfield", "2 entities are called “springfield”: Springfield (m.field), Springfield (m.spring)."),
        ("Ogdenville Rivers", "Similar names: Ogdenville (m.ogden)."),
        ("m.nobody", "has the id or the name “m.nobody”. "),
        ("http://rdf.freebase.com/ns/m.nobody", "has the id or the name “http://rdf.freebase.com/ns/m.nobody”"),
    ],
)
def test_other_names_list_what_may_be_meant(topics, name, message):
    with pytest.raises(QuestionError) as raised:
        topics(name)
    assert message in str(raised.value)


def test_the_kind_of_a_declined_question_is_said_in_its_own_words():
    question = "what is the most common language spoken in argentina?"
    assert request_of(question, ["common", "argentina"])[0] == "a superlative (the most common)"


@pytest.mark.parametrize("label", [[], ['<http://e/old> <http://www.w3.org/2000/01/rdf-schema#label> "old" .']])
def test_a_topic_is_read_as_the_entity_that_it_is_the_same_as(label):
    same = "<http://www.w3.org/2002/07/owl#sameAs>"
    lines = [f"<http://e/old> {same} <http://e/new> .", "<http://e/new> <http://r/p> <http://e/end> ."]
    graph, notes = memory_graph([*lines, *label]), []
    assert check_topics(graph, ["http://e/old"], resolve(), notes) == [Entity("http://e/new")]
    assert notes == ["Read old as new, by sameAs."]


def test_exact_spelling_decides_between_names():
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    names = {"cpp": "C++", "c": "C", "csharp": "C#"}
    graph = memory_graph([f'<http://e/{short}> {label} "{name}" .' for short, name in names.items()])
    for short, name in names.items():
        assert check_topics(graph, [name], resolve(), []) == [Entity(f"http://e/{short}")]
    assert check_topics(graph, ["c++"], resolve(), []) == [Entity("http://e/cpp")]


def test_generic_topics(small):
    lines = [f"m.x{n} r.r.gender m.male" for n in range(1001)]
    graph = small(*lines, "m.x0 r.r.knows m.ann", "m.x0 type.object.type m.person")
    male, ann, person = ent("m.male"), ent("m.ann"), ent("m.person")
    assert generic_topics(graph, [male, ann], {ann}) == {male}
    assert generic_topics(graph, [person, ann], {ann, person}) == {person}
    assert generic_topics(graph, [male], set()) == generic_topics(graph, [person], {person}) == set()
