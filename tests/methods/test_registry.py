"""The registry of methods: built-in ones and those of other packages."""

from __future__ import annotations

import logging

import pytest

from kgqa import ask_all, open_resources
from kgqa.errors import SettingsError
from kgqa.methods.registry import method
from kgqa.plugins import known_settings
from kgqa.settings.setting import check
from kgqa.settings.values import resolve

BUILT_IN = ["cot", "counselor", "evograph", "graphsearch", "io", "rag", "tog", "tog3", "top", "top-1", "top-2"]


@pytest.fixture
def package(foreign_package):
    """An installed package of another project, with methods."""
    return lambda points, **modules: foreign_package(f"[kgqa.methods]\n{points}\n", **modules)


@pytest.mark.parametrize("name", BUILT_IN)
def test_presets_of_a_method_are_valid(name):
    table, _ = known_settings({})
    for values in method(name).presets.values():
        for key, value in values.items():
            assert check(table[key], value, name) == value


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("1 / 0", "The method broken of theirs (theirs.py, line 3) failed: ZeroDivisionError: division by zero"),
        ("trace.record(3)", "The method broken of theirs (theirs.py, line 3) failed: TypeError"),
    ],
)
def test_external_method_that_raises_fails_its_question_and_shows_its_traceback(package, caplog, body, text):
    package(
        "broken = theirs:broken",
        theirs="from kgqa.model import Answer\ndef broken(question, *, resources, trace, topics, names):\n"
        f"    return {body}\n",
    )
    caplog.set_level(logging.DEBUG, "kgqa")
    with open_resources(settings=resolve({"ask.method": "broken", "rank.embeddings": "off"})) as resources:
        answers = list(ask_all(["Who directed the film Parasite?"] * 2, resources=resources))
    assert [answer.status for answer in answers] == ["failed"] * 2 and text in answers[0].reason, answers[0].reason
    assert f"return {body}" in caplog.text or "frozen" in text


# ---- declarations of other packages ----

DECLARED = """
from kgqa.methods.registry import Method
from kgqa.settings.setting import Section, setting, variant

class Mine(Section, name="mine"):
    rounds: int = setting(2, "rounds of the search", minimum=1)
    plan: str = variant("on", "on: with a plan; off: without", choices=("on", "off"))

class Shadow(Section, name="llm"):
    model: str = setting("theirs", "a section of kgqa")

PRESETS = {"ours": {"explore.depth": 4}, "fast": {"mine.rounds": 1}, "no-plan": {"mine.plan": "off", "mine.rounds": 3}}
mine = Method("theirs_search:answer", settings=Mine, presets=PRESETS)
other = Method("theirs_search:answer", settings=Mine)
shadow = Method("theirs_search:answer", settings=Shadow)
"""


def declared(source: str) -> dict[str, str]:
    return {"theirs_module": DECLARED + source, "theirs_search": "raise ImportError('imported')"}


def test_settings_and_presets_of_another_package(package, tmp_path):
    package("mine = theirs_module:mine\nother = theirs_module:other", **declared(""))

    def values(text="", given=None, **environment):
        (tmp_path / "kgqa.toml").write_text(text)
        found = resolve(given, environment=environment, folder=tmp_path, user_file=tmp_path / "none")
        return found.values["mine.rounds"], found.explore.depth

    mine = {"ask.method": "mine"}
    assert values(given=mine) == (2, 4)
    assert values(given=mine, KGQA_MINE_ROUNDS="7") == (7, 4)
    assert values("[ask]\nmethod = 'mine'\npreset = 'fast'\n") == (1, 4)
    assert values("[mine]\nrounds = 9\n[ask]\nmethod = 'mine'\npreset = 'fast'\n") == (9, 4)
    assert values("[mine]\nrounds = 9\n") == (9, 2), "the section of an installed method that is not used"
    with pytest.raises(KeyError):
        values()
    for text, message in (
        ("[mine]\nrounds = 0\n", "mine.rounds .* must be at least 1"),
        ("[mine]\nround = 1\n", "unknown setting mine.round"),
        ("[ask]\npreset = 'fast'\n", "ask.preset .* must be one of ours, as-published, economy, not 'fast'"),
    ):
        with pytest.raises(SettingsError, match=message):
            values(text)
    with pytest.raises(SettingsError, match="The method mine cannot be loaded from theirs_search:answer: imported"):
        method("mine")


def test_presets_and_rows_of_tables_set_variants_and_users_do_not(package, tmp_path):
    package("mine = theirs_module:mine", **declared(""))

    def plan_and_rounds(given=None, text="", **more):
        (tmp_path / "kgqa.toml").write_text(text)
        where = {"folder": tmp_path, "user_file": tmp_path / "none"}
        settings = resolve({"ask.method": "mine", **(given or {})}, **{"environment": {}, **where, **more})
        return settings.values["mine.plan"], settings.values["mine.rounds"]

    assert plan_and_rounds() == ("on", 2)
    assert plan_and_rounds({"ask.preset": "no-plan"}) == ("off", 3)
    assert plan_and_rounds({"ask.preset": "no-plan, fast"}) == ("off", 1)
    assert plan_and_rounds({"ask.preset": "fast,no-plan", "mine.rounds": 5}) == ("off", 5)
    assert plan_and_rounds(variants={"mine.plan": "off"}) == ("off", 2)
    for given, text, more in (
        ({}, "", {"environment": {"KGQA_MINE_PLAN": "off"}}),
        ({"mine.plan": "off"}, "", {}),
        ({"mine_plan": "off"}, "", {}),
        ({}, "[mine]\nplan = 'off'\n", {}),
    ):
        with pytest.raises(SettingsError, match="mine.plan .* is set by presets only.*no-plan"):
            plan_and_rounds(given, text, **more)
    with pytest.raises(SettingsError, match="mine.plan .table. must be one of on, off"):
        plan_and_rounds(variants={"mine.plan": "some"})
    with pytest.raises(SettingsError, match="ask.preset .Python. must be one of .* not 'slow'"):
        plan_and_rounds({"ask.preset": "fast,slow"})


def test_wrong_preset_is_named(package):
    presets = '{"ours": {"explore.dept": 1}}'
    package("bad = theirs_module:bad", **declared(f'bad = Method("theirs_search:answer", presets={presets})'))
    with pytest.raises(SettingsError, match=r"Preset ours of bad: unknown setting explore\.dept\. Did you mean"):
        resolve({"ask.method": "bad"})
