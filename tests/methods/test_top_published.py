"""Tournament on Path as the thesis describes it: System 1 and System 2, and their ablations."""

from __future__ import annotations

import re

import pytest

from kgqa import open_resources
from kgqa.errors import SettingsError
from kgqa.settings.values import resolve
from kgqa.testing.model_oracle import Gold

from .scripted import loaded
from .test_top_models import BORN, PRESIDENT, SYSTEM_1, SYSTEM_2, Model, choosing, prefer
from .test_top_models import _short_pauses as _short_pauses
from .test_top_models import films as films
from .test_top_models import folder as folder
from .test_top_models import run as run

CHAIN = ("music.anthem.use", "music.anthem_use.country", "location.country.rule", "government.rule.ruler")
RULER = "Who rules the country with the Hymn?"


@pytest.fixture(scope="module")
def two_mediators(tmp_path_factory):
    """A hymn, its use (a mediator), a country, its rule (a mediator) and the ruler."""
    nodes = ("m.tune", "g.x1", "m.land", "g.x2", "m.ruler")
    facts = [f"{a} {relation} {b}" for a, relation, b in zip(nodes, CHAIN, nodes[1:])]
    facts.append("m.tune common.topic.webpage m.page")
    names = {"m.tune": "Hymn", "m.land": "Land", "m.ruler": "Ruth"}
    return loaded(tmp_path_factory.mktemp("mediators"), facts, names)


def test_system_two_searches_until_answered_through_two_mediators(run, two_mediators):
    whole = "m.tune " + " ".join(f"-> {each}" for each in CHAIN)
    done = run(Model(Gold((frozenset({whole}),))), RULER, graph=str(two_mediators), topics=["m.tune"], **SYSTEM_2)
    assert done.ids == ["m.ruler"] and done.answer.usage.hops == 4 and done.answer.query_class == "exact"
    limited = run(Model(Gold((frozenset({whole}),))), RULER, graph=str(two_mediators), topics=["m.tune"],
                  **SYSTEM_2, explore__depth=3)  # fmt: skip
    assert limited.answer.status == "no_answer" and limited.answer.usage.hops == 3
    spent = run(Model(Gold((frozenset({whole}),))), RULER, graph=str(two_mediators), topics=["m.tune"],
                **SYSTEM_2, budget__calls=3)  # fmt: skip
    assert spent.answer.status == "budget_exhausted"


@pytest.mark.parametrize("system", [SYSTEM_1, SYSTEM_2], ids=["1", "2"])
def test_mediators_and_noise_are_candidates(run, two_mediators, system):
    done = run(question=RULER, graph=str(two_mediators), topics=["m.tune"], **system)
    shown = "\n".join(done.prompts())
    first = [line for line in shown.splitlines() if re.search(r"-> music\.anthem\.use( =.*)?$", line)]
    assert first and "common.topic.webpage" in shown
    ours = run(question=RULER, graph=str(two_mediators), topics=["m.tune"])
    assert "webpage" not in ours.sent_text and not re.search(r"-> use\\n", ours.sent_text)


def test_without_path_pruning_only_the_pruning_sees_the_last_relation(run):
    given = {"variants": {"explore.prune_by": "last-relation"}}
    born = "-> people.person.place_of_birth"
    picked = choosing("Zorblax -> film.film.directed_by", f"Zorblax {born}")
    one = run(Model(pick=picked), **SYSTEM_1, **given)
    assert any(f"] Zorblax {born}" in each for each in one.prompts("pick"))
    assert f"directed_by {born}" not in "\n".join(one.prompts("pick"))
    assert f"Path: Zorblax -> film.film.directed_by {born}\n" in one.prompts("answer")[0]
    two = run(Model(accept="[NO]", compare=prefer(born)), **SYSTEM_2, **given, explore__depth=2)
    pairs = [each for each in two.prompts("compare") if f": {born}" in each and "leads to" not in each]
    assert pairs and not any(f"directed_by {born}" in each for each in pairs)
    assert any(f"-> film.film.directed_by {born}" in each for each in two.prompts("accept"))


@pytest.mark.parametrize(
    ("given", "listed"),
    [
        ({}, [20, 5]),  # 25 actors, in prompts of 20
        ({"rank__tournament": "single"}, [25]),
        ({"rank__tournament": "pointwise"}, [25]),
        ({"variants": {"explore.entity_pool": 10}}, [10]),
        ({"variants": {"explore.entity_pool": 10}, "rank__prefilter": "none"}, [20, 5]),
        ({"variants": {"explore.entity_chunk": 9}}, [9, 9, 7]),
    ],
)
def test_ablations_reach_the_selection_of_entities(run, given, listed):
    chosen = Gold((frozenset({"Bigfilm -> film.film.actor"}),))
    done = run(Model(chosen, entities="[1]"), "Who acts in Bigfilm?", **{**SYSTEM_1, "explore__beam": 1}, **given)
    counts = [len(re.findall(r"^\[\d+\] Actor", each, re.MULTILINE)) for each in done.prompts("entities")]
    assert sorted(counts[: len(listed)]) == sorted(listed)  # prompts of a batch come in any order


def test_prompts_as_published_do_not_speak_of_joins(run):
    for system, kind in ((SYSTEM_1, "pick"), (SYSTEM_2, "compare")):
        done = run(question=PRESIDENT, **system, llm__mask="placeholder")
        assert done.prompts(kind) and "join" not in done.sent_text
    assert "the program joins paths" in run(question=PRESIDENT).sent_text


def test_another_embedding_model_is_said(run):
    assert (
        "Not as published: the embedding model is none, not Qwen3-Embedding-4B (rank.model)."
        in run(**SYSTEM_2).answer.notes
    )
    assert run(**SYSTEM_1).answer.notes == ("Compared by name.",)


@pytest.mark.parametrize("reply", ["[]", '{"verdict": "wrong"}'])
def test_empty_choice_is_no_missing_path(run, reply):
    done = run(Model(pick="[]", judge=reply), BORN)
    assert done.answer.reason == "The language model selected no candidate."


def test_the_thesis_has_two_systems():
    with pytest.raises(SettingsError, match="No publication describes top") as caught:
        open_resources(settings=resolve({"as_published": True, "llm.model": "http://127.0.0.1:1/v1#m"}))
    assert "top-1" in str(caught.value) and "top-2" in str(caught.value)
    with pytest.raises(SettingsError, match="needs a language model"):
        open_resources(settings=resolve({"ask.method": "top-2", "as_published": True}))


def test_settings_that_the_thesis_does_not_have_are_named(run):
    given = {"explore__stop": "converged", "ask__compose": "ends", "explore__mediator_hop": "free"}
    done = run(**SYSTEM_1, **given)
    assert done.answer.notes[1:] == tuple(f"The setting {key} has no effect as published." for key in
                                          ("ask.compose", "explore.stop"))  # fmt: skip
