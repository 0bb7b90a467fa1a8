"""Nodes and values that a language model copies as they were shown, or writes in another form."""

from __future__ import annotations

import pytest

from tests.memory_graph import memory_graph

from .conftest import played

BASE, LABEL = "http://example.org/", "<http://www.w3.org/2000/01/rdf-schema#label>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NAMES = ("Alpha", "Beta, Inc", "Foo [Live]", "a] b", "Gamma (film)", "Alpha")
VALUES = {"released": "1967-05-02", "share": "5%", "parts": "2", "cost": "1200"}
ALL = "Neighbour[Retrieve[Dora], made]"


def lines():
    yield f'<{BASE}dora> {LABEL} "Dora" .'
    for number, name in enumerate(NAMES):
        node = f"<{BASE}f{number}>"
        yield f'{node} {LABEL} "{name}" .'
        yield f"{node} {TYPE} <{BASE}paper> ."
        yield f"<{BASE}dora> <{BASE}made> {node} ."
        yield f'{node} <{BASE}code> "x{number}" .'
        yield f"{node} <{BASE}next> <{BASE}f{(number + 1) % 6}> ."
    for key, value in VALUES.items():
        yield f'<{BASE}f0> <{BASE}{key}> "{value}" .'


@pytest.fixture(scope="module")
def graph():
    return memory_graph(list(lines()), schema="rdfs")


def copied(graph, number):
    """Return the text with which an observation shows a node."""
    text = f"{NAMES[number]} (http://example.org/f{number}, paper)"
    assert text in played(graph, ALL, "Finish[x]").observations[0].text
    return text


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_in_calls(graph, number):
    node = copied(graph, number)
    found = played(graph, ALL, f"Feature[{node}, code]", f"Neighbour[{node}]", f"Intersect[{ALL}, {node}]", "Finish[x]")
    if "]" in NAMES[number] and "[" not in NAMES[number]:
        return  # an unpaired bracket ends a call
    assert not found.problems
    _, code, relations, both = found.observations
    assert [each.name for each in code.found.values] == [f"x{number}"]
    assert [each.iri for each in relations.found.nodes.nodes] == [each.iri for each in both.found.nodes.nodes]
    assert both.found.nodes.nodes[0].iri == f"{BASE}f{number}"


@pytest.mark.parametrize("numbers", [[0], [1], [3], [5], [0, 3], [1, 2, 4]])
@pytest.mark.parametrize("between", ["; ", ", ", "\n- "])
def test_in_finish(graph, numbers, between):
    if 3 in numbers and "\n" in between:
        return  # an unpaired bracket ends a list over lines
    text = between.join(copied(graph, number) for number in numbers)
    text = f"\n- {text}\n" if "\n" in between else text
    answer = played(graph, ALL, f"Finish[{text}]").answer
    assert [each.value.iri for each in answer.answers] == [f"{BASE}f{number}" for number in numbers]
    assert answer.grounding == "graph", "the type is no answer"


FORMS = {
    "released": ("2 May 1967", "May 2nd, 1967", "1967-05-02"),
    "share": ("5 %", "5%"),
    "parts": ("2", "Two"),
    "cost": ("1200", "1,200"),
}


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in FORMS.items() for text in texts])
def test_values_in_other_forms(graph, key, text):
    answer = played(graph, f"Feature[{BASE}f0, {key}]", f"Finish[{text}]").answer
    assert [each.name for each in answer.answers] == [VALUES[key]] and answer.query_class in ("exact", "restricted")


def test_number_words_count_again(graph):
    answer = played(graph, f"Count[{ALL}]", "Finish[six]").answer
    assert [each.name for each in answer.answers] == ["6"] and "COUNT" in answer.sparql
