"""Programs without a language model: the same answers, by exact queries, on every store."""

from __future__ import annotations

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
HERE = "Neighbour[Retrieve[Zimbabwe], <- lies in]"
THERE = "Neighbour[Retrieve[Mozambique], <- lies in]"
PROGRAMS = [
    (("Neighbour[Retrieve[Save], lies in]", "Neighbour[Zimbabwe, has capital]", "Finish[Harare]"), "restricted"),
    (("Neighbour[Neighbour[Retrieve[Limpopo], lies in], has capital]", "Finish[Maputo, Harare, Gaborone]"), "exact"),
    ((HERE, THERE, f"Intersect[{HERE}, {THERE}]", "Finish[Save; Limpopo]"), "exact"),
    ((f"Without[{HERE}, {THERE}]", "Finish[Bubye]"), "exact"),
    ((f"Without[{HERE}, Save]", "Finish[Bubye; Limpopo]"), "exact"),
    ((f"Count[{HERE}]", "Finish[3]"), "exact"),
    (("Degree[Retrieve[Limpopo], lies in]", "Finish[3]"), "exact"),
    (("Most[Neighbour[Retrieve[Ocean], <- flows into], lies in]", "Finish[Mozambique; Zimbabwe]"), "exact"),
    ((HERE, f"Degree[{HERE}, lies in]", "Finish[Limpopo]"), "exact"),
    ((HERE, "Finish[Save]"), "superset"),
]


def lines():
    iris = {name: f"<http://example.org/{name.replace(' ', '_')}>" for name in set().union(FACTS, *FACTS.values())}
    for name, links in FACTS.items():
        for link, end in ((link, end) for link, ends in links.items() for end in ends):
            iris.setdefault(end, f"<http://example.org/{end}>")
            yield f"{iris[name]} {iris[link]} {iris[end]} ."
    for name, iri in iris.items():
        yield f'{iri} <http://www.w3.org/2000/01/rdf-schema#label> "{name}"@en .'


def test_every_store_gives_the_same(make):
    graph = make(list(lines()), schema="rdfs")
    for program, class_ in PROGRAMS:
        done = played(graph, *program)
        assert not done.problems and not done.answer.defects
        assert (done.answer.grounding, done.answer.query_class) == ("graph", class_), program
        texts = program[-1].removeprefix("Finish[").removesuffix("]").replace(",", ";").split("; ")
        assert [each.name for each in done.answer.answers] == texts
