"""Trajectories are built from events alone."""

from __future__ import annotations

import pytest

from kgqa.evaluation.metrics.rewards import reward
from kgqa.report.trajectories.trajectory import trajectory_of
from kgqa.trace import ActionRead, Finished, Seen
from tests.methods.counselor.asking import CAMERON, run
from tests.report.trajectories.traces import concluded, edited, planned, record, searched


def test_turns_replies_observations_and_edits():
    found = trajectory_of(
        record(
            "q",
            [*searched(1, "x", "found"), *edited(2), *concluded(3, "Ada Lovelace")],
            support=(("urn:a",), ("urn:b",)),
        )
    )
    assert found is not None
    assert [turn.observation for turn in found.turns] == ["found", "1 edit accepted, 1 rejected.", ""]
    assert found.turns[0].reply.startswith("<think>") and found.turns[0].calls == ('graph_search({"query": "x"})',)
    assert [(edit.kind, edit.rule, edit.state) for edit in found.edits] == [
        ("insert", "", "overlay"),
        ("insert", "url", "rejected"),
    ]
    assert found.gold == ("Ada Lovelace", "Countess of Lovelace") and found.answers == ("Ada Lovelace",)
    assert found.retrieval == 0.5  # one of two supporting passages was shown
    assert (found.episode.accepted, found.episode.rejected) == (1, 1)
    assert reward(found.episode, found.gold).total == 1.0


def test_a_method_that_plans_and_reflects():
    events = [
        *planned(1, "RetrieveNode[x], NodeFeature[x, year]"),
        *planned(2, "Finish[Grace]", finish="Grace"),
        *planned(1, "RetrieveNode[y]", trial=1),
        *planned(2, "Finish[Ada Lovelace]", trial=1, finish="Ada Lovelace"),
    ]
    found = trajectory_of(record("q", events, method="counselor"))
    assert found is not None
    assert [(turn.trial, turn.step) for turn in found.turns] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert found.turns[0].thought == "Look up the node.\nThe year is missing."
    assert [turn.form.acts for turn in found.last_trial] == [True, False]
    assert reward(found.episode, found.gold, form="strict").total == 1.0


def test_trajectories_of_graph_counselor():
    """A right program: two steps of one line of calls, then the answer, which is a call."""
    found = trajectory_of(record("q", run().answer.trace, method="counselor"))
    assert found is not None and [turn.form.acts for turn in found.turns] == [True, True, False]
    assert found.turns[0].thought and found.turns[0].calls == ("Retrieve(James Cameron)",)
    assert found.turns[-1].form.concludes and "Avatar" in found.turns[-1].form.answer
    assert reward(found.episode, ["Aliens; Avatar; Titanic"], form="strict").total == 1.0


def test_a_plan_that_finishes_keeps_the_reward():
    def plan(prompt, step):
        return f"Finish[{CAMERON}]" if step == 3 else "Look up his films."

    asked = run(replies={"plan": plan, "verify": "Right.\nJudgment: yes"})
    found = trajectory_of(record("q", asked.answer.trace, method="counselor"))
    assert [turn.reply[:6] for turn in found.turns][-1] == "Finish" and len(found.turns) == 3
    assert reward(found.episode, ["Aliens; Avatar; Titanic"], form="strict").total == 1.0


def test_the_task_of_graph_counselor_is_the_prompt_for_actions_of_the_last_trial():
    asked = run(replies={"verify": ["Wrong.\nJudgment: no", "Right.\nJudgment: yes"], "reflect": "Try again."})
    found = trajectory_of(record("q", asked.answer.trace, method="counselor"))
    assert found.system == asked.prompts[0].system
    assert "Try again." in found.user and "Write Action 1" in found.user


@pytest.mark.parametrize("reply", ["Let me see.", "<think>a<tool_call>", ""])
def test_a_reply_of_which_nothing_could_be_read_is_a_bad_turn(reply):
    lost = [ActionRead(reply=reply, problem="It has no call.", step=2), Seen(text="Write one call.", step=2)]
    found = trajectory_of(record("q", [*searched(1, "x", "y"), *lost, *concluded(3, "Ada Lovelace")]))
    assert found is not None and found.turns[1].problem == "It has no call."
    assert not found.turns[1].form.acts
    assert reward(found.episode, found.gold).total == 1.0
    assert reward(found.episode, found.gold, form="strict").total == -0.5


def test_an_answer_that_the_model_did_not_write_gains_nothing():
    """When the budget is spent, a method may answer from what it has found."""
    forced = Finished(text="Ada Lovelace", answers=("Ada Lovelace",), grounded=True, step=1)
    found = trajectory_of(record("q", [*searched(1, "x", "y"), forced]))
    assert found is not None
    assert reward(found.episode, found.gold).total == -0.5


def test_a_method_without_turns_has_no_trajectory():
    assert trajectory_of(record("q", [Seen(text="x")])) is None
