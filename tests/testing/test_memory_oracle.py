"""The oracle that knows the real answers: it gives them where a prompt lets it, and is truthful about paths."""

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
def test_it_remembers_only_where_it_is_asked_for_answers(name):
    said = MemoryOracle(TABLE, memory=MEMORY)(messages(name))
    truthful = ModelOracle(TABLE)(messages(name))
    assert ("Kyoto" in said) == (name in ANSWERING)
    if name not in ANSWERING:
        assert said == truthful


def test_what_it_does_not_remember_it_reads():
    for name in RIGHT:
        assert MemoryOracle(TABLE)(messages(name)) == ModelOracle(TABLE)(messages(name))
