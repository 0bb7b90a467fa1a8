"""Graphs under each bundled schema, and under one that comes as a file, in both stores."""

from __future__ import annotations

import pytest

from kgqa.errors import SchemaError, SettingsError
from kgqa.graph.detection import detect_schema
from kgqa.graph.opening import open_graph
from kgqa.model import Candidate, Entity, Named, RelationPath, Step
from kgqa.schema import parse_schema
from tests.graph.facts import RDFS, ns, path

WDT, WD, P, PS, PQ = (
    "http://www.wikidata.org/prop/direct/", "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/",
    "http://www.wikidata.org/prop/statement/", "http://www.wikidata.org/prop/qualifier/",
)  # fmt: skip
STATEMENT = "http://www.wikidata.org/entity/statement/"
WIKIDATA = [
    f"<{WD}Q17> <{WDT}P36> <{WD}Q1490> .",
    f"<{WD}Q17> <{P}P36> <{STATEMENT}q17-1> .",
    f"<{STATEMENT}q17-1> <{PS}P36> <{WD}Q1490> .",
    f'<{STATEMENT}q17-1> <{PQ}P580> "1868" .',
    f"<{WD}Q17> <{P}P39> <{STATEMENT}q17-2> .",
    f"<{STATEMENT}q17-2> <{PS}P39> <{WD}Q5> .",
    f"<{WD}Q17> <{WDT}P31> <{WD}Q6256> .",
    f'<{WD}Q17> <{RDFS}label> "Japan"@en .',
    f'<{WD}P36> <{RDFS}label> "capital"@en .',
]


class TestWikidata:
    @pytest.fixture(scope="class")
    @staticmethod
    def wikidata(make):
        return make(WIKIDATA, "wikidata")

    def test_statement_pair_is_folded_with_the_claim(self, wikidata):
        steps = wikidata.paths.steps([Candidate(path(f"{WD}Q17", f"{P}P36"))])[0].steps
        assert steps == (Step(f"{PQ}P580"),)  # the qualifier says more than the claim
        assert wikidata.paths.steps([Candidate(path(f"{WD}Q17", f"{P}P39"))])[0].steps == (Step(f"{PS}P39"),)
        backwards = wikidata.paths.steps([Candidate(path(f"{WD}Q1490", f"^{PS}P36"))])[0].steps
        assert Step(f"{P}P36", "in") not in backwards
        assert Step(f"{WDT}P36") in wikidata.paths.steps([Candidate(RelationPath(Entity(f"{WD}Q17")))])[0].steps

    def test_statements_are_mediators(self, wikidata):
        assert wikidata.paths.ends_on_mediators(path(f"{WD}Q17", f"{P}P36"))
        assert wikidata.paths.ends_on_mediators(path(f"{WD}Q1490", f"^{PS}P36"))
        assert not wikidata.paths.ends_on_mediators(path(f"{WD}Q17", f"{WDT}P36"))
        assert wikidata.paths.ends([Candidate(path(f"{WD}Q17", f"{P}P36", f"{PS}P36"))])[0].values == (
            Entity(f"{WD}Q1490"),
        )

    def test_relations_are_named_by_their_entity(self, wikidata):
        for namespace in (WDT, P, PS):
            assert wikidata.tables.relation_labels[f"{namespace}P36"] == "capital"
        assert "capital" in wikidata.answer_query(path(f"{WD}Q17", f"{WDT}P36"))


