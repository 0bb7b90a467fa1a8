"""Mediators by each rule of a schema, independent of names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import pytest

from kgqa.graph.detection import missing_mediators
from kgqa.model import Candidate, Entity, Literal, Step, Triple
from tests.graph.facts import NS, RDF, XSD, ns, path, short, step
from tests.memory_graph import memory_graph


class TestMediators:
    EXTENTS: ClassVar = {
        "people.person.spouse_s": "all",  # by range
        "^people.marriage.spouse": "all",  # by domain
        "^people.marriage.from": "all",  # by the domain in its name
        "film.actor.film": "all",  # by the mark on the type
        "^film.performance.film": "all",
        "award.award_winner.awards_won": "all",  # by IRI
        "^award.award_honor.award": "all",
        "^education.education.institution": "all",
        "base.mixed.about": "some",
        "people.person.gender": "none",
        "^people.person.gender": "none",
        "film.performance.film": "none",
        "award.award_honor.award": "none",
        "^people.person.spouse_s": "none",
        "people.marriage.spouse": "none",
        "^base.mixed.about": "none",
        "base.unheard.of": "none",
    }

    def test_mediator_nodes(self, graph):
        for relation, extent in self.EXTENTS.items():
            assert graph.tables.mediators.extent(step(relation)) == extent, relation
            assert graph.paths.ends_on_mediators(path("m.ann", relation)) == (extent == "all"), relation

    @pytest.mark.parametrize("mark", ['"true"', f'"true"^^<{XSD}boolean>'])
    def test_mark_as_text_or_boolean(self, make, mark):
        graph = make(
            [
                *ns("m.a base.x.y m.m", "m.a base.x.y m.b", "m.m type.object.type base.cvt", "m.m base.cvt.z m.c"),
                f"<{NS}base.cvt> <{NS}freebase.type_hints.mediator> {mark} .",
            ]
        )
        assert graph.tables.mediators.extent(step("base.x.y")) == "some"
        assert short(graph.paths.ends([Candidate(path("m.a", "base.x.y"))])[0].values) == {"m.b"}

    def test_types_without_names(self, make):
        """Where the schema says so, nodes of a type without names are mediators, if most things have names."""
        label = "http://www.w3.org/2000/01/rdf-schema#label"
        medals = [f"<http://e/m{n}> <{RDF}type> <http://e/Medal> ." for n in (1, 2)]
        medals += [f"<http://e/m{n}> <http://e/for> <http://e/beer{n}> ." for n in (1, 2)]
        beers = [f"<http://e/beer{n}> <{RDF}type> <http://e/Beer> ." for n in range(4)]
        names = [f'<http://e/beer{n}> <{label}> "Beer {n}" .' for n in range(4)]

        medal, lines = Step("http://e/for", "in"), [*medals, *beers]
        few, most = make([*lines, names[0]], "rdfs"), make([*lines, *names], "rdfs")
        assert few.tables.mediators.extent(medal) == "none"  # where few things have names, a missing one says nothing
        # servers are not asked to read the types and names of all nodes
        assert most.tables.mediators.extent(medal) == ("none" if most.store.capabilities.remote else "all")
        graph, gold = (
            memory_graph([*lines, *names], schema="rdfs"),
            Triple(Entity("http://e/m1"), label, Literal("Gold")),
        )
        assert graph.tables.mediators.extent(medal) == "all"
        for edit, extent in ((([gold],), "none"), (([], [gold]), "all")):
            graph.store.edit("", *edit)
            assert graph.tables.mediators.extent(medal) == extent

    def test_types_named_by_the_schema(self, make):
        kc = "urn:kgqa:corpus:"
        graph = make(
            [
                f"<http://e/h> <{RDF}type> <{kc}Hyperedge> .",
                "<http://e/a> <http://e/in> <http://e/h> .",
                "<http://e/a> <http://e/in> <http://e/b> .",
                f"<http://e/h> <{kc}party> <http://e/c> .",
                "<http://e/d> <http://e/only> <http://e/h> .",
            ],
            "corpus",
        )  # fmt: skip
        assert graph.tables.mediators.extent(Step("http://e/in")) == "some"
        assert graph.tables.mediators.extent(Step("http://e/only")) == "all"
        assert graph.tables.mediators.extent(Step(f"{kc}party", "in")) == "all"
        assert short(graph.paths.ends([Candidate(path("http://e/a", "http://e/in"))])[0].values) == {"http://e/b"}


class TestListedMediators:
    """A slice of Freebase without the triples of its schema."""

    SLICE: ClassVar = ns(
        "m.ann people.person.spouse_s m.wedding",
        "m.wedding people.marriage.spouse m.bob",
        'm.wedding people.marriage.from "1990"',
        "m.ann people.person.children m.kim",
    )
    RANGE: ClassVar = "http://www.w3.org/2000/01/rdf-schema#range"

    def test_mediators_by_the_list(self, make):
        graph = make(self.SLICE)
        assert graph.tables.mediators.extent(step("people.person.spouse_s")) == "all"
        assert graph.tables.mediators.extent(step("^people.marriage.spouse")) == "all"
        assert graph.tables.mediators.extent(step("people.marriage.spouse")) == "none"
        assert graph.tables.mediators.extent(step("people.person.children")) == "none"
        assert short(
            graph.paths.ends([Candidate(path("m.ann", "people.person.spouse_s", "people.marriage.spouse"))])[0].values
        ) == {"m.bob"}
        assert missing_mediators(graph.store, [node.iri for node in graph.view], graph.schema) == ""

    @pytest.mark.parametrize(
        "declared",
        [
            [f"<{NS}people.person.spouse_s> <{RANGE}> <{NS}people.person> ."],
            [
                f"<{NS}people.person.spouse_s> <{RANGE}> <{NS}people.marriage> .",
                f'<{NS}people.marriage> <{NS}freebase.type_hints.mediator> "false" .',
            ],
        ],
        ids=["range", "mark"],
    )
    def test_declarations_of_the_graph_take_precedence(self, make, declared):
        graph = make([*self.SLICE, *declared])
        assert graph.tables.mediators.extent(step("people.person.spouse_s")) == "none"
        assert short(graph.paths.ends([Candidate(path("m.ann", "people.person.spouse_s"))])[0].values) == {"m.wedding"}


DATA = Path(os.environ.get("KGQA_DATA") or Path(__file__).parents[4] / "shared" / "data")
