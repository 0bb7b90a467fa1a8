"""The oracle with remembered answers: it gives them if a prompt allows, and is truthful about paths."""

from __future__ import annotations

import pytest

from kgqa.llm.prompts import Prompts
from kgqa.testing.memory_oracle import MemoryOracle
from kgqa.testing.model_oracle import ModelOracle
from tests.testing.test_model_oracle import RIGHT, TABLE, messages

PROMPTS = Prompts()
REAL = ["Kyoto"]
MEMORY = dict.fromkeys(TABLE, REAL)
ANSWERING = {"direct/io", "direct/cot", "top/answer", "tog/answer", "tog/sufficient"}


@pytest.mark.parametrize("name", sorted(set(RIGHT)))
def test_remembers_only_in_prompts_for_answers(name):
    said = MemoryOracle(TABLE, memory=MEMORY)(messages(name))
    truthful = ModelOracle(TABLE)(messages(name))
    assert ("Kyoto" in said) == (name in ANSWERING)
    if name not in ANSWERING:
        assert said == truthful


def test_unknown_answers_are_read_from_the_prompt():
    for name in RIGHT:
        assert MemoryOracle(TABLE)(messages(name)) == ModelOracle(TABLE)(messages(name))
