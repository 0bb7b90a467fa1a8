"""Settings: precedence, origins and validation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgqa.errors import SettingsError
from kgqa.plugins import known_settings
from kgqa.settings.setting import check
from kgqa.settings.table import own_settings
from kgqa.settings.values import resolve
from tests.conftest import ROOT

KEY = "explore.depth"
VARIABLE = "KGQA_EXPLORE_DEPTH"


@pytest.fixture
def folder_and_user_file(tmp_path):
    """A working folder and the path of a user file, both without settings."""
    (folder := tmp_path / "work").mkdir()
    return folder, tmp_path / "user.toml"


def settings_from(folder_and_user_file, command_line=None, **environment):
    folder, user = folder_and_user_file
    return resolve(command_line, environment=environment, folder=folder, user_file=user)


def test_each_source_overrides_the_one_before(folder_and_user_file):
    folder, user = folder_and_user_file
    local = folder / "kgqa.toml"

    def current(command_line=None, **environment):
        settings = settings_from(folder_and_user_file, command_line, **environment).with_graph({"depth": 7})
        return settings.values[KEY], settings.origins[KEY]

    first = settings_from(folder_and_user_file)
    assert (first.values[KEY], first.origins[KEY]) == (own_settings()[KEY].default, "default")
    assert current() == (7, "graph")
    user.write_text("[explore]\ndepth = 3")
    assert current() == (3, str(user))
    local.write_text("[explore]\ndepth = 4")
    assert current() == (4, str(local))
    assert current(**{VARIABLE: "5"}) == (5, VARIABLE)
    assert current({KEY: 6}, **{VARIABLE: "5"}) == (6, "Python")
    assert current({KEY: None}, **{VARIABLE: "5"}) == (5, VARIABLE)


def test_a_depth_that_was_set_limits_the_wording_too(folder_and_user_file):
    def limits(given, graph=None):
        settings = settings_from(folder_and_user_file, given).with_graph(graph or {})
        return settings.values[KEY], settings.explore.wording_depth

    assert limits({}) == (2, 3)
    assert limits({KEY: 1}) == (1, 1)
    assert limits({}, {"depth": 1}) == (1, 1)
    assert limits({KEY: 1, "explore.wording_depth": 4}) == (1, 4)
    assert limits({"explore.wording_depth": 4}) == (2, 4)


def test_every_default_is_valid_and_documented():
    for key, setting in known_settings({})[0].items():
        assert check(setting, setting.default, "default") == setting.default
        assert setting.help and key == setting.key


@pytest.mark.parametrize(
    ("key", "value", "must"),
    [
        ("explore.depth", "2", "a whole number, not '2'"),
        ("explore.depth", True, "a whole number, not True"),
        ("explore.depth", 0, "at least 1, not 0"),
        ("explore.mediator_hop", "sometimes", "one of "),
        ("graph.timeout", float("nan"), "at most 1,000,000,000, not nan"),
        ("budget.seconds", 10**400, "at most 1,000,000,000, not 1000"),
        ("rank.votes", 2, "one of 1, 3, not 2"),
        ("cache.folder", 3, "text, not 3"),
    ],
)
def test_a_wrong_value_is_named_with_its_source(key, value, must):
    with pytest.raises(SettingsError) as caught:
        check(own_settings()[key], value, "the source")
    assert f"{key} (the source) must be {must}" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[explore]\ndepht = 2", "explore.depht"),
        ("[nosuch]\nkey = 2", "nosuch.key"),
        ("depth = 2", "depth"),
        ("[explore", "kgqa.toml"),
        ("[explore.depth]\nx = 1", "explore.depth"),
    ],
)
def test_error_in_a_file(folder_and_user_file, content, named):
    (folder_and_user_file[0] / "kgqa.toml").write_text(content)
    with pytest.raises(SettingsError, match=re.escape(named)) as caught:
        settings_from(folder_and_user_file)
    assert "kgqa.toml" in str(caught.value)


def test_only_the_user_can_set_the_cache_folder(folder_and_user_file):
    folder, user = folder_and_user_file
    user.write_text('[cache]\nfolder = "/mine"\n')
    assert settings_from(folder_and_user_file).cache.folder == "/mine"
    (folder / "kgqa.toml").write_text('[cache]\nfolder = "/elsewhere"\n')
    with pytest.raises(SettingsError, match="cache.folder") as caught:
        settings_from(folder_and_user_file)
    assert str(user) in str(caught.value) and "KGQA_CACHE_FOLDER" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ({"depth": 3}, "explore.depth", 3),
        ({"explore": "path+entity"}, "explore.shape", "path+entity"),
        ({"llm_timeout": 3}, "llm.timeout", 3.0),
        ({"replay": Path("replies.jsonl")}, "llm.replay", "replies.jsonl"),
        ({"endpoint_cache": False}, "endpoint.cache", "off"),
        ({"as_published": True}, "ask.preset", "as-published"),
        ({"as_published": True, "preset": "economy"}, "ask.preset", "as-published,economy"),
        ({"as_published": True, "ask.preset": None}, "ask.preset", "as-published"),
        ({"depth": None}, "explore.depth", 2),
    ],
)
def test_settings_are_given_by_keyword(folder_and_user_file, given, key, value):
    assert settings_from(folder_and_user_file, given).values[key] == value


def test_unknown_keyword_names_near_ones_before_errors_of_packages(folder_and_user_file, foreign_package):
    foreign_package("[kgqa.methods]\nbroken = theirs_nowhere:answer\n")
    for keyword, near in (("dept", "depth"), ("ask.metod", "ask.method"), ("topic", "topics")):
        for value, error in ((3, r"\. The method broken cannot be"), (None, "")):
            with pytest.raises(SettingsError, match=rf"Unknown setting {keyword}\. Did you mean {near}.*{error}"):
                settings_from(folder_and_user_file, {keyword: value})


def test_misspelled_variable_is_noted(folder_and_user_file, kgqa):
    settings = settings_from(folder_and_user_file, KGQA_EXPLORE_DEPHT="3", KGQA_LLM_MODEL="openai:a", KGQA_LLM_KEY="k")
    assert [note.rpartition("Did you mean ")[2] for note in settings.notes] == ["KGQA_EXPLORE_DEPTH?", "KGQA_LLM?"]
    assert "Did you mean KGQA_EXPLORE_DEPTH?" in kgqa("config", "show", KGQA_EXPLORE_DEPHT="3").err


def test_variables_that_are_no_settings_are_not_noted(folder_and_user_file):
    """All variables named in kgqa's own files."""
    text = "".join(file.read_text() for file in [*(ROOT / "kgqa").rglob("*.py"), *(ROOT / "docs").glob("*.md")])
    names = set(re.findall(r"KGQA_[A-Z]+(?:_[A-Z]+)*", text))
    assert len(names) > 10
    others = dict.fromkeys(names - {each.variable for each in own_settings().values()}, "x")
    assert settings_from(folder_and_user_file, **others).notes == ()
