"""Programs without a language model: the same answers, by exact queries, on every store and over a corpus."""

from __future__ import annotations

from kgqa.graph.opening import open_graph
from tests.corpus.small_corpus import insert, new_editor
from tests.memory_graph import memory_graph

from .conftest import played

FACTS = {
    "Bubye": {"lies in": ["Zimbabwe"], "flows into": ["Limpopo"]},
    "Save": {"lies in": ["Zimbabwe", "Mozambique"], "flows into": ["Ocean"]},
    "Limpopo": {"lies in": ["Zimbabwe", "Mozambique", "Botswana"], "flows into": ["Ocean"]},
    "Okavango": {"lies in": ["Botswana", "Angola"]},
    "Zimbabwe": {"has capital": ["Harare"]},
    "Mozambique": {"has capital": ["Maputo"]},
    "Botswana": {"has capital": ["Gaborone"]},
}
IN_ZIMBABWE = "Neighbour[Retrieve[Zimbabwe], <- lies in]"
PROGRAMS = {
    ("Retrieve[Save]", "Neighbour[Save, lies in]", "Neighbour[Zimbabwe, has capital]", "Finish[Harare]"): "restricted",
    ("Neighbour[Neighbour[Retrieve[Limpopo], lies in], has capital]", "Finish[Maputo, Harare and Gaborone]"): "exact",
    (IN_ZIMBABWE, "Neighbour[Retrieve[Mozambique], <- lies in]", f"Intersect[{IN_ZIMBABWE}, "
     "Neighbour[Retrieve[Mozambique], <- lies in]]", "Finish[Save; Limpopo]"): "exact",
    (f"Without[{IN_ZIMBABWE}, Neighbour[Retrieve[Mozambique], <- lies in]]", "Finish[Bubye]"): "exact",
    (f"Without[{IN_ZIMBABWE}, Save]", f"Finish[Without[{IN_ZIMBABWE}, Save]]"): "exact",
    (f"Count[{IN_ZIMBABWE}]", "Finish[3]"): "exact",
    ("Degree[Retrieve[Limpopo], lies in]", "Finish[3 countries]"): "exact",
    ("Most[Neighbour[Retrieve[Ocean], <- flows into], lies in]", "Finish[Mozambique, Zimbabwe]"): "exact",
    (IN_ZIMBABWE, f"Degree[{IN_ZIMBABWE}, lies in]", "Finish[Limpopo]"): "exact",
    (IN_ZIMBABWE, "Finish[Save]"): "superset",
}  # fmt: skip


def lines():
    place = "http://example.org/"
    iris = {name: f"<{place}{name.replace(' ', '_')}>" for name in set().union(FACTS, *FACTS.values())}
    for name, links in FACTS.items():
        for link, ends in links.items():
            for end in ends:
                iris.setdefault(end, f"<{place}{end}>")
                yield f"{iris[name]} {iris[link]} {iris[end]} ."
    for name, iri in iris.items():
        yield f'{iri} <http://www.w3.org/2000/01/rdf-schema#label> "{name}"@en .'


def results(graph):
    """What is observed and answered, without ids; whatever the store, it is the same."""
    found = []
    for program, class_ in PROGRAMS.items():
        done = played(graph, *program)
        assert not done.problems and not done.answer.defects
        assert (done.answer.grounding, done.answer.query_class) == ("graph", class_)
        observed = [[named.name for named in each.found.values] for each in done.observations]
        numbers = [[number.number for number in each.found.numbers] for each in done.observations]
        found.append((observed, numbers, [each.name for each in done.answer.answers]))
    assert [names for *_, names in found] == [
        ["Harare"], ["Maputo", "Harare", "Gaborone"], ["Save", "Limpopo"], ["Bubye"], ["Bubye", "Limpopo"],
        ["3"], ["3"], ["Mozambique", "Zimbabwe"], ["Limpopo"], ["Save"],
    ]  # fmt: skip
    return found


def test_every_store_and_a_corpus_give_the_same(make, tmp_path):
    expected = results(memory_graph(list(lines()), schema="rdfs"))
    assert results(make(list(lines()), schema="rdfs")) == expected
    with new_editor(tmp_path / "corpus") as editor:
        for name, links in FACTS.items():
            insert(editor, name, *(f"{name} {link.replace(' ', '_')} {end}" for link in links for end in links[link]))
        editor.publish()
    with open_graph(tmp_path / "corpus") as graph:
        assert results(graph) == expected
