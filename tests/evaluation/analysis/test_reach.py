"""Search for paths, alone or joined, that lead to exactly the gold answers."""

from __future__ import annotations

import random

import pytest

from kgqa.evaluation.analysis.reach import exact_paths
from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.keys import answer_keys, gold_keys
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.search.beam import BeamSettings

NS = "http://rdf.freebase.com/ns/"
FILMS = (
    # a performance links film, actor and role; two films, the same two actors and roles
    'film.performance freebase.type_hints.mediator "true"',
    *(f"{p} type.object.type film.performance" for p in ("m.p1", "m.p2", "m.p3", "m.p4")),
    *(f"m.film film.film.starring {p}" for p in ("m.p1", "m.p2")),
    *(f"m.sequel film.film.starring {p}" for p in ("m.p3", "m.p4")),
    "m.p1 film.performance.actor m.ann",
    "m.p1 film.performance.character m.queen",
    "m.p2 film.performance.actor m.bob",
    "m.p2 film.performance.character m.king",
    "m.p3 film.performance.actor m.bob",
    "m.p3 film.performance.character m.queen",
    "m.p4 film.performance.actor m.ann",
    "m.p4 film.performance.character m.king",
    "m.ann people.person.nationality m.france",
    "m.bob people.person.nationality m.france",
    "m.cyd people.person.nationality m.france",
    "m.film film.film.genre m.drama",
    "m.film film.film.language m.french",
    "m.film film.film.language m.english",
    "m.france location.country.language m.french",
    "m.france location.country.language m.breton",
    'm.film film.film.year "1996"',
)


@pytest.fixture(scope="module")
def films(make_graph):
    return make_graph(*FILMS)


def ent(ident: str) -> Entity:
    return Entity(NS + ident)


def path(topic: str, *steps: str) -> RelationPath:
    return RelationPath(
        ent(topic), tuple(Step(NS + s.removeprefix("^"), "in" if s[0] == "^" else "out") for s in steps)
    )


def gold(*ids: str):
    return gold_keys(GoldAnswer("", i[1:-1]) if i[0] == '"' else GoldAnswer(i, "") for i in ids)


def found(graph, topics, answers, depth=2, **options):
    return exact_paths(graph, [ent(t) for t in topics], gold(*answers), BeamSettings(depth=depth), **options)


def test_one_hop_path(films):
    reach = found(films, ["m.film"], ["m.drama"])
    assert reach.solutions == ((path("m.film", "film.film.genre"),),) and not reach.capped


def test_path_through_a_mediator(films):
    assert found(films, ["m.film"], ["m.ann", "m.bob"]).solutions == (
        (path("m.film", "film.film.starring", "film.performance.actor"),),
    )


def test_depth_counts_edges(films):
    assert not found(films, ["m.film"], ["m.ann", "m.bob"], depth=1).solutions
    for depth, lengths in ((1, set()), (2, {2}), (3, {2, 3})):
        assert {len(only) for (only,) in found(films, ["m.film"], ["m.france"], depth).solutions} == lengths


def test_depth_counts_hops_with_free_mediators(films):
    settings = BeamSettings(depth=2, mediator_hop="free")
    reach = exact_paths(films, [ent("m.film")], gold("m.france"), settings)
    wanted = path("m.film", "film.film.starring", "film.performance.actor", "people.person.nationality")
    assert (wanted,) in reach.solutions


def test_literals_by_value_and_entities_by_name(make_graph, films):
    year = path("m.film", "film.film.year")
    assert found(films, ["m.film"], ['"1996.0"']).solutions == ((year,),)
    named = make_graph("m.film film.film.genre m.drama", 'm.drama type.object.name "Drama"@en')
    assert found(named, ["m.film"], ['"drama"']).solutions == ((path("m.film", "film.film.genre"),),)


def test_no_path_has_exactly_these_answers(films):
    for answers in (["m.ann"], ["m.ann", "m.bob", "m.cyd"], ["m.nobody"], ["m.drama", "m.french"]):
        reach = found(films, ["m.film"], answers)
        assert reach.solutions == () and not reach.capped


def test_intersection_of_two_topics(films):
    reach = found(films, ["m.film", "m.france"], ["m.french"])
    assert reach.solutions == ((path("m.film", "film.film.language"), path("m.france", "location.country.language")),)
    assert not found(films, ["m.film", "m.france"], ["m.french"], join=False).solutions
    assert not found(films, ["m.film"], ["m.french"]).solutions


def test_intersection_of_three_topics(make_graph):
    graph = make_graph(
        *(f"m.a r.r.r m.{x}" for x in "xyz"), *(f"m.b r.r.r m.{x}" for x in "xyw"), *(f"m.c r.r.r m.{x}" for x in "xzw")
    )
    wanted = tuple(path(topic, "r.r.r") for topic in ("m.a", "m.b", "m.c"))
    assert found(graph, ["m.a", "m.b", "m.c"], ["m.x"], depth=1).solutions == (wanted,)
    assert len(found(graph, ["m.a", "m.b", "m.c"], ["m.x", "m.y"], depth=1).solutions) == 1  # two topics suffice


def test_join_on_a_mediator(films):
    # both played in the film and both played the queen, but only Ann played her in this film
    reach = found(films, ["m.film", "m.queen"], ["m.ann"])
    through_film = path("m.film", "film.film.starring", "film.performance.actor")
    through_queen = path("m.queen", "^film.performance.character", "film.performance.actor")
    assert (through_film, path("m.queen", "^film.performance.character")) in reach.solutions
    assert (through_queen, path("m.film", "film.film.starring")) in reach.solutions


@pytest.mark.parametrize("caps", [{"expansions": 1}, {"end_sets": 0}])
def test_reached_caps_are_reported(films, caps):
    reach = found(films, ["m.film"], ["m.ann", "m.bob"], **caps)
    assert reach.capped and not reach.solutions


# --- compared with all paths


@pytest.fixture(scope="module", params=["free", "topic-not-end", "topic-never"])
def random_graph(request, make_graph):
    generator = random.Random(3)
    nodes = [f"m.{i}" for i in range(9)]
    # no loops: exploration never steps back to the topic alone
    pairs = [generator.sample(nodes, 2) for _ in range(26)]
    edges = {f"{subject} a.b.r{generator.randrange(4)} {object_}" for subject, object_ in pairs}
    return make_graph(*sorted(edges), walks=request.param)


def all_paths(graph, topic: Entity, depth: int) -> list[RelationPath]:
    """Return every sequence of steps with at least one end, without asking which steps exist."""
    steps = [Step(f"{NS}a.b.r{number}", direction) for number in range(4) for direction in ("out", "in")]
    found, frontier = [], [RelationPath(topic)]
    for _ in range(depth):
        frontier = [parent.then(step) for parent in frontier for step in steps]
        found += frontier
    return [path for path in found if graph.paths.ends([Candidate(path)])[0].values]


def test_all_exact_paths_are_found(random_graph):
    generator = random.Random(5)
    for topic in (ent("m.1"), ent("m.4")):
        paths = all_paths(random_graph, topic, 2)
        for chosen in generator.sample(paths, 6):
            wanted = gold(*(value.iri for value in random_graph.paths.ends([Candidate(chosen)])[0].values))
            reach = exact_paths(random_graph, [topic], wanted, BeamSettings(depth=2))
            expected = {
                path
                for path in paths
                if answer_keys(random_graph.named(random_graph.paths.ends([Candidate(path)])[0].values), wanted)
                == wanted
            }
            assert {only for (only,) in reach.solutions} == expected and chosen in expected
            assert not reach.capped
