"""The environment that an export hands to TRL: its tools have the form that trainers make JSON schemas of."""

from __future__ import annotations

import inspect
import json

import pytest

from kgqa.report.trajectories.trl import environments


@pytest.fixture(scope="module")
def environment_class(corpus_folder):
    return environments(corpus_folder, rank_embeddings="off")


def tools(environment):
    """Return the tools as GRPOTrainer finds them: the public methods of the class but for `reset`."""
    methods = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    return {name for name, _ in methods if not name.startswith("_") and name not in ("reset", "get_reward")}


def test_every_tool_has_types_and_a_description_of_each_argument(environment_class):
    environment = environment_class()
    assert tools(environment) == {"graph_search", "insert", "update", "delete"}
    for name in tools(environment):
        method = vars(type(environment))[name]
        parameters = [each for each in inspect.signature(method).parameters if each != "self"]
        assert sorted(method.__annotations__) == sorted([*parameters, "return"])
        described = inspect.getdoc(method).partition("Args:")[2].partition("Returns:")[0]
        assert all(f"{each}:" in described for each in parameters)


def test_a_row_of_the_export_resets_and_edits_stay_in_their_environment(environment_class):
    first, second = environment_class(), environment_class()
    row = {"prompt": [{"role": "user", "content": "x"}], "question": "Who?", "question_id": "q", "gold": ["x"]}
    for environment in (first, second):
        assert environment.reset(**row) is None
    results = [json.loads(line) for line in first.graph_search("lighthouse").splitlines() if line.startswith("{")]
    assert results and results[0]["number"] == 1
    fact = results[0]["text"].split(". ")[0][:300]
    assert first.insert("Nobody says this in a result.", [99])  # told, not raised
    first.insert(fact, [1])
    counts = [sum(type(event).__name__ == "EditProposed" for event in each.trace.events()) for each in (first, second)]
    assert counts[0] > 0 and counts[1] == 0
