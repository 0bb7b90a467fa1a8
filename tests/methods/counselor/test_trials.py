"""Trials: how many calls they need, which one is accepted, what goes on to the next, and which answer is given."""

from __future__ import annotations

import itertools
import json

import pytest

from kgqa.storage.answer_json import answer_object, json_text
from kgqa.testing.agents.counselor_agent import CounselorAgent
from kgqa.trace import ActionRead, AnswerVerified, Called, Finished

from .asking import CAMERON, FILMS, PROGRAMS, run

RETRIEVE = "Retrieve[James Cameron]"
LINES = [RETRIEVE, CAMERON, f"Finish[{CAMERON}]"]
AS_PUBLISHED = {"ask__preset": "as-published", "counselor__retrieve": "names"}
WRONG = {"verify": "Wrong.\nJudgment: no"}


SETTINGS = {
    "separate": ({}, 3),
    "merged": ({"counselor__agents": "merged"}, 1),
    "without plan": ({"counselor__plan": "off"}, 2),
    "as published": (AS_PUBLISHED, 3),
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
    assert run(replies={"plan": plan, "verify": "[Yes]"}, **AS_PUBLISHED).turns[:6] == ["plan", "need", "action"] * 2


def test_an_answer_that_was_not_seen_is_refused_for_free():
    asked = run(replies={"action": "Finish[The Phantom Film]"})
    assert "verify" not in asked.turns and len(asked.turns) == 3 * 3 + 2
    assert [event.asked for event in asked.events(AnswerVerified)] == [False] * 3
    assert "The Phantom Film" in asked.shown("reflect")[0].user
    assert asked.answer.grounding == "model" and not asked.answer.accepted


TEXTS = {"yes": True, "about 12 years": True, "Apollo 11": False, "N/A": False, "[NaN]": False, "I do not know": False}


@pytest.mark.parametrize("text", TEXTS)
def test_what_follows_is_judged_and_what_says_nothing_is_no_answer(text):
    asked = run(replies={"action": f"Finish[{text}]", **WRONG}, counselor__reflections=0)
    assert ("verify" in asked.turns) == TEXTS[text]
    assert (asked.answer.status == "answered") == (TEXTS[text] or text == "Apollo 11")


@pytest.mark.parametrize("kind", ["perspectives", "short", "plain", "last-trial"])
def test_kinds_of_reflection(kind):
    replies = {"action": [RETRIEVE, "Finish[Nobody Known]"], "reflect": "Use another relation."}
    asked = run(replies=replies, counselor__reflect=kind, counselor__reflections=1)
    assert asked.turns.count("reflect") == (0 if kind == "last-trial" else 1)
    second = asked.prompts[-1].user.rpartition("\nQuestion: ")[0]
    assert ("Seen 1: " if kind == "last-trial" else "Use another relation.") in second


def test_an_unreadable_verdict_is_yes_only_as_published():
    asked = run(agent=CounselorAgent(PROGRAMS, judge="unreadable"), counselor__reflections=0)
    assert asked.turns.count("verify") == 2  # asked again
    assert [event.verdict for event in asked.events(AnswerVerified)] == ["unparsed"] and not asked.answer.accepted
    assert any("could not be read" in note for note in asked.answer.notes)
    asked = run(agent=CounselorAgent(PROGRAMS, judge="unreadable"), **AS_PUBLISHED)
    assert asked.turns.count("verify") == 1 and asked.answer.accepted


def test_the_last_grounded_answer_is_given_if_none_is_accepted_as_published_the_last_one():
    lines = [*LINES, "Finish[A Film That Nobody Saw]"]
    asked = run(replies={"action": lines, **WRONG}, counselor__reflections=1)
    assert "Titanic" in str(asked.answer) and asked.answer.grounding == "graph" and not asked.answer.accepted
    lines = [*LINES, "Retrieve[Alien]"]
    settings = {**AS_PUBLISHED, "counselor__steps": 3, "counselor__reflections": 1}
    assert run(replies={"action": lines, "verify": "Wrong.\n[No]"}, **settings).answer.status == "no_answer"


def test_only_the_reflection_and_the_facts_go_on():
    replies = {"plan": "A plan of the first trial.", "reflect": "Strategy: all of them."}
    replies["action"] = [RETRIEVE, CAMERON, "Finish[Titanic]", f"Finish[{CAMERON}]"]
    replies["verify"] = ["There are more.\nJudgment: no", "Right.\nJudgment: yes"]
    asked = run(replies=replies, counselor__reflections=1)
    second = asked.shown("plan")[3].user
    assert "Strategy: all of them." in second and f"{CAMERON}: 3 values" in second
    assert "A plan of the first trial." not in second and "There are more." in asked.shown("reflect")[0].user
    assert asked.answer.accepted  # what was seen in an earlier trial was seen
    published = run(replies=replies | {"verify": "There are more.\n[No]"}, **AS_PUBLISHED)
    assert "3 values" not in published.shown("plan")[3].user


def test_an_unreadable_action_is_asked_again_and_then_the_step_is_lost():
    garbage = "I would look at the films."
    asked = run(replies={"action": [garbage, *LINES]})
    assert asked.turns.count("action") == 4 and asked.answer.accepted
    asked = run(replies={"action": [garbage, garbage, *LINES]})
    assert asked.answer.accepted and "The action could not be read. It has no call" in asked.shown("plan")[1].user
    lost = asked.events(ActionRead)[0]
    assert lost.problem and lost.reply == garbage and not lost.actions


def test_finish_beside_other_calls_waits_for_what_they_return_except_in_the_last_step():
    asked = run(replies={"action": [f"{RETRIEVE}, {CAMERON}, Finish[Titanic]", f"Finish[{CAMERON}]"]})
    assert "Finish was ignored" in asked.shown("plan")[1].user and "Titanic" in str(asked.answer)
    asked = run(replies={"action": f"{RETRIEVE}, Finish[James Cameron]"}, counselor__steps=1, counselor__reflections=0)
    assert str(asked.answer) == "James Cameron"


def test_a_call_inside_or_beside_a_call_is_refused_without_composition():
    nested = "Neighbour[Retrieve[James Cameron], film (as director)]"
    asked = run(replies={"action": [nested, nested, *LINES]}, counselor__compose="off")
    assert "nested more than 1 deep" in asked.shown("plan")[1].user and asked.answer.accepted
    asked = run(replies={"action": [f"{RETRIEVE}, {CAMERON}", f"Finish[{CAMERON}]"]}, counselor__compose="off")
    assert CAMERON not in [each for event in asked.events(ActionRead) for each in event.actions]


def test_parallel_calls_run_in_order_and_repeated_calls_do_not():
    asked = run(replies={"action": f"{RETRIEVE}, {CAMERON}, {RETRIEVE}"}, counselor__reflections=0)
    assert [event.name for event in asked.events(Called)] == ["Retrieve", "Neighbour"]
    assert "you made this call before; see Seen 1" in asked.shown("plan")[2].user
    assert len(asked.turns) == 9 and "three times" in asked.answer.reason


@pytest.mark.parametrize("calls", [1, 9])
def test_a_budget_that_is_spent_leaves_the_grounded_answer(calls):
    answer = run(budget__calls=calls).answer
    assert answer.status == "budget_exhausted" and answer.usage.calls <= calls
    assert bool(answer.answers) == any("not judged" in note for note in answer.notes) == (calls == 9)


def test_a_prompt_of_more_than_10000_tokens_ends_the_trial():
    replies = {"plan": "long " * 5000, "action": lambda prompt, step: f"Retrieve[{'long ' * 700}{step}]"}
    asked = run(f"{FILMS} {'x' * 3000}", replies=replies)
    assert max(len(prompt.system + prompt.user) for prompt in asked.prompts) // 4 < 10_000
    assert asked.answer.status == "no_answer" and "10,000 tokens" in asked.answer.reason


def test_replies_without_sense():
    garbage = (
        "I am not sure.",
        "Finish[",
        "Neighbour[" * 50 + "]" * 50,
        "Retrieve[];Neighbour[,],Degree[]",
        "Finish[Neighbour[Finish[x], Retrieve[y]]]",
        '{"plan": 7, "need": ["a"], "actions": {"Finish": 1}}',
        "\x00\x1b[31m\ud800",
    )
    for settings, _ in SETTINGS.values():
        kinds = itertools.cycle(garbage)
        turns = ("plan", "need", "action", "merged", "verify", "reflect")
        replies = dict.fromkeys(turns, lambda prompt, step, kinds=kinds: next(kinds))
        asked = run(replies=replies, **settings, counselor__steps=5, counselor__reflections=1)
        assert asked.answer.grounding != "graph" and (asked.answer.answers or asked.answer.reason)
        assert json.loads(json_text(answer_object(asked.answer, trace=True)))
        assert settings == AS_PUBLISHED or not asked.answer.answers or not asked.answer.accepted
