"""A knowledge graph beside a corpus: paths that cross from one to the other, in a folder and on a server."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import Addition, HyperedgeItem, LinkItem, Party, StatementItem
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.rdf.beside import merged_schema, open_beside, set_beside
from kgqa.corpus.snapshot import relation_iri, role_iri
from kgqa.errors import CorpusError
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.graph_names import open_names
from kgqa.graph.names.server_index import ServerIndex
from kgqa.graph.opening import open_graph
from kgqa.methods.ask import ask
from kgqa.methods.resources import Resources
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.schema import bundled_schema, parse_schema
from kgqa.settings.values import resolve
from kgqa.storage.corpus_file import read_corpus_file
from kgqa.text.words import relation_words
from kgqa.virtuoso.graph_loading import index_graph
from tests.conftest import SOAK
from tests.graph.facts import NS, ent, ns
from tests.graph.graph_factories import EmbeddedGraphFactory, VirtuosoGraphFactory
from tests.graph.in_process_loads import in_process_loads

FREEBASE = ns(
    'm.mel type.object.name "Melissa Vogel"@en', 'm.riv type.object.name "Riverton"@en', 'm.arn type.object.name "Arno Vogel"@en',
    "m.mel type.object.type people.person", "m.mel people.person.place_of_birth m.riv", "m.arn people.person.children m.mel",
    'm.mel type.object.key "/en/mel"', "m.mel people.person.spouse_s m.tie", "m.tie people.marriage.spouse m.arn",
    f"people.person.spouse_s {v.RDFS}range people.marriage", 'people.marriage freebase.type_hints.mediator "true"',
    'people.person.place_of_birth type.object.name "Place of birth"@en',
)  # fmt: skip
RIVERTON, MELISSA, MAYOR, LIBRARY = (
    Party("Riverton", "town"),
    Party("M. Vogel"),
    Party("Ines Okafor"),
    Party("old library"),
)
FACTS = [
    Addition(StatementItem(RIVERTON, "has mayor", MAYOR)),
    Addition(StatementItem(MAYOR, "studied in", Party("Lund"))),
    Addition(StatementItem(MELISSA, "wrote", Party("River Songs"))),
    Addition(HyperedgeItem("Ines Okafor reopened the old library in Riverton.", (("opener", MAYOR), ("", LIBRARY), ("", RIVERTON)))),
    Addition(LinkItem(RIVERTON.iri, f"{NS}m.riv")),
    Addition(LinkItem(MELISSA.iri, f"{NS}m.mel")),
]  # fmt: skip
BORN, MAYOR_OF = Step(f"{NS}people.person.place_of_birth"), Step(relation_iri("has mayor"))


def build(folder: Path, graph: KnowledgeGraph, *, server: EndpointStore | None = None, base: str = v.KC) -> Path:
    corpus = CorpusFolder(folder)
    corpus.create(graph=server.url if server else "graph", base=base)
    set_beside(corpus, graph)
    with Editor(corpus, store=server) as editor, in_process_loads():
        editor.apply("insert", FACTS, agent="reader")
        editor.publish()
    return folder


@pytest.fixture(scope="module")
def embedded(tmp_path_factory) -> Iterator[Path]:
    """Return a corpus folder with a copy of the knowledge graph."""
    maker = EmbeddedGraphFactory(tmp_path_factory.mktemp("kg"))
    yield build(tmp_path_factory.mktemp("corpora") / "corpus", maker.make(FREEBASE))
    maker.close()


@pytest.fixture(scope="module")
def on_server(tmp_path_factory, virtuoso_server) -> Iterator[Path]:
    """Return a corpus folder whose graphs are on the server of the knowledge graph."""
    maker, base = VirtuosoGraphFactory(virtuoso_server), "urn:test:beside:"
    graph = maker.make(FREEBASE)
    graphs = v.graph_iris(base).values()
    with EndpointStore(maker.url, writable=graphs, access=maker.access(), profile="virtuoso") as server:
        yield build(tmp_path_factory.mktemp("corpora") / "server", graph, server=server, base=base)
    maker.close()


@pytest.fixture(params=["embedded", "on_server"])
def both(request) -> Iterator[KnowledgeGraph]:
    with open_graph(request.getfixturevalue(request.param), walks="topic-not-end") as graph:
        yield graph


def test_paths_cross_from_the_graph_to_the_text(both):
    born = RelationPath(ent("m.mel"), (BORN,))
    assert MAYOR_OF in both.paths.steps([Candidate(born)])[0].steps
    path = born.then(MAYOR_OF)
    assert (
        both.paths.ends([Candidate(path)])[0].values
        == (Entity(MAYOR.iri),)
        == both.run_exported(both.answer_query(path))
    )
    backwards = RelationPath(Entity(MAYOR.iri), (MAYOR_OF.reversed(), BORN.reversed()))
    assert both.paths.ends([Candidate(backwards)])[0].values == (ent("m.mel"),)
    assert set(both.paths.steps([Candidate(RelationPath(ent("m.mel")))])[0].steps) >= {
        BORN,
        Step(relation_iri("wrote")),
    }


def test_names_and_words_of_both(both):
    assert both.labels([ent("m.riv"), ent("m.mel"), Entity(MAYOR.iri)]) == {
        ent("m.riv"): "Riverton", ent("m.mel"): "Melissa Vogel", Entity(MAYOR.iri): "Ines Okafor",
    }  # fmt: skip
    assert [match.entity for match in both.search("m. vogel")][:1] == [ent("m.mel")]
    words = {relation_words(step.relation, both.schema, both.tables.relation_labels) for step in (BORN, MAYOR_OF)}
    assert words == {"person place of birth", "has mayor"}
    assert both.paths.ends_on_mediators(RelationPath(ent("m.mel"), (Step(f"{NS}people.person.spouse_s"),)))
    assert both.schema.iri("m.mel") == f"{NS}m.mel"
    for topic in ("m.mel", "m.riv"):
        steps = both.paths.steps([Candidate(RelationPath(ent(topic)))])[0].steps
        assert not any(step.relation.startswith((f"{NS}type.", v.RDF, v.RDFS, v.SKOS, v.KC)) for step in steps)


def test_hyperedges_beside_a_graph(request):
    with open_graph(request.getfixturevalue("embedded"), view=["facts", "hyper"]) as graph:
        path = RelationPath(ent("m.mel"), (BORN, Step(v.PARTY, "in"), Step(role_iri("opener"))))
        assert graph.paths.ends([Candidate(path)])[0].values == (Entity(MAYOR.iri),)
    with open_graph(request.getfixturevalue("embedded"), view=["beside"]) as graph:
        assert graph.paths.ends([Candidate(RelationPath(ent("m.mel"), (BORN,)))])[0].values and Entity(
            MAYOR.iri
        ) not in graph.paths.present([Entity(MAYOR.iri)])


def test_a_question_over_both(both):
    resources = Resources(both, None, resolve({"rank.embeddings": "off"}, environment={}))
    answer = ask("Who is the mayor of the place of birth of Melissa Vogel?", resources=resources)
    assert [each.name for each in answer.answers] == ["Ines Okafor"], answer
    assert answer.query_class == "exact" and answer.paths[0].path.steps == (BORN, MAYOR_OF)


def test_names_of_both_graphs_in_the_full_text_index_of_a_server(on_server, virtuoso_server):
    with open_graph(on_server) as graph:
        for each in graph.view:
            index_graph(virtuoso_server, graph.store, graph.schema, each.iri)
        names = open_names(graph.tables)
        assert isinstance(names, ServerIndex)
        for text, found in (
            ("River Songs", Party("River Songs").iri),
            ("Arno Vogel", f"{NS}m.arn"),
            ("m. vogel", f"{NS}m.mel"),
        ):
            assert names.search(text)[0].entity.iri == found


def test_graphs_that_cannot_stand_beside(embedded, on_server, tmp_path):
    with open_graph(embedded) as local, open_graph(on_server) as remote:
        corpus = CorpusFolder(tmp_path / "one")
        corpus.create()
        with pytest.raises(CorpusError, match="is not a graph folder"):
            set_beside(corpus, remote)
        with pytest.raises(CorpusError, match="has been built already"):
            set_beside(CorpusFolder(embedded), local)
        corpus = CorpusFolder(tmp_path / "two")
        corpus.create(graph="http://127.0.0.1:1/sparql")
        for graph in (local, remote):
            with pytest.raises(CorpusError, match="Load the knowledge graph|but .* is not"):
                set_beside(corpus, graph)
        corpus = CorpusFolder(tmp_path / "three")
        corpus.create(graph=remote.store.location, base="urn:test:beside:")
        with pytest.raises(CorpusError, match="is a graph of the corpus itself"):
            set_beside(corpus, remote)


def test_the_graph_alone(embedded, tmp_path):
    beside = CorpusFolder(embedded).file.beside
    with open_graph(beside.location) as graph:
        corpus = CorpusFolder(embedded)
        before = (embedded / "corpus.json").read_bytes()
        assert set_beside(corpus, graph) == beside and (embedded / "corpus.json").read_bytes() == before
        new = CorpusFolder(tmp_path / "new")
        new.create()
        assert open_beside(new) is None
        set_beside(new, graph)
    for folder in (new, corpus):  # the original, and the copy
        with open_beside(folder) as alone:
            assert alone.search("melissa vogel")[0].entity == ent("m.mel") and not alone.paths.present(
                [Entity(MAYOR.iri)]
            )


def test_the_folder_names_the_graph(embedded):
    file = read_corpus_file(embedded)
    assert file.views["facts"] == (f"{v.KC}facts", f"{v.KC}beside")
    beside = file.beside
    assert beside and Path(beside.location).is_absolute()


def test_merged_schemas():
    corpus = bundled_schema("corpus")
    with_skos = parse_schema(
        'name = "thesaurus"\n[prefixes]\nschema = "http://schema.org/"\n[names]\nlabel = ["skos:prefLabel"]'
    )
    both = merged_schema(with_skos, corpus)
    assert not both.is_noise(f"{v.SKOS}broader") and not both.is_noise(f"{v.SCHEMA}author") and both.is_noise(v.SEGMENT)
    assert not both.is_noise(v.PARTY) and both.label == (f"{v.SKOS}prefLabel", v.LABEL) and both.labelled == ()
    for name in ("freebase", "wikidata", "rdfs", "corpus"):
        graph = bundled_schema(name)
        both = merged_schema(graph, corpus)
        assert (both.id_base, both.walks, both.mediator_list) == (
            graph.id_base or corpus.id_base,
            graph.walks,
            graph.mediator_list,
        )
        assert both.is_labelled(relation_iri("x")) and both.is_noise(v.ALIAS) and v.PARTY in both.mediator_subject_of
        assert (
            structs.replace(merged_schema(both, corpus), name=both.name, title=both.title, source=both.source) == both
        )


@pytest.mark.soak
def test_beside_a_slice_of_freebase(data_folder, tmp_path):
    """The first hop is in Freebase, the second in the text."""
    with gzip.open(data_folder / "freebase_fast" / "kg.nt.gz", "rt", encoding="utf-8") as lines:
        kept = [line for line in lines if SOAK or "people.person" in line or "type.object.name" in line]
        (tmp_path / "kg.nt").write_text("".join(kept), encoding="utf-8")
    with in_process_loads():
        load_graph(tmp_path / "kg", [tmp_path / "kg.nt"], schema="freebase")
    with open_graph(tmp_path / "kg") as graph:
        born = Step(f"{NS}people.person.place_of_birth")
        query = f"SELECT ?p ?c WHERE {{ ?p <{born.relation}> ?c . ?c <{NS}type.object.name> ?n }} LIMIT 1"
        ((person, city),) = graph.store.select(query)
        town = Party("the town")
        corpus = CorpusFolder(tmp_path / "corpus")
        corpus.create()
        set_beside(corpus, graph)
        triples = graph.store.triples_of()
    with Editor(corpus) as editor, in_process_loads():
        facts = [Addition(StatementItem(town, "has mayor", MAYOR)), Addition(LinkItem(town.iri, city.iri))]
        editor.apply("insert", facts, agent="reader")
        editor.publish()
    with open_graph(tmp_path / "corpus") as both:
        assert both.store.triples_of([f"{v.KC}beside"]) == triples
        path = RelationPath(person, (born,))
        assert MAYOR_OF in both.paths.steps([Candidate(path)])[0].steps
        assert Entity(MAYOR.iri) in both.paths.ends([Candidate(path.then(MAYOR_OF))])[0].values
