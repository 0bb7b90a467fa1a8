"""Graph Counselor under faulty calls and replies without sense: nothing that was not read is accepted."""

from __future__ import annotations

import itertools
import json
from typing import get_args

import pytest

from kgqa.model import Status
from kgqa.storage.answer_json import answer_object, json_text
from kgqa.testing import faults
from kgqa.trace import AnswerVerified

from .asking import run

GARBAGE = (
    "I am not sure.",
    "yes",
    "Finish",
    "Finish[",
    "[" * 1000,
    "Neighbour[" * 50 + "]" * 50,
    "Retrieve[];Neighbour[,],Degree[]",
    "Finish[Neighbour[Finish[x], Retrieve[y]]]",
    "Seen 1: Retrieve[x]: y",
    '{"plan": 7, "need": ["a"], "actions": {"Finish": 1}}',
    "null",
    "<think>Finish[Aliens]</think>",
    "\x00\x1b[31m\ud800",
    "Judgment: yes or no",
)
FAULTS = (
    faults.server_error(),
    faults.dropped(),
    faults.half_json(),
    faults.cut_off(),
    faults.refusal(),
    faults.empty(),
)
SETTINGS = (
    {"counselor__agents": "separate"},
    {"counselor__agents": "merged"},
    {"ask__preset": "as-published", "counselor__retrieve": "names"},
)


def checked(asked):
    """Return an answer after checks that hold in every run."""
    answer = asked.answer
    assert answer.status in get_args(Status)
    assert answer.answers or (answer.status != "answered" and answer.reason)
    assert json.loads(json_text(answer_object(answer, trace=True)))
    judged = asked.events(AnswerVerified)
    assert answer.accepted == (not answer.answers or (bool(judged) and judged[-1].verdict == "yes"))
    return answer


@pytest.mark.parametrize("settings", SETTINGS)
def test_replies_without_sense(settings):
    few = {**settings, "counselor__steps": 5, "counselor__reflections": 1}
    for begin in range(0, len(GARBAGE), 4):
        kinds = itertools.cycle(GARBAGE[begin:] + GARBAGE[:begin])
        turns = dict.fromkeys(
            ("plan", "need", "action", "merged", "verify", "reflect"), lambda prompt, step, kinds=kinds: next(kinds)
        )
        answer = checked(run(replies=turns, **few))
        assert answer.grounding != "graph"
        assert "ask__preset" in few or not answer.answers or not answer.accepted


@pytest.mark.parametrize("fault", FAULTS)
def test_only_faults(fault):
    asked = run(agent=lambda messages: fault, llm__retries=0, counselor__steps=2, counselor__reflections=1)
    assert asked.answer.status in ("failed", "no_answer") and asked.answer.reason
