"""The tools as an environment for trainers."""

from __future__ import annotations

import inspect
import json

import pytest

from kgqa.corpus.editing.proposals import ProposalFile
from kgqa.errors import KgqaError, SettingsError
from kgqa.methods.evograph.environment import make_environment
from tests.methods.evograph.hyper_corpus import Note, write_hyper_corpus


def results(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_each_object_is_a_session_and_reset_forgets_it(written):
    made = make_environment(written[0], web=f"replay:{written[1]}", embeddings="off", results=3)
    one, other = made(), made()
    one.reset(question="Where did Mara Holt die?", answer="not read")
    found = results(one.graph_search("Mara Holt died")) + results(one.web_search("Mara Holt died"))
    web = found[-1]
    assert [each["number"] for each in found] == list(range(1, len(found) + 1)) and web["kind"] == "web"
    assert "Done" in one.insert("Mara Holt died in Oster Quay in 1930.", [web["number"]])
    assert "was not shown" in other.insert("Mara Holt died in Oster Quay in 1930.", [1])
    assert "1930" in one.graph_search("died Oster Quay 1930") or "Found again" in one.graph_search("1930 Oster Quay")
    assert results(other.graph_search("Oster Quay died 1930")) == [] or "1930" not in other.graph_search("died 1930")
    one.reset(question="Again?")
    assert results(one.graph_search("Mara Holt"))[0]["number"] == 1
    assert "1930" not in one.graph_search("died 1930")
    assert ProposalFile(written[0]).records() == []  # nothing is kept


def test_methods_are_the_tools_that_are_allowed(written):
    made = make_environment(written[0], embeddings="off", tools="graph_search, insert")
    public = [name for name, _ in inspect.getmembers(made(), inspect.ismethod) if not name.startswith("_")]
    assert public == ["graph_search", "insert", "reset"]
    with pytest.raises(SettingsError, match="our tools"):
        make_environment(written[0], preset="as-published")


@pytest.mark.parametrize("arguments", [{"query": 3}, {"query": ""}, {"query": ["a"]}])
def test_wrong_arguments_are_told_and_raise_nothing(written, arguments):
    environment = make_environment(written[0], embeddings="off")()
    assert "must be a text" in environment.graph_search(**arguments)


def test_wrong_settings_are_refused(written, tmp_path):
    with pytest.raises(SettingsError):
        make_environment(written[0], nosuch=1)
    with pytest.raises(KgqaError):
        make_environment(tmp_path)


def test_what_a_passage_of_the_corpus_says_is_not_inserted_again(written):
    environment = make_environment(written[0], embeddings="off", preset="passages")()
    found = results(environment.graph_search("Mara Holt built the first tide clock"))
    assert "tide clock" in found[0]["text"] and found[0]["kind"] == "chunk"
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
