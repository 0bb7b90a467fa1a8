"""Think-on-Graph as published, on scripted replies: order of requests, parsing and grounding."""

from __future__ import annotations

import pytest

from ..scripted import prompt_kind
from .conftest import BIRTH, DIRECTOR, NAMES


def test_order_of_requests(run):
    done = run(
        relations=[DIRECTOR, BIRTH], sufficient=["{No}. Not yet.", "{Yes}. It is {Alphaville}."], explore__beam=1
    )
    assert done.kinds == ["relations", "entities", "sufficient", "relations", "sufficient"]
    first, second = done.prompts("relations")
    assert "Relations: film.film.country; film.film.directed_by; film.film.produced_by" in first
    assert "Entity: Ann Arkin\nRelations: people.person.place_of_birth" in second  # and not back to Zorblax
    assert done.triples() == ["Zorblax; film directed by; Ann Arkin", "Ann Arkin; person place of birth; Alphaville"]
    assert done.ids == ["m.alpha"] and done.answer.usage.hops == 2
    assert (done.answer.method, done.answer.grounding, done.answer.query_class) == ("tog", "graph", "restricted")
    assert "m.ann" in done.answer.sparql and not done.answer.defects


def test_walks_are_ordered_by_relation_score_times_entity_score(run):
    done = run(explore__depth=1, answer="{Freedonia}")
    assert done.triples() == [
        "Zorblax; film directed by; Ann Arkin",  # 0.6 x 0.9
        "Zorblax; film country; Freedonia",  # 0.3, a single entity is not scored
        "Zorblax; film directed by; Bob Bream",  # 0.6 x 0.1
    ]
    turned = run(explore__depth=1, entities="Score: 0.2, 0.8")
    assert [line.split("; ")[2] for line in turned.triples()] == ["Bob Bream", "Freedonia", "Ann Arkin"]


@pytest.mark.parametrize("width", [1, 3])
def test_beam_limits_the_walks(run, width):
    three = DIRECTOR + "\n3. {film.film.produced_by (Score: 0.1)}: no."
    done = run(relations=three, explore__depth=1, explore__beam=width)
    assert len(done.triples()) == width


@pytest.mark.parametrize("reply", ["None of them.", "1. {film.film.budget (Score: 0.9)}: it is.", "{Score: 1}"])
def test_unknown_relations_are_ignored_and_nothing_is_asked_again(run, reply):
    done = run(relations=reply)
    assert done.kinds == ["relations", "cot"] and str(done.answer) == "memory"


class TestSampling:
    ACTORS = "1. {film.film.actor (Score: 1.0)}: it is."

    def drawn(self, run, film, **settings):
        scores = lambda asked: "Score: " + ", ".join(["0.5"] * asked.count("Actor "))  # noqa: E731
        done = run(f"Who plays in {film}?", relations=self.ACTORS, entities=scores, explore__depth=1, **settings)
        return done.listed()

    def test_five_of_many_entities_are_drawn(self, run):
        drawn = self.drawn(run, "Bigfilm")
        assert len(drawn) == len(set(drawn)) == 5 and set(drawn) <= set(NAMES.values())
        assert len(self.drawn(run, "Midfilm")) == 19  # fewer than twenty are all listed


class TestReasoning:
    def test_sufficient_triples_end_the_search(self, run):
        done = run(sufficient="{Yes}. They were {Ann Arkin} and {Bob Bream}.", explore__depth=3)
        assert done.kinds == ["relations", "entities", "sufficient"] and done.ids == ["m.ann", "m.bob"]

    @pytest.mark.parametrize("reply", ["It is {Ann Arkin}.", "{Ann Arkin}: {Yes}.", "{Yes}", "{No} {Ann Arkin}"])
    def test_reply_without_yes_is_not_sufficient(self, run, reply):
        done = run(sufficient=reply, explore__depth=1, answer="{Freedonia}")
        assert done.kinds[-1] == "answer" and done.ids == ["m.fre"]

    def test_unreadable_answers_are_no_answer(self, run):
        done = run(answer="No idea.", explore__depth=1)
        assert done.answer.status == "no_answer" and "could not be read" in done.answer.reason
        assert done.kinds[-2:] == ["sufficient", "answer"]


class TestGrounding:
    def test_answers_behind_different_entities_share_one_query(self, run):
        done = run(
            relations=lambda asked: DIRECTOR if "Entity: Zorblax" in asked else BIRTH,
            entities="Score: 0.5, 0.5",
            sufficient=["{No}.", "{Yes}. {Alphaville; Betaville}"],
        )
        assert done.ids == ["m.alpha", "m.beta"] and done.answer.grounding == "graph"
        assert done.answer.query_class == "restricted" and done.answer.paths and done.answer.sparql

    @pytest.mark.parametrize("reply", ["{Ann Arkin; Paris}", "{Zorblax}"])
    def test_unreached_answer_is_from_the_model(self, run, reply):
        done = run(sufficient=f"{{Yes}}. {reply}")
        assert (done.answer.status, done.answer.grounding, done.answer.query_class) == ("answered", "model", "none")
        assert not done.answer.sparql and not done.answer.paths and set(done.ids) == {""}


class TestRequests:
    def test_temperatures_of_exploring_and_reasoning(self, run):
        done = run(explore__depth=1)
        temperatures = {prompt_kind(r.messages): r.body["temperature"] for r in done.requests}
        assert temperatures == {"relations": 0.4, "entities": 0.4, "sufficient": 0.0, "answer": 0.0}
        stages = {stage.stage: stage.calls for stage in done.answer.usage.stages}
        assert stages == {"filter": 1, "entity": 1, "decide": 2}

    @pytest.mark.parametrize("calls", [0, 1, 3])
    def test_call_budget(self, run, calls):
        done = run(budget__calls=calls)
        assert done.answer.status == "budget_exhausted" and len(done.requests) == calls
        assert f"more than {calls} model calls" in done.answer.reason
        # the first hop takes one or two calls; its paths are the answer
        assert bool(done.answer.answers) == bool(done.answer.paths) == bool(done.answer.sparql)
        assert done.answer.answers or calls < 2

    def test_spent_budget_leaves_the_end_of_the_best_chain(self, run):
        done = run(budget__calls=2, relations="1. {film.film.directed_by (Score: 1)}", entities="Score: 0.1, 0.9")
        assert (done.ids, done.answer.query_class) == (["m.bob"], "superset")
        assert [walk[-1].id for walk in done.answer.paths[0].walks] == ["m.bob"]
