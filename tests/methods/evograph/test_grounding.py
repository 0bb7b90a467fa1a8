"""Answers of a session: along hyperedges, in words of the corpus, and neither."""

from __future__ import annotations

import shutil

import pytest

from kgqa import open_graph
from kgqa.methods.grounding import UNQUOTED
from kgqa.model import HyperedgeEvidence, QuoteEvidence
from tests.methods.evograph.conftest import call, final

BORN = call("graph_search", query="Mara Holt born")


def test_a_participant_of_a_cited_hyperedge_is_the_end_of_a_path(run, written):
    asked = run(BORN, final("tarn harbour [1]"), question="Where was Mara Holt born?", folder=written[0])
    answer = asked.answer
    assert answer.grounding == "graph" and answer.query_class in ("exact", "restricted"), answer.notes
    assert [each.name for each in answer.answers] == ["Tarn Harbour"] and answer.answers[0].id
    (path,) = answer.paths
    assert len(path.path.steps) == 2 and "urn:kgqa:hyperedge:" in answer.sparql
    assert any(isinstance(each, HyperedgeEvidence) for each in answer.evidence)
    with open_graph(written[0], view=["hyper"]) as graph:
        assert set(graph.run_exported(answer.sparql)) == {each.value for each in answer.answers}


def test_words_of_a_hyperedge_are_quoted_from_their_chunk(run, written):
    search = call("graph_search", query="lighthouse of Tarn Harbour finished")
    asked = run(search, final("1830 [1]"), question="When was the lighthouse finished?", folder=written[0])
    answer = asked.answer
    assert (answer.grounding, answer.query_class) == ("text", "exact") and "1830" not in answer.sparql
    quotes = [each for each in answer.evidence if isinstance(each, QuoteEvidence)]
    assert [each.words for each in quotes] == ["The lighthouse of Tarn Harbour was finished in 1830."]
    assert answer.evidence_class == "exact"


@pytest.mark.parametrize("text", ["Mars [1]", "Mars", "Mars [99]", "Tarn [1]; Mars [1]", "arn Harb [1]"])
def test_what_no_cited_text_says_comes_from_the_model(run, written, text):
    asked = run(BORN, final(text), question="Where was Mara Holt born?", folder=written[0])
    answer = asked.answer
    assert answer.status == "answered" and answer.grounding == "model" and not answer.sparql
    (finished,) = asked.events("finished")
    assert not finished.grounded and finished.why


@pytest.mark.parametrize(
    ("question", "text", "grounding", "note"),
    [
        ("When was Mara Holt born?", "1871", "text", "cites no result"),
        ("Was Mara Holt born in Tarn Harbour?", "yes [1]", "text", "follows from claims"),
        ("Was Mara Holt born in Tarn Harbour?", "yes", "model", ""),
    ],
)
def test_yes_and_what_cites_nothing(run, written, question, text, grounding, note):
    answer = run(BORN, final(text), question=question, folder=written[0]).answer
    assert answer.grounding == grounding and note in " ".join(answer.notes)


@pytest.mark.parametrize(("text", "elsewhere"), [("Oster Quay [1]", False), ("Mars [1]", True), ("Oster Quay", True)])
def test_what_the_web_says_is_neither_grounded_nor_from_memory(run, written, text, elsewhere):
    web = {"evograph.web": f"replay:{written[1]}"}
    search = call("web_search", query="Mara Holt died")
    asked = run(search, final(text), question="Where did Mara Holt die?", folder=written[0], **web)
    answer = asked.answer
    assert answer.grounding == "model" and (UNQUOTED in answer.notes) == elsewhere
    if "[1]" in text:
        assert any("https://island.example/holt" in note for note in answer.notes)
        assert [(each.verified, each.piece) for each in answer.citations] == [(False, "https://island.example/holt")]


def test_a_result_that_the_question_removed_grounds_nothing(run, written, tmp_path):
    folder = shutil.copytree(written[0], tmp_path / "corpus")
    web = {"evograph.web": f"replay:{written[1]}", "ask.preset": "as-published"}
    update = '<think>x</think><tool_call>{"tool": "update", "args": {"content": "The lighthouse of Tarn Harbour was '
    update += 'finished in 1830.", "new_content": "It burnt down."}}</tool_call>'
    search = call("kb_search", query="lighthouse finished")
    asked = run(search, update, final("1830 [1]"), question="When was it finished?", folder=folder, **web)
    assert asked.answer.grounding == "model"
