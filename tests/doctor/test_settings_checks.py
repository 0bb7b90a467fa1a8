"""Checks of the settings and of the cache."""

from __future__ import annotations

import pytest

from kgqa.doctor.settings_checks import check_cache, check_embeddings, check_settings, queries_of
from kgqa.doctor.subject import Subject
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache


def settings_check(tmp_path, given, *, query_seconds=0.01, encoder=True):
    subject = Subject(resolve(given, folder=tmp_path), Cache(tmp_path))
    subject.query_seconds, subject.encoder = query_seconds, encoder
    return check_settings(subject)


def test_default_settings(tmp_path):
    check = settings_check(tmp_path, {})
    assert (check.verdict, check.remedy) == ("ok", "")


@pytest.mark.parametrize(
    "given, verdict, word",
    [
        ({"ask.method": "cot"}, "failed", "needs a language model"),
        ({"ask.method": "cot", "llm.model": "http://127.0.0.1:1/v1"}, "ok", "llm.model"),
        ({"rank.chooser": "llm"}, "failed", "rank.chooser needs a language model"),
        ({"rank.ranker": "/nowhere.npz"}, "failed", "named by rank.ranker does not exist"),
        ({"ask.preset": "as-published"}, "warning", "as-published"),
        ({"llm.temperature": 0.7}, "warning", "0.7"),
        ({"ask.method": "tog", "llm.model": "openai:x"}, "ok", "ask.method"),
        ({"budget.seconds": 0.2}, "warning", "budget.seconds is 0.2"),
        ({"budget.queries": 5}, "warning", "budget.queries is 5"),
        ({"graph.timeout": 400.0}, "warning", "graph.timeout (400 s)"),
        ({"graph.frontier_cap": 3}, "warning", "frontier_cap is only 3"),
        ({"endpoint.user": "me"}, "warning", "no password"),
    ],
)
def test_unusual_settings(tmp_path, given, verdict, word):
    check = settings_check(tmp_path, given)
    assert check.verdict == verdict and word in check.found
    assert bool(check.remedy) == (verdict != "ok")


def test_missing_embeddings(tmp_path):
    assert settings_check(tmp_path, {"rank.prefilter": "sbert"}).verdict == "ok"
    assert settings_check(tmp_path, {"rank.prefilter": "sbert"}, encoder=False).verdict == "warning"


def test_settings_file_is_named_without_its_values(tmp_path):
    (tmp_path / "kgqa.toml").write_text('[endpoint]\ncontact = "somebody@secret.example"\n')
    check = settings_check(tmp_path, {})
    assert "Set by kgqa.toml in the working folder: endpoint.contact" in check.found
    assert "secret" not in check.found


def test_queries_per_question():
    assert queries_of(resolve({"explore.depth": 2, "explore.beam": 10})) == 2 + 2 * 10 + 10
    assert queries_of(resolve({"explore.depth": 1})) == 12


def test_writable_cache(tmp_path):
    cache = Cache(tmp_path / "cache")
    (tmp_path / "cache" / "models" / "x").mkdir(parents=True)
    (tmp_path / "cache" / "models" / "x" / "y").write_bytes(b"0" * 20_000_000)
    check = check_cache(Subject(resolve(), cache))
    assert check.verdict == "ok" and "uses 0.02 of at most 10.7 GB" in check.found
    assert [item.name for item in cache.folder.iterdir()] == ["models"]


def test_unwritable_cache(tmp_path):
    (tmp_path / "file").write_text("")
    check = check_cache(Subject(resolve(), Cache(tmp_path / "file" / "cache")))
    assert check.verdict == "warning" and "cache.folder" in check.remedy


def test_embeddings_off(tmp_path):
    check = check_embeddings(Subject(resolve({"rank.embeddings": "off"}), Cache(tmp_path)))
    assert check.verdict == "skipped"
