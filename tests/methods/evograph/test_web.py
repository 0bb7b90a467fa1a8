"""Searches of the web: recorded ones, those of another package, and a corpus that plays the web."""

from __future__ import annotations

import shutil

import pytest

from kgqa.errors import KgqaError, PluginError, SettingsError
from kgqa.methods.evograph.web import MAX_PASSAGE_CHARS, opened_web_search
from tests.methods.evograph.conftest import call, final

MODULE = """
from kgqa.methods.evograph.web import WebPassage

asked = []

def find(query, k):
    asked.append(query)
    return [WebPassage(f"https://{n}.example", f"{query} <b>\\x1b {'long ' * 5000}") for n in range(k + 3)]

def broken(query, k):
    raise OSError("no network")
"""


@pytest.fixture
def web(foreign_package):
    foreign_package("[kgqa.web_searches]\nfind = web_module:find\nbroken = web_module:broken\n", web_module=MODULE)


def test_a_recorded_search_gives_the_same_results_without_the_web(web, tmp_path):
    file = tmp_path / "web.jsonl"
    with opened_web_search(f"record:{file}:find") as search:
        first = search("Ada", 2)
        assert search(" ADA ", 2) == first
    assert len(file.read_text().splitlines()) == 1
    with opened_web_search(f"replay:{file}") as search:
        assert search("ada", 2) == first and search("Ada", 1) == first[:1]
        assert search("something else", 2) == []
    assert len(first) == 2 and all(len(each.text) <= MAX_PASSAGE_CHARS and "\x1b" not in each.text for each in first)


def test_a_recording_that_cannot_be_written_is_an_error_of_the_settings(web, tmp_path):
    (tmp_path / "gone").mkdir()
    with opened_web_search(f"record:{tmp_path / 'gone' / 'web.jsonl'}:find") as search:
        shutil.rmtree(tmp_path / "gone")
        with pytest.raises(SettingsError, match="cannot be used as a recording"):
            search("Ada", 2)


def test_a_failing_search_is_told_to_the_model_and_the_session_goes_on(web, run):
    with opened_web_search("broken") as search, pytest.raises(PluginError, match="no network"):
        search("Ada", 2)
    asked = run(call("web_search", query="Ada"), final("unknown"), evograph__web="broken")
    assert "no network" in asked.requests[-1].messages[-1]["content"] and asked.answer.status == "no_answer"


def test_a_corpus_plays_the_web(corpus_folder):
    with opened_web_search(f"corpus:{corpus_folder}") as search:
        assert "tide clock" in search("first tide clock", 1)[0].text


def test_no_search_and_wrong_names(tmp_path):
    with opened_web_search("none") as search:
        assert search is None
    for name in ("nosuch", "record:only", "replay:/no/such/file", "corpus:/no/such/folder", "ftp:x"):
        with pytest.raises(KgqaError), opened_web_search(name):
            pass


@pytest.mark.parametrize("line", ["{", '{"query": "a", "passages": [{"text": "b"}]}'])
def test_a_damaged_recording_is_refused(tmp_path, line):
    (tmp_path / "web.jsonl").write_text(f"{line}\n")
    with pytest.raises(SettingsError, match="recording"), opened_web_search(f"replay:{tmp_path}/web.jsonl"):
        pass
