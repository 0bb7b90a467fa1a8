"""Edits of a session: what is accepted, what a gate rejects and what the model is told, and what is committed."""

from __future__ import annotations

import json
import shutil

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.proposals import GatedEdit, ProposalFile, ProposedEdit
from kgqa.methods.evograph.tools import NO_CHANGE
from tests.methods.evograph.conftest import call, final
from tests.methods.evograph.hyper_corpus import MISSING, PAGES

DIED = "Mara Holt died in Oster Quay in 1930."
WEB = call("web_search", query="Mara Holt died")


@pytest.fixture
def edited(run, written, tmp_path):
    """`edited(*replies, **settings) -> (Asked, folder)`, with the recorded web, on a copy of the corpus."""

    def edited(*replies, **settings):
        folder = shutil.copytree(written[0], tmp_path / "corpus")
        settings = {"evograph.web": f"replay:{written[1]}", "evograph.commit": "proposed"} | settings
        return run(*replies, question=MISSING, folder=folder, **settings), folder

    return edited


def test_by_default_edits_wait_for_a_review_with_their_sources(edited):
    asked, folder = edited(WEB, call("insert", content=DIED, sources=[1]), final("Oster Quay [1]"))
    (proposed,) = ProposalFile(folder).records()
    assert isinstance(proposed, ProposedEdit) and proposed.quotes == (PAGES["https://island.example/holt"],)
    assert proposed.edit.session.startswith("ask:")
    assert [(each.iri, each.trust) for each in proposed.edit.sources] == [("https://island.example/holt", "web")]
    assert [each.state for each in asked.events("edit_decided")] == ["overlay", "proposed"]
    with Corpus.open(folder) as corpus:
        assert DIED not in {record.segment for record in corpus.reader.hyperedges()}


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (call("insert", content=DIED, sources=[7]), "sources"),
        (call("insert", content="Mara Holt built the first tide clock.", sources=[2]), "duplicate"),
        (call("delete", target=2, reason="It is wrong."), "sources"),
    ],
)
def test_a_gate_rejects_and_the_model_is_told_why(edited, reply, rule):
    search = call("graph_search", query="Mara Holt built the first tide clock")
    asked, folder = edited(WEB, search, reply, final("Oster Quay [1]"))
    (decided,) = asked.events("edit_decided")
    assert (
        decided.rule == rule
        and decided.state == "rejected"
        and "Not done." in asked.requests[-1].messages[-1]["content"]
    )
    assert len(asked.events("edit_proposed")) == 1
    (kept,) = ProposalFile(folder).records()
    assert isinstance(kept, GatedEdit) and kept.rule == rule


def test_what_is_no_hyperedge_or_was_not_shown_cannot_be_changed(edited):
    replies = [
        call("update", target=target, new_content=DIED, sources=[1]) for target in (1, 99, "Mara Holt built a ship")
    ]
    search = call("graph_search", query="Mara Holt built the first tide clock")
    asked, _ = edited(WEB, search, *replies, final("Oster Quay [1]"))
    told = [each["content"] for each in asked.requests[-1].messages if each["role"] == "user"][3:]
    assert f"Result 1 is a passage of the web; {NO_CHANGE}" in told[0]
    assert "No such result was shown" in told[1]
    assert "The nearest: " in told[2] and "tide clock" in told[2]
    assert not asked.events("edit_proposed")


def test_an_edit_is_seen_by_later_searches_of_the_question_and_can_be_edited_again(edited):
    insert = call("insert", content="Mara Holt died in Oster Quay.", sources=[1])
    update = call("update", target=2, new_content=DIED, sources=[1])
    asked, folder = edited(WEB, insert, update, call("graph_search", query="died 1930"), final("Oster Quay [3]"))
    assert "Found again: 3" in asked.requests[-1].messages[-1]["content"]
    assert asked.answer.grounding == "model" and any("island.example" in note for note in asked.answer.notes)
    assert [each.edit.kind for each in ProposalFile(folder).records()] == ["insert", "update"]


@pytest.mark.parametrize("is_read", [True, False])
def test_participants_by_the_model_take_one_call_for_all_edits(edited, is_read):
    rows = [
        {"sentence": 1, "name": "Mara Holt", "type": "person", "role": "deceased"},
        {"sentence": 1, "name": "Oster Quay", "type": "town", "role": "place"},
        {"sentence": 1, "name": "Atlantis", "type": "town", "role": "place"},
    ]
    replies = [WEB, call("insert", content=DIED, sources=[1]), final("Oster Quay [1]")]
    listed = json.dumps({"participants": rows}) if is_read else "no list"
    asked, folder = edited(*replies, listed, **{"ask.preset": "extract", "evograph.commit": "auto", "llm.reask": 0})
    assert asked.answer.usage.calls == 4 and asked.events("edit_decided")[-1].state == "committed"
    with Corpus.open(folder) as corpus:
        (record,) = [each for each in corpus.reader.hyperedges() if each.segment == DIED]
        names = {entity.iri: entity.name for entity in corpus.reader.entities()}
    # names that are found in the text remain if the list cannot be read
    roles = {"Mara Holt": "deceased", "Oster Quay": "place"} if is_read else {"Mara Holt": "", "Oster Quay": ""}
    assert {names[iri]: role for role, iri in record.participants} == roles
