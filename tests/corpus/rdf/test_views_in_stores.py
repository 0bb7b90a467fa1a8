"""The views `facts` and `hyper` of a corpus in all stores: every method of KnowledgeGraph, as for other graphs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kgqa.corpus.items import Addition, HyperedgeItem, Party, StatementItem
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.snapshot import relation_iri, role_iri
from kgqa.graph.endpoint.options import profile_named
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Join, Literal, RelationPath, Step
from kgqa.model.conditions import Comparison, Condition, year
from tests.conftest import SOAK
from tests.corpus.rdf.small_corpus import BONG, BONG_JH, DAEGU, HOST, OSCAR, PARASITE, SEOUL, SONG, additions, lines_of
from tests.graph.graph_factories import EmbeddedGraphFactory, GraphFactory, RdflibGraphFactory, VirtuosoGraphFactory
from tests.graph.test_both_stores import graph_results, node_results, path_results

GRAPHS = v.graph_iris()
CORPUS_RELATIONS = ("born in", "directed", "starred in", "lives in", "released in", "runs for")
ROLES = ("winner", "prize", "film", "actor")
DIRECTOR = Entity(min(BONG.iri, BONG_JH.iri))


@pytest.fixture(scope="module")
def makers(tmp_path_factory, virtuoso_server):
    profile = replace(profile_named("virtuoso"), full_text="")
    every = (
        EmbeddedGraphFactory(tmp_path_factory.mktemp("corpus")),
        RdflibGraphFactory(tmp_path_factory.mktemp("rdflib")),
        VirtuosoGraphFactory(virtuoso_server, profile=profile),
    )
    yield every
    for maker in every:
        maker.close()


def view_of(maker: GraphFactory, whole: KnowledgeGraph, *views: str, base: str = v.KC) -> KnowledgeGraph:
    return maker.reopen(whole, view=[f"{base}{view}" for view in views])


@pytest.fixture(scope="module")
def corpora(makers) -> list[tuple[GraphFactory, KnowledgeGraph]]:
    return [(maker, maker.make(lines_of(additions()), "corpus")) for maker in makers]


@pytest.fixture(params=range(3), ids=["embedded", "rdflib", "virtuoso"])
def corpus(request, corpora) -> tuple[GraphFactory, KnowledgeGraph]:
    return corpora[request.param]


def entity(party: Party) -> Entity:
    return DIRECTOR if party in (BONG, BONG_JH) else Entity(party.iri)


def relations_around(graph: KnowledgeGraph, topic: Entity, *steps: Step) -> set[str]:
    found = graph.paths.steps([Candidate(RelationPath(topic, steps))])[0].steps
    return {("^" if step.direction == "in" else "") + graph.tables.relation_labels[step.relation] for step in found}


def back(words: str) -> Step:
    return Step(words if ":" in words else role_iri(words), "in")


def names(graph: KnowledgeGraph, topic: Party, *steps: Step) -> set[str]:
    return {
        each.name for each in graph.named(graph.paths.ends([Candidate(RelationPath(entity(topic), steps))])[0].values)
    }


def test_facts_are_explored_like_any_graph(corpus):
    graph = view_of(*corpus, "facts")
    assert relations_around(graph, DIRECTOR) == {"born in", "directed"}
    assert relations_around(graph, entity(PARASITE)) == {"^directed", "^starred in", "released in", "runs for"}
    directed, starred = Step(relation_iri("directed")), Step(relation_iri("starred in"), "in")
    assert names(graph, BONG, directed) == {"Parasite", "The Host"}
    assert names(graph, BONG, directed, starred) == {"Song Kang-ho"}
    assert names(graph, PARASITE, Step(relation_iri("runs for"))) == {"132"}
    assert graph.labels([DIRECTOR]) == {DIRECTOR: "Bong Joon-ho"}
    assert [match.entity for match in graph.search("director bong")][:1] == [DIRECTOR]


def test_paths_pass_through_hyperedges_as_through_mediators(corpus):
    graph = view_of(*corpus, "hyper")
    assert relations_around(graph, DIRECTOR) == {"^winner", "^participant"}
    won, met = (back("winner"),), (back(v.PARTY),)
    for path in (won, met):
        assert graph.paths.ends_on_mediators(RelationPath(DIRECTOR, path))
    assert relations_around(graph, DIRECTOR, *won) == {"prize", "film"}
    assert names(graph, BONG, *won, Step(role_iri("prize"))) == {"Oscar"}
    assert names(graph, BONG, *met, Step(v.PARTY)) == {"Song Kang-ho", "Seoul"}
    assert names(graph, SONG, back("actor"), Step(v.PARTY)) == {"The Host", "Seoul"}
    assert [match.entity for match in graph.search("oscar")][:1] == [entity(OSCAR)]


def test_views_together(corpus):
    graph = view_of(*corpus, "facts", "hyper")
    assert relations_around(graph, DIRECTOR) == {"born in", "directed", "^winner", "^participant"}
    to_seoul = (Step(relation_iri("directed")), back(v.PARTY), Step(v.PARTY))
    assert names(graph, BONG, *to_seoul) == {"Seoul"}
    path = RelationPath(DIRECTOR, to_seoul)
    assert graph.run_exported(graph.answer_query(path)) == graph.paths.ends([Candidate(path)])[0].values


def test_provenance_is_never_among_the_relations_of_a_topic(corpus):
    maker, whole = corpus
    topics = [entity(each) for each in (BONG, SONG, PARASITE, HOST, OSCAR, SEOUL, DAEGU)]
    allowed = {*map(relation_iri, CORPUS_RELATIONS), *map(role_iri, ROLES), v.PARTY}
    for views in (["facts"], ["hyper"], ["facts", "hyper"], list(v.VIEWS)):
        graph = view_of(maker, whole, *views)
        explored = {name for name in graph.tables.relations if not graph.tables.is_noise(name)}
        assert explored and explored <= allowed, views
        for topic in topics:
            assert {step.relation for step in graph.paths.steps([Candidate(RelationPath(topic))])[0].steps} <= allowed
            assert {step.relation for step, _ in graph.paths.neighbours(topic)} <= allowed
    assert set(view_of(maker, whole, "facts").tables.relations) <= allowed | {v.LABEL, v.ALIAS, v.TYPE_OF, v.VIEW}


def test_joins_and_conditions(corpus):
    graph = view_of(*corpus, "facts")
    films = RelationPath(DIRECTOR, (Step(relation_iri("directed")),))
    with_song = Join(1, RelationPath(entity(SONG), (Step(relation_iri("starred in")),)))
    assert set(graph.paths.ends([Candidate(films, joins=[with_song])])[0].values) == {entity(PARASITE), entity(HOST)}
    after = Condition(1, (Step(relation_iri("released in")),), Comparison(">", year(2010)))
    long = Condition(1, (Step(relation_iri("runs for")),), Comparison("<", Literal("130", f"{v.XSD}integer")))
    assert graph.paths.ends([Candidate(films, conditions=[after])])[0].values == (entity(PARASITE),)
    assert graph.paths.ends([Candidate(films, conditions=[long])])[0].values == (entity(HOST),)
    both = RelationPath(DIRECTOR, (Step(relation_iri("directed")), Step(relation_iri("released in"))))
    released = Literal("2019", f"{v.XSD}gYear")
    only = graph.paths.ends([Candidate(both, restricted=((1, (entity(PARASITE),)),))])[0].values
    assert (
        only == (released,)
        and graph.run_exported(graph.answer_query(both, restricted={1: (entity(PARASITE),)})) == only
    )


def test_conditions_on_what_takes_part_in_a_hyperedge(corpus):
    graph = view_of(*corpus, "facts", "hyper")
    with_host = Condition(1, (Step(v.PARTY),), entity(HOST))
    assert graph.paths.ends(
        [Candidate(RelationPath(entity(SONG), (back("actor"), Step(v.PARTY))), conditions=[with_host])]
    )[0].values
    path = RelationPath(DIRECTOR, (back("winner"), Step(role_iri("film"))))
    old = Condition(2, (Step(relation_iri("released in")),), Comparison("<", year(2010)))
    assert (
        graph.paths.ends([Candidate(path)])[0].values == (entity(PARASITE),)
        and graph.paths.ends([Candidate(path, conditions=[old])])[0].values == ()
    )


def random_corpus(chance: random.Random) -> list[Addition]:
    parties = [Party(name, kind) for name in ("Ann", "ann lee", "北京", "Zoë") for kind in ("", "city")]
    values = [Literal("5", f"{v.XSD}integer"), Literal("x"), Literal("1868", f"{v.XSD}gYear")]
    found = []
    for _ in range(12):
        subject, other = chance.sample(parties, 2)
        value = other if chance.random() < 0.8 else chance.choice(values)
        found.append(Addition(StatementItem(subject, chance.choice(("knows", "has")), value)))
    for number in range(4):
        chosen = chance.sample(parties, 3)
        roles = tuple((chance.choice(("", "guest")), party) for party in chosen)
        found.append(Addition(HyperedgeItem(f"segment {number}", roles)))
    return found


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(6 if SOAK else 1))
def test_all_methods_on_random_corpora(makers, seed):
    chance = random.Random(seed)
    base = f"urn:test:{seed}:"
    found = random_corpus(chance)
    wholes = [(maker, maker.make(lines_of(found, base=base), "corpus")) for maker in makers]
    nodes = sorted({Entity(party.iri) for each in found for party in parties_of(each)}, key=str)
    for views in ([["facts"]] if SOAK else []) + [["hyper"], ["facts", "hyper"]]:
        graphs = [view_of(maker, whole, *views, base=base) for maker, whole in wholes]
        # stores differ in how often they count a triple that stands in two graphs
        counted = {"triples"} if len(views) > 1 else set()
        assert_all_equal(
            graphs, lambda graph: {key: found for key, found in graph_results(graph).items() if key not in counted}
        )
        assert_all_equal(graphs, node_results, nodes)
        paths = []
        for _ in range(8 if SOAK else 3):
            path = RelationPath(chance.choice(nodes))
            for _ in range(3):
                assert_all_equal(graphs, path_results, path)
                steps = graphs[0].paths.steps([Candidate(path)])[0].steps
                if not steps:
                    break
                path = path.then(chance.choice(steps))
            paths.append(path)
        long = max(paths, key=len)
        if len(long) > 1:
            assert_all_equal(graphs, path_results, long, restricted=((1, tuple(nodes[:4])),))
            assert_all_equal(graphs, path_results, long, joins=[Join(1, RelationPath(nodes[0], long.steps[:1]))])
        assert_all_equal(graphs, lambda graph: graph.search("ann"))


def parties_of(addition: Addition) -> list[Party]:
    item = addition.item
    if isinstance(item, StatementItem):
        return [each for each in (item.subject, item.object) if isinstance(each, Party)]
    return [party for _, party in item.participants]


def assert_all_equal(graphs, what, *arguments, **options) -> None:
    first, *others = (what(graph, *arguments, **options) for graph in graphs)
    for other in others:
        assert first == other
