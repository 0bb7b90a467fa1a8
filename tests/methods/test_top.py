"""Tournament on Path without a language model, on the demo graph and on small graphs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgqa import ask, open_resources
from kgqa.errors import StoreTimeout
from kgqa.graph.embedded.loading import load_graph
from kgqa.settings.values import resolve
from kgqa.trace import Joined

NS = "http://rdf.freebase.com/ns/"
PARASITE = "Who directed the film Parasite?"
ANTHEM = "Which city is the capital of the country whose anthem is Kimigayo?"


@pytest.fixture
def opened(tmp_path):
    """`opened(graph=None, **settings) -> Resources`, without embeddings by default."""
    opened_resources = []

    def opened(graph=None, **given):
        given = {name.replace("__", "."): value for name, value in {"rank__embeddings": "off", **given}.items()}
        opened_resources.append(open_resources(graph, settings=resolve(given)))
        return opened_resources[-1]

    yield opened
    for resources in opened_resources:
        resources.close()


@pytest.fixture
def small(tmp_path):
    def small(*triples):
        lines = []
        for triple in triples:
            s, p, o = triple.split(" ", 2)
            lines.append(f"<{NS}{s}> <{NS}{p}> {o if o.startswith(chr(34)) else f'<{NS}{o}>'} .")
        (tmp_path / "small.nt").write_text("\n".join(lines) + "\n")
        load_graph(tmp_path / "small", [tmp_path / "small.nt"], schema="freebase")
        return tmp_path / "small"

    return small


class TimingOutStore:
    """A store that times out on queries that contain all of the given texts."""

    def __init__(self, store, *texts):
        self._store, self._texts = store, texts

    def select(self, query, **options):
        if all(text in query for text in self._texts):
            raise StoreTimeout("too late")
        return self._store.select(query, **options)

    def __getattr__(self, name):
        return getattr(self._store, name)


def with_timeouts(resources, *texts):
    resources.graph.tables.prepare()
    resources.graph.queries.store = TimingOutStore(resources.graph.store, *texts)
    return resources


def names(answer):
    return {item.name for item in answer.answers}


@pytest.mark.parametrize("tournament", ["chunked", "pairwise", "knockout", "pointwise", "single"])
@pytest.mark.parametrize("prefilter", ["bm25", "rrf", "sbert", "none"])
def test_every_tournament_and_prefilter(opened, tournament, prefilter):
    answer = ask(PARASITE, resources=opened(rank__tournament=tournament, rank__prefilter=prefilter, explore__beam=3))
    assert names(answer) == {"Bong Joon-ho"}


def test_random_chooser_depends_only_on_the_seed(opened):
    one, again = (ask(ANTHEM, resources=opened(rank__chooser="random", rank__seed=1)) for _ in range(2))
    assert replace(one, usage=again.usage, trace=()) == replace(again, trace=())
    paths = {ask(ANTHEM, resources=opened(rank__chooser="random", rank__seed=seed)).paths[0].words for seed in range(6)}
    assert len(paths) > 1


def test_score_below_accept_is_rejected(opened):
    answer = ask(PARASITE, resources=opened(rank__accept=5.0, ask__on_exhausted="none"))
    assert answer.status == "no_answer" and "No path scores above accept=5 (best: " in answer.reason
    assert "rejected" in {event.kind for event in answer.trace}


STRICT = """
from kgqa.rank.tournaments.chooser import ScoringChooser

def strict(resources):
    return ScoringChooser(lambda question, candidates: [0.0] * len(candidates), "strict", accept_at=1.0)
"""


@pytest.mark.parametrize("least", [0.0, 0.9])
def test_least_score_has_no_effect_on_a_chooser_of_another_package(opened, foreign_package, least):
    foreign_package("[kgqa.choosers]\nlax = theirs:strict\n", theirs=STRICT.replace("accept_at=1.0", "accept_at=0.0"))
    answer = ask(PARASITE, resources=opened(rank__chooser="lax", ask__min_score=least))
    assert answer.status == "answered"
    assert any("min_score" in note and "has no effect" in note for note in answer.notes) == bool(least)


class TestSeveralTopics:
    GRAPH = (
        "m.film r.film.actor m.ann",
        "m.film r.film.actor m.bob",
        "m.france r.country.people m.ann",
        "m.spain r.country.people m.carl",
        'm.film type.object.name "Jaws"@en',
        'm.france type.object.name "France"@en',
        'm.spain type.object.name "Spain"@en',
    )

    def test_paths_of_two_topics_are_intersected(self, opened, small):
        answer = ask("which film actor of Jaws is among the people of France?", resources=opened(small(*self.GRAPH)))
        assert [item.id for item in answer.answers] == ["m.ann"] and answer.query_class == "exact"
        assert len(answer.paths) == 2 and {e.path.topic.iri for e in answer.paths} == {NS + "m.film", NS + "m.france"}
        assert all(evidence.walks for evidence in answer.paths)

    def test_empty_intersection_falls_back_to_one_path(self, opened, small):
        answer = ask("which film actor of Jaws is among the people of Spain?", resources=opened(small(*self.GRAPH)))
        assert answer.status == "answered" and len(answer.paths) == 1
        assert {event.paths for event in answer.trace if isinstance(event, Joined)} == {()}


class TestTimeouts:
    def test_next_path_answers_with_a_note(self, opened):
        resources = with_timeouts(opened(), "?answer", "film.film.directed_by")
        answer = ask(PARASITE, resources=resources)
        assert answer.status == "answered" and names(answer) != {"Bong Joon-ho"}
        assert any("Skipped a better path" in note for note in answer.notes)

    def test_fails_when_no_path_can_be_read(self, opened):
        answer = ask(PARASITE, resources=with_timeouts(opened(), "SELECT DISTINCT ?answer"))
        assert answer.status == "failed" and "too late" in answer.reason


def test_stop_at_the_first_accepted_path(opened):
    whole, early = (ask(PARASITE, resources=opened(explore__stop=stop)) for stop in ("depth", "accepted"))
    assert names(whole) == names(early) and early.usage.hops == 1 < whole.usage.hops
    assert "accepted" in {event.kind for event in early.trace}
