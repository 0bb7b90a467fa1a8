"""Trials: which one is accepted, what goes on to the next, and which answer is given in the end."""

from __future__ import annotations

import random

import pytest

from kgqa.testing.agents.counselor_agent import CounselorAgent
from kgqa.testing.server import ScriptedServer
from kgqa.trace import ActionRead, AnswerVerified, Called

from .asking import CAMERON, COUNT, FILMS, PROGRAMS, run

RETRIEVE = "Retrieve[James Cameron]"
LINES = [RETRIEVE, CAMERON, f"Finish[{CAMERON}]"]
AS_PUBLISHED = {"ask__preset": "as-published", "counselor__retrieve": "names"}
WRONG = {"verify": "Wrong.\nJudgment: no"}


def test_trials_that_fail_at_rate_p_solve_all_but_p_to_the_third():
    p, seeds = 0.6, range(20)
    solved = 0
    for seed in seeds:
        chances = [random.Random(f"{seed} {COUNT} {attempt}").random() for attempt in range(3)]
        failing = next((number for number, chance in enumerate(chances) if chance >= p), 3)
        agent = CounselorAgent(PROGRAMS, noise=p, seed=seed)
        asked = run(COUNT, agent=agent, counselor__agents="merged")
        answer = asked.answer
        assert len(asked.events(AnswerVerified)) == min(failing, 2) + 1
        assert (str(answer) == "3" and answer.accepted and answer.query_class == "exact") == (failing < 3)
        solved += failing < 3
    assert abs(solved / len(seeds) - (1 - p**3)) < 0.15


def test_a_judge_that_always_says_no_costs_all_trials_but_not_the_answer():
    asked = run(agent=CounselorAgent(PROGRAMS, judge="no"), counselor__reflections=1)
    answer = asked.answer
    assert asked.turns.count("verify") == 2 and answer.status == "answered" and not answer.accepted
    assert answer.grounding == "graph" and any("said no" in note for note in answer.notes)
    asked = run(agent=CounselorAgent(PROGRAMS, judge="no"), counselor__reflections=0, ask__on_exhausted="none")
    assert asked.answer.status == "no_answer" and "said no" in asked.answer.reason


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


def test_the_judge_may_be_another_model():
    with ScriptedServer(["It is right. It was seen.\nJudgment: yes"]) as judge:
        asked = run(llm__stages={"verify": {"model": f"{judge.url}#judge"}})
        assert asked.answer.accepted and "verify" not in asked.turns and len(judge.requests) == 1


def test_budget_spent_anywhere():
    whole = run().answer
    for calls in (0, 1, 5, whole.usage.calls - 1):
        answer = run(budget__calls=calls).answer
        assert answer.status == "budget_exhausted" and answer.usage.calls <= calls
        assert not answer.answers or not answer.accepted
    assert answer.answers == whole.answers and any("not judged" in note for note in answer.notes)


def test_a_prompt_of_more_than_10000_tokens_ends_the_trial():
    replies = {"plan": "long " * 5000, "action": lambda prompt, step: f"Retrieve[{'long ' * 700}{step}]"}
    asked = run(f"{FILMS} {'x' * 3000}", replies=replies)
    assert max(len(prompt.system + prompt.user) for prompt in asked.prompts) // 4 < 10_000
    assert asked.answer.status == "no_answer" and "10,000 tokens" in asked.answer.reason


@pytest.mark.parametrize("text", ["I do not know", "[NaN]"])
def test_a_text_that_says_that_there_is_no_answer_is_none(text):
    asked = run(replies={"action": f"Finish[{text}]"}, counselor__reflections=0)
    assert asked.answer.status == "no_answer" and not asked.answer.answers and "verify" not in asked.turns
