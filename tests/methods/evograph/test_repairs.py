"""An agent that knows the right facts repairs the graph, and needs fewer calls afterwards."""

from __future__ import annotations

import shutil

import pytest

from kgqa.testing.agents.evograph_agent import EvographAgent
from kgqa.trace import Called, EditDecided
from tests.methods.evograph.hyper_corpus import FALSE, MISSING, QUESTIONS, VAGUE


@pytest.mark.parametrize("question", [MISSING, VAGUE, FALSE])
def test_a_second_pass_needs_fewer_calls(run, written, tmp_path, question):
    corpus, web = shutil.copytree(written[0], tmp_path / "corpus"), written[1]
    agent, settings = EvographAgent(QUESTIONS), {"evograph.web": f"replay:{web}", "evograph.commit": "auto"}
    first = run(agent, question=question, folder=corpus, **settings)
    assert [each.name for each in first.answer.answers] == [QUESTIONS[question].answer]
    assert [event.name for event in first.events(Called)] == ["graph_search", "web_search", QUESTIONS[question].kind]
    assert first.events(EditDecided)[-1].state == "committed", first.answer.notes
    assert first.answer.grounding == "model" and any("island.example" in note for note in first.answer.notes)
    second = run(agent, question=question, folder=corpus, **settings)
    assert [each.name for each in second.answer.answers] == [QUESTIONS[question].answer]
    assert [event.name for event in second.events(Called)] == ["graph_search"]
    assert second.answer.usage.calls == 2 < first.answer.usage.calls == 4
