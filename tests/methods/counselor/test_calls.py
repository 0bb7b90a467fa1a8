"""The number of calls in every branch, against the formula in docs/graph-counselor.md."""

from __future__ import annotations

import pytest

from kgqa.trace import AnswerVerified, Finished

from .asking import CAMERON, run

RETRIEVE = "Retrieve[James Cameron]"
PUBLISHED = {"ask__preset": "as-published", "counselor__retrieve": "names"}
SETTINGS = {
    "separate": ({}, 3),
    "merged": ({"counselor__agents": "merged"}, 1),
    "without plan": ({"counselor__plan": "off"}, 2),
    "as published": (PUBLISHED, 3),
}


def merged(action):
    return lambda prompt, step: f'{{"plan": "p", "need": "n", "actions": "{action(prompt, step)}"}}'


def late(steps):
    """New calls, and the answer in the last step."""
    last = [CAMERON, f"Finish[{CAMERON}]"]
    return lambda prompt, step: last[step - steps + 1] if step > steps - 2 else f"Retrieve[Film number {step}]"


@pytest.mark.parametrize("branch", SETTINGS)
@pytest.mark.parametrize("reflections", [0, 2])
def test_worst_case(branch, reflections):
    settings, turns = SETTINGS[branch]
    settings = {**settings, "counselor__reflections": reflections, "counselor__steps": 3}
    verdict = {"verify": "It is not.\n[No]" if "published" in branch else "It is not.\nJudgment: no"}
    asked = run(replies={"action": late(3), "merged": merged(late(3)), **verdict}, **settings)
    trials = reflections + 1
    assert len(asked.turns) == asked.answer.usage.calls == turns * 3 * trials + trials + reflections
    assert asked.turns.count("verify") == trials and asked.turns.count("reflect") == reflections
    assert asked.answer.status == "answered" and not asked.answer.accepted
    # without an answer there is nothing to judge
    asked = run(replies={"action": late(9), "merged": merged(late(9))}, **settings)
    assert len(asked.turns) == turns * 3 * trials + reflections
    assert asked.answer.status == "no_answer" and "after 3 steps" in asked.answer.reason


def test_the_defaults_need_at_most_95_calls_and_economy_15():
    rejected = {"verify": "Wrong.\nJudgment: no"}
    assert len(run(replies={"action": late(10), **rejected}).turns) == 95
    assert len(run(replies={"merged": merged(late(6)), **rejected}, ask__preset="economy").turns) == 15


def test_a_plan_that_finishes_ends_the_trial_without_further_prompts():
    def plan(prompt, step):
        return f"Plan 2: Finish[{CAMERON}]" if step == 2 else "Find him. Then Finish[the list]."

    asked = run(replies={"plan": plan, "action": CAMERON, "verify": "Right.\nJudgment: yes"})
    assert asked.turns == ["plan", "need", "action", "plan", "verify"]
    assert asked.answer.accepted and asked.answer.query_class == "exact"
    assert [event.step for event in asked.events(Finished)] == [2]
    assert run(replies={"plan": plan, "verify": "[Yes]"}, **PUBLISHED).turns[:6] == ["plan", "need", "action"] * 2


def test_an_answer_that_was_not_seen_is_refused_for_free():
    asked = run(replies={"action": "Finish[The Phantom Film]"})
    assert "verify" not in asked.turns and len(asked.turns) == 3 * 3 + 2
    assert [event.asked for event in asked.events(AnswerVerified)] == [False] * 3
    assert "The Phantom Film" in asked.shown("reflect")[0].user
    assert asked.answer.grounding == "model" and not asked.answer.accepted
    # yes, no and numbers follow from what was seen without being seen
    for text, judged in (("yes", True), ("about 12 years", True), ("Apollo 11", False)):
        replies = {"action": f"Finish[{text}]", "verify": "Right.\nJudgment: yes"}
        assert ("verify" in run(replies=replies, counselor__reflections=0).turns) == judged


@pytest.mark.parametrize("kind", ["perspectives", "short", "plain", "last-trial"])
def test_kinds_of_reflection(kind):
    replies = {"action": [RETRIEVE, "Finish[Nobody Known]"], "reflect": "Use another relation."}
    asked = run(replies=replies, counselor__reflect=kind, counselor__reflections=1)
    assert asked.turns.count("reflect") == (0 if kind == "last-trial" else 1)
    second = asked.prompts[-1].user.rpartition("\nQuestion: ")[0]
    assert ("Seen 1: " if kind == "last-trial" else "Use another relation.") in second