class TestSchemas:
    @pytest.mark.parametrize(
        "name, lines",
        [
            ("freebase", ns("m.a people.person.gender m.b", 'm.a type.object.name "A"@en')),
            ("wikidata", WIKIDATA),
            (
                "corpus",
                [
                    "<http://e/a> <http://e/r> <http://e/b> .",
                    '<urn:kgqa:corpus:Corpus> <urn:kgqa:corpus:view> "facts" .',
                ],
            ),
            ("rdfs", ["<http://e/a> <http://e/r> <http://e/b> .", f'<http://e/a> <{RDFS}label> "A" .']),
            ("rdfs", ["<http://e/a> <http://e/r> <http://e/b> ."]),
            ("rdfs", []),
        ],
    )
    def test_schema_is_detected(self, make, name, lines):
        graph = make(lines)
        assert detect_schema(graph.store, [entity.iri for entity in graph.view]).name == name

    def test_schema_from_a_file(self, tmp_path, graphs):
        """An unknown graph is loaded and answers questions with one TOML file and no code."""
        schema = tmp_path / "zoo.toml"
        schema.write_text(
            """
            name = "zoo"
            title = "Zoo"
            [prefixes]
            z = "http://zoo.example/"
            zr = "http://zoo.example/rel/"
            [ids]
            base = "z:"
            [names]
            label = ["zr:called"]
            alias = ["zr:nick"]
            languages = ["de", "en"]
            [types]
            predicates = ["zr:kind"]
            range = ["zr:leadsTo"]
            [relations]
            inverse = ["zr:contrary"]
            [noise]
            prefixes = ["zr:meta", "zr:kind"]
            except = ["zr:metaphor"]
            [mediators]
            types = ["z:Feeding"]
            [walks]
            rule = "no-return"
            """
        )
        z, zr = "http://zoo.example/", "http://zoo.example/rel/"
        lines = (
            [
                f"<{z}leo> <{zr}eats> <{z}f1> .", f"<{z}f1> <{zr}kind> <{z}Feeding> .", f"<{z}f1> <{zr}food> <{z}meat> .",
                f"<{z}leo> <{zr}lives_in> <{z}cage> .", f"<{z}cage> <{zr}holds> <{z}leo> .", f"<{z}cage> <{zr}holds> <{z}tom> .",
                f"<{zr}holds> <{zr}contrary> <{zr}lives_in> .", f"<{z}tom> <{zr}lives_in> <{z}cage> .",
                f"<{z}leo> <{zr}meta1> <{z}record> .", f"<{z}leo> <{zr}metaphor> <{z}king> .",
                f'<{z}leo> <{zr}called> "Leo the lion"@en .', f'<{z}leo> <{zr}called> "Leo der Löwe"@de .', f'<{z}meat> <{zr}called> "Fleisch"@de .',
                f'<{z}leo> <{zr}nick> "Kitty" .', f'<{zr}food> <{zr}called> "consumed food"@en .',
            ]
        )  # fmt: skip
        with graphs.open(lines, schema=schema) as graph:
            assert graph.schema.name == "zoo" and graph.paths.walk_rule == "no-return"
            (leo,) = [m.entity for m in graph.search("kitty")]
            assert graph.named([leo])[0] == Named(leo, "leo", "Leo der Löwe")
            assert {(s.relation.removeprefix(zr), s.direction) for s in graph.paths.steps([Candidate(RelationPath(leo))])[0].steps} >= {
                ("eats", "out"), ("lives_in", "out"), ("metaphor", "out"),
            }  # fmt: skip
            first = RelationPath(leo, (Step(f"{zr}eats"),))
            assert graph.paths.ends_on_mediators(first)
            (onward,) = graph.paths.steps([Candidate(first)])[0].steps
            assert onward == Step(f"{zr}food")
            answer = graph.paths.ends([Candidate(first.then(onward))])[0].values
            assert [n.name for n in graph.named(answer)] == ["Fleisch"]
            query = graph.answer_query(first.then(onward))
            assert graph.run_exported(query) == answer
            assert "Leo der Löwe (leo) has “eats”" in query and "consumed food" in query
            neighbours = RelationPath(leo, (Step(f"{zr}lives_in"), Step(f"{zr}holds")))
            assert graph.paths.ends([Candidate(neighbours)])[0].values == (Entity(f"{z}tom"),)
            assert graph.schema.iri("z:leo") == leo.iri

    def test_folder_keeps_its_schema_and_walks(self, load, tmp_path):
        folder = load(ns("m.a people.person.gender m.b"), schema="freebase", settings={"walks": "free"})
        with open_graph(folder) as graph:
            assert (
                graph.schema.name == "freebase"
                and graph.paths.walk_rule == "free"
                and graph.settings == {"walks": "free"}
            )
        with open_graph(folder, schema="rdfs", walks="no-return") as graph:
            assert graph.schema.name == "rdfs" and graph.paths.walk_rule == "no-return"
        with open_graph(folder, schema=parse_schema('name = "own"')) as graph:
            assert graph.schema.name == "own"
        with pytest.raises(SchemaError, match="Unknown schema 'nope'"):
            open_graph(folder, schema="nope")
        with pytest.raises(SettingsError, match="walks must be one of"):
            open_graph(folder, walks="sideways")

    def test_demo_graph(self, cache_dir):
        with open_graph() as graph:
            assert graph.schema.name == "freebase" and graph.tables.relations
            assert graph.search("Kimigayo")
