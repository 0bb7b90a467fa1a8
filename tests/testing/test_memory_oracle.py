"""The oracle with remembered answers: it gives them if a prompt allows, and is truthful about paths."""

from __future__ import annotations

import pytest

from kgqa.llm.prompts import Prompts
from kgqa.testing.memory_oracle import MemoryOracle
from kgqa.testing.model_oracle import ModelOracle
from tests.testing.test_model_oracle import CORRECT_REPLIES, TABLE, messages

PROMPTS = Prompts()
TRUE_ANSWERS = ["Kyoto"]
MEMORY = dict.fromkeys(TABLE, TRUE_ANSWERS)
ANSWER_PROMPTS = {
    *("direct/io", "direct/cot", "top/answer"),
    *("tog/answer", "tog/sufficient", "tog/robust_answer", "tog/robust_sufficient"),
}


@pytest.mark.parametrize("name", sorted(set(CORRECT_REPLIES)))
def test_remembers_only_in_prompts_for_answers(name):
    reply_text = MemoryOracle(TABLE, memory=MEMORY)(messages(name))
    truthful = ModelOracle(TABLE)(messages(name))
    assert ("Kyoto" in reply_text) == (name in ANSWER_PROMPTS)
    if name not in ANSWER_PROMPTS:
        assert reply_text == truthful


def test_unknown_answers_are_read_from_the_prompt():
    for name in CORRECT_REPLIES:
        assert MemoryOracle(TABLE)(messages(name)) == ModelOracle(TABLE)(messages(name))
