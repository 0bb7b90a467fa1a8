"""The tools as an environment for trainers."""

from __future__ import annotations

import inspect
import json

import pytest

from kgqa.errors import KgqaError, SettingsError
from kgqa.methods.evograph.environment import call_tool, make_environment
from tests.methods.evograph.hyper_corpus import Note, write_hyper_corpus


def results(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_methods_are_the_tools_that_are_allowed(written):
    made = make_environment(written[0], embeddings="off", tools="graph_search, insert")
    public = [name for name, _ in inspect.getmembers(made(), inspect.ismethod) if not name.startswith("_")]
    assert public == ["graph_search", "insert", "reset"]
    with pytest.raises(SettingsError, match="our tools"):
        make_environment(written[0], preset="as-published")


def test_wrong_arguments_are_told_and_wrong_settings_refused(written, tmp_path):
    assert "must be a text" in make_environment(written[0], embeddings="off")().graph_search(query=["a"])
    assert call_tool(make_environment(written[0], embeddings="off")(), "rm", {}) == "There is no tool rm."
    with pytest.raises(SettingsError):
        make_environment(written[0], nosuch=1)
    with pytest.raises(KgqaError):
        make_environment(tmp_path)


def test_what_a_passage_of_the_corpus_says_is_not_inserted_again(written):
    environment = make_environment(written[0], embeddings="off", preset="passages")()
    found = results(environment.graph_search("Mara Holt built the first tide clock"))
    told = environment.insert("The first tide clock Mara Holt built.", [found[0]["number"]])
    assert "says this already" in told and results(told)[0]["number"] == found[0]["number"]


def test_a_page_of_the_web_does_not_spoil_a_deletion_that_the_corpus_supports(tmp_path, written):
    names = ("Tarn Harbour",)
    notes = [Note(f"The lighthouse of Tarn Harbour was finished in {year}.", names) for year in (1830, 1834)]
    folder = write_hyper_corpus(tmp_path / "corpus", notes)
    environment = make_environment(folder, embeddings="off", web=f"replay:{written[1]}")()
    found = results(environment.graph_search("lighthouse of Tarn Harbour finished"))
    assert "1834" in environment.web_search("lighthouse of Tarn Harbour finished")
    (wrong,) = [each["number"] for each in found if "1830" in each["text"]]
    assert "hidden" in environment.delete(wrong, "It was 1834.")
