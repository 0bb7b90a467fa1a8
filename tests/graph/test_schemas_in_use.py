"""Graphs under each bundled schema, and under one that comes as a file, in both stores."""

from __future__ import annotations

import pytest

from kgqa.errors import SchemaError, SettingsError
from kgqa.graph.detection import detect_schema
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.model import Entity, Named, RelationPath, Step
from kgqa.schema import parse_schema
from tests.graph.facts import ends, expansion, ns, path

WIKIDATA = [
    "<http://www.wikidata.org/entity/Q17> <http://www.wikidata.org/prop/direct/P36> <http://www.wikidata.org/entity/Q1490> .",
    "<http://www.wikidata.org/entity/Q17> <http://www.wikidata.org/prop/direct/P31> <http://www.wikidata.org/entity/Q6256> .",
]  # fmt: skip


class TestSchemas:
    @pytest.mark.parametrize(
        "name, lines",
        [
            ("freebase", ns("m.a people.person.gender m.b", 'm.a type.object.name "A"@en')),
            ("wikidata", WIKIDATA),
            ("corpus", ['<urn:kgqa:corpus:Corpus> <urn:kgqa:corpus:view> "facts" .']),
            ("rdfs", ["<http://e/a> <http://e/r> <http://e/b> ."]),
            ("rdfs", []),
        ],
    )
    def test_schema_is_detected(self, make, name, lines):
        graph = make(lines)
        assert detect_schema(graph.store, [entity.iri for entity in graph.view]).name == name

    def test_another_wikibase(self, make):
        """A Wikibase is recognised by what its properties declare: namespaces, and the id of `instance of`."""
        w, base = "https://wiki.example/", "http://wikiba.se/ontology#"
        lines = [
            f"<{w}entity/{property}> <{base}directClaim> <{w}prop/direct/{property}> ."
            for property in ("P1", "P4", "P31")
        ]
        lines += [
            f'<{w}entity/{id}> <http://www.w3.org/2000/01/rdf-schema#label> "{label}"@en .'
            for id, label in {"P1": "instance of", "P4": "home venue", "P31": "colour", "Q2": "Rovers"}.items()
        ]
        lines += [
            f"<{w}entity/Q2> <{w}prop/direct/P4> <{w}entity/Q3> .",
            f"<{w}entity/Q2> <{w}prop/P4> <{w}entity/s1> .",
        ]
        graph = make(lines)
        schema = detect_schema(graph.store, [entity.iri for entity in graph.view])
        assert (schema.name, schema.types, schema.id_base) == ("wikibase", (f"{w}prop/direct/P1",), f"{w}entity/")
        assert parse_schema(schema.source).label_subject(f"{w}prop/direct/P4") == f"{w}entity/P4"
        tables = KnowledgeGraph(graph.store, schema, view=[entity.iri for entity in graph.view]).tables
        assert tables.relation_labels[f"{w}prop/direct/P4"] == "home venue"
        assert tables.leads_to_mediator(Step(f"{w}prop/P4"))

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
            steps = expansion(graph, RelationPath(leo)).steps
            assert {Step(f"{zr}{name}") for name in ("eats", "lives_in", "metaphor")} <= set(steps)
            first = path(leo.iri, f"{zr}eats")
            assert graph.paths.ends_on_mediators(first)
            (onward,) = expansion(graph, first).steps
            assert onward == Step(f"{zr}food")
            answer = ends(graph, first.then(onward))
            assert [n.name for n in graph.named(answer)] == ["Fleisch"]
            query = graph.answer_query(first.then(onward))
            assert graph.run_exported(query) == answer
            assert "Leo der Löwe (leo) has “eats”" in query and "consumed food" in query
            assert ends(graph, path(leo.iri, f"{zr}lives_in", f"{zr}holds")) == (Entity(f"{z}tom"),)

    def test_folder_keeps_its_schema_and_walks(self, load, tmp_path):
        folder = load(ns("m.a people.person.gender m.b"), schema="freebase", settings={"walks": "free"})
        with open_graph(folder) as graph:
            assert (graph.schema.name, graph.paths.walk_rule, graph.settings) == ("freebase", "free", {"walks": "free"})
        with open_graph(folder, schema="rdfs", walks="no-return") as graph:
            assert graph.schema.name == "rdfs" and graph.paths.walk_rule == "no-return"
        with open_graph(folder, schema=parse_schema('name = "own"')) as graph:
            assert graph.schema.name == "own"
        with pytest.raises(SchemaError, match="Unknown schema 'nope'"):
            open_graph(folder, schema="nope")
        with pytest.raises(SettingsError, match="walks must be one of"):
            open_graph(folder, walks="sideways")
