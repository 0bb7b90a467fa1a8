"""Names of nodes and the search for names, in both stores."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from kgqa.errors import StoreCrashed
from kgqa.graph.names.reading import NameReader
from kgqa.model import Candidate, Entity, Literal, Named
from kgqa.storage.cache import Cache
from tests.graph.facts import FACTS, NAMES, NS, RDFS, SKOS, ent, ns, path


class TestNames:
    def test_labels_prefer_languages_then_predicates(self, make):
        graph = make(
            [
                f'<http://e/1> <{RDFS}label> "eins"@de .', f'<http://e/1> <{RDFS}label> "one"@en .', f'<http://e/1> <{RDFS}label> "1" .',
                f'<http://e/2> <{RDFS}label> "zwei"@de .', f'<http://e/2> <{RDFS}label> "two" .',
                f'<http://e/3> <{RDFS}label> "drei"@de .', f'<http://e/3> <{RDFS}label> "trois"@fr .',
                f'<http://e/4> <{SKOS}prefLabel> "four"@en .',
                f'<http://e/5> <{RDFS}label> "five"@en .', f'<http://e/5> <{SKOS}prefLabel> "fem"@en .',
                f'<http://e/6> <{SKOS}altLabel> "six"@en .',
                f'<http://e/7> <{RDFS}label> "a seven"@en .', f'<http://e/7> <{RDFS}label> "7 seven"@en .',
                f"<http://e/8> <{RDFS}label> <http://e/no-text> .",
                f'<http://e/9> <{RDFS}label> "" .', f'<http://e/9> <{SKOS}prefLabel> "nine" .',
            ],
            "rdfs",
        )  # fmt: skip
        labels = graph.labels([Entity(f"http://e/{n}") for n in range(10)])
        assert {e.iri[-1]: label for e, label in labels.items()} == {
            "1": "one", "2": "two", "3": "drei", "4": "four", "5": "five", "7": "7 seven", "9": "nine",
        }  # fmt: skip

    def test_named(self, named):
        assert named.named([ent("m.ann"), Literal("1.7"), ent("m.school"), Entity("http://other/Some_Thing")]) == [
            Named(ent("m.ann"), "m.ann", "Ann Lee"),
            Named(Literal("1.7"), "", "1.7"),
            Named(ent("m.school"), "m.school", "m.school"),
            Named(Entity("http://other/Some_Thing"), "http://other/Some_Thing", "Some Thing"),
        ]
        assert named.labels([]) == {}

    def test_blank_nodes_are_no_names(self, make):
        wikidata = "http://www.wikidata.org/.well-known/genid/0123abcd"
        graph = make(
            [
                f"<http://e/tor> <http://e/born> <{wikidata}> .",
                "<http://e/tor> <http://e/size> _:size .",
                '_:size <http://e/amount> "3 m" .',
                "<http://e/tor> <http://e/part> _:part .",
                "_:part <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/TowerPart> .",
            ],
            "rdfs",
        )
        values = graph.paths.ends(
            [Candidate(path("http://e/tor", f"http://e/{name}"), "") for name in ("born", "size", "part")]
        )
        names = [graph.named(each.values)[0].name for each in values]
        described = ["unnamed with amount 3 m", "unnamed tower part"]  # a server cannot be asked about its blank nodes
        assert names[0] == "unknown value" and names[1:] in (described, ["unnamed", "unnamed"])
        assert graph.search("0123abcd") == [] and graph.search("genid") == []

    def test_an_opaque_id_without_a_name_is_described(self, make):
        name = f'<{NS}m.c> <{NS}type.object.name> "Cid"@en .'
        graph = make([*ns("m.a type.object.type people.marriage", "m.b people.p.q m.c"), name])
        values = [ent(name) for name in ("m.a", "m.b", "m.none", "m.c")]
        names = ["unnamed people marriage", "unnamed with p q Cid", "unnamed", "Cid"]
        assert [each.description or each.name for each in graph.named(values, describe=True)] == names
        assert graph.named(values, describe=True)[0].name == "m.a"  # what is known is no name, and is not compared
        assert [each.name for each in graph.named(values)] == ["m.a", "m.b", "m.none", "Cid"]

    def test_every_label_predicate_counts(self, make):
        predicates = [
            "https://schema.org/name",
            "http://xmlns.com/foaf/0.1/name",
            "http://purl.org/dc/terms/title",
            f"{SKOS}prefLabel",
        ]
        graph = make(
            [
                f'<http://e/Thing> <{RDFS}label> "thing" .',
                *(f'<http://e/{n}> <{predicate}> "Name {n}" .' for n, predicate in enumerate(predicates)),
                "<http://e/9> <http://e/likes> <http://e/0> .",
            ],
            "rdfs",
        )
        assert [graph.search(f"name {n}")[0].entity.iri for n in range(4)] == [f"http://e/{n}" for n in range(4)]
        share = NameReader(graph.store, graph.schema, graph.view).share()
        assert (share.labelled, share.subjects) == (5, 6)
        failing = Mock(wraps=graph.store, select=Mock(side_effect=StoreCrashed("The engine crashed.")))
        assert NameReader(failing, graph.schema, graph.view).share() is None
        assert "5 of 6 subjects have a name (83%), by rdfs:label (1), skos:prefLabel (1)" in share.text(graph.schema)


class TestSearch:
    @pytest.fixture(scope="class")
    @staticmethod
    def found(make):
        graph = make(
            FACTS
            + NAMES
            + ns(
                'm.paris type.object.name "Paris"@en', 'm.parisian type.object.name "Paris Hilton"@en', 'm.tx common.topic.alias "Paris"@en',
                'm.tx type.object.name "Paris, Texas"@en', 'm.ac type.object.name "AC/DC"@en', 'm.uml type.object.name "Motörhead"@en',
                'm.quote type.object.name "O\'Brien \\"The\\" NEAR AND OR NOT"@en', 'm.zh type.object.name "北京"@zh', 'm.star type.object.name "M*A*S*H"@en',
                'm.hi type.object.name "दिल्ली"@hi', 'm.col type.object.name "norm:x"@en', 'm.num type.object.name "2001: A Space Odyssey"@en',
            )
        )  # fmt: skip
        return lambda text, **options: [m.entity.iri.removeprefix(NS) for m in graph.search(text, **options)], graph

    @pytest.mark.parametrize(
        "text, best",
        [
            ("  PARIS  ", "m.paris"), ("Hilton Paris", "m.parisian"), ("paris texas", "m.tx"), ("annie", "m.ann"),
            ("anne lee", "m.ann"), ('queen "a"', "m.ann"), ("Motörh", "m.uml"), ("motorhead", "m.uml"), ("ac/dc", "m.ac"),
            ("北京", "m.zh"), ("दिल्ली", "m.hi"), ("M*A*S*H", "m.star"), ("NEAR AND OR NOT", "m.quote"), ("norm:x", "m.col"),
            ("2001 space", "m.num"), ("odys", "m.num"),
        ],
    )  # fmt: skip
    def test_best_match(self, found, text, best):
        search, _ = found
        assert search(text)[:1] == [best]

    def test_matches_are_ordered_exact_alias_longer(self, found):
        search, graph = found
        assert search("paris") == ["m.paris", "m.tx", "m.parisian"]
        first, second, third = graph.search("paris")
        assert (first.exact, first.kind) == (True, "label")
        assert (second.exact, second.kind) == (True, "alias")
        assert third.exact is False
        assert len(search("paris", limit=2)) == 2

    def test_graph_without_names(self, make):
        graph = make(
            [
                "<http://e/Charlton_Athletic_FC> <http://e/plays_in> <http://e/London> .",
                '<http://e/London> <http://e/size> "big" .',
            ],
            "rdfs",
        )
        (match,) = graph.search("charlton athletic")
        assert match.entity == Entity("http://e/Charlton_Athletic_FC") and match.name == "Charlton Athletic FC"
        assert [m.entity.iri for m in graph.search("london")] == ["http://e/London"]
        assert graph.named([Entity("http://e/London")])[0].name == "London"
        assert graph.answer_query(path("http://e/London", "^http://e/plays_in"))

    def test_damaged_cached_index_is_rebuilt(self, graphs, tmp_path):
        graph = graphs.make(FACTS + NAMES, cache=Cache(tmp_path))
        graph.tables.prepare()
        assert graph.search("bob")[0].entity == ent("m.bob")
        kept = sorted(p for p in tmp_path.rglob("*") if p.is_file())
        assert len(kept) >= 2 and any(p.suffix == ".sqlite" for p in kept)
        for file in kept:
            file.write_bytes(b"\x00damaged" * 100)
        rebuilt = graphs.reopen(graph, cache=Cache(tmp_path))
        rebuilt.tables.prepare()
        assert rebuilt.search("bob")[0].entity == ent("m.bob")
        assert rebuilt.tables.mediators == graph.tables.mediators
