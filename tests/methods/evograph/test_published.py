"""The published reading: other names of tools, targets by a part of their text, halved weights, no gates."""

from __future__ import annotations

import json
import shutil

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.testing.agents.evograph_agent import shown_results
from tests.methods.evograph.conftest import final

QUESTION = "When was the lighthouse of Tarn Harbour finished?"
LIGHT = "The lighthouse of Tarn Harbour was finished in 1830."


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written[0], tmp_path / "corpus")


@pytest.fixture
def published(run, folder):
    return lambda *replies, **more: run(*replies, question=QUESTION, folder=folder, ask__preset="as-published", **more)


def tool(name, **arguments):
    return f"<think>x</think><tool_call>{json.dumps({'tool': name, 'args': arguments})}</tool_call>"


SEARCH = tool("kb_search", query="lighthouse of Tarn Harbour")


def test_a_deleted_fact_stays_findable_and_comes_last_until_it_is_updated(published, folder):
    part = "lighthouse of Tarn Harbour was finished"
    replies = (SEARCH, tool("delete", content=part), tool("kb_search", query="Tarn Harbour"), final("1830"))
    asked = published(*replies)
    assert any(note.startswith("As published, except that the trained weights") for note in asked.answer.notes)
    assert (
        '"kb_search"' in asked.requests[0].messages[0]["content"]
        and '"sources"' not in asked.requests[0].messages[0]["content"]
    )
    assert asked.events("edit_decided")[-1].state == "committed"
    with Corpus.open(folder) as corpus:
        (record,) = [each for each in corpus.reader.hyperedges() if each.segment == LIGHT]
        assert record.completeness == 0.5
    update = tool("update", content=LIGHT, new_content="The lighthouse burnt.")
    asked = published(SEARCH, update, final("x"))
    assert LIGHT in [each["text"] for each in shown_results(asked.requests[1].messages)]
    with Corpus.open(folder) as corpus:
        texts = {each.segment for each in corpus.reader.hyperedges()}
        assert "The lighthouse burnt." in texts and LIGHT not in texts


@pytest.mark.parametrize("target", ["lighthouse", "no such text anywhere in it", LIGHT * 3])
def test_a_short_or_small_part_names_no_target(published, target):
    asked = published(tool("delete", content=target), final("x"))
    assert "Failed" in asked.requests[-1].messages[-1]["content"]
    assert [event.state for event in asked.events("edit_decided")] == ["rejected"]


def test_a_rollout_has_ten_calls_and_4096_tokens(published):
    asked = published(lambda messages: SEARCH)
    assert len(asked.requests) == 11 and "You have 11 replies" in asked.requests[0].messages[0]["content"]
    assert asked.answer.status == "no_answer"
    assert {request.body["max_tokens"] for request in asked.requests} == {4096}
    long = SEARCH.replace("<think>x", f"<think>{'word ' * 1000}")
    asked = published(lambda messages: long)
    assert len(asked.requests) == 3


def test_edits_need_no_source_and_calls_may_repeat_and_no_answer_is_forced(published):
    asked = published(tool("insert", content="Anything."), SEARCH, SEARCH, evograph__turns=3)
    assert [event.failed for event in asked.events("called")] == [False] * 3
    assert asked.answer.status == "no_answer" and asked.answer.usage.calls == 3
    assert not any("No tool can be called" in each["content"] for each in asked.requests[-1].messages)
