"""What prompts tell about the graph, and that all prompts of a question begin alike."""

from __future__ import annotations

from itertools import pairwise

from kgqa.evaluation.datasets.grbench.conversion import convert
from kgqa.methods.counselor.counsel import definition_lines
from kgqa.methods.counselor.names import HopNames
from kgqa.testing.grbench.mini import write_mini_grbench
from tests.memory_graph import memory_graph

from .asking import demo_graph, run

DECLARED = {
    "author": {"name", "organization", "paper (paper)"},
    "paper": {"abstract", "keywords", "lang", "title", "year"}
    | {"author (author)", "cited_by (paper)", "reference (paper)", "venue (venue)"},
}


def test_types_with_their_relations(tmp_path):
    academic = next(place for place in write_mini_grbench(tmp_path, per_template=1) if place.name == "academic")
    convert(academic, tmp_path / "academic.nt")
    graph = memory_graph((tmp_path / "academic.nt").read_text().splitlines(), schema="grbench")
    parts = (line.partition(": ") for line in definition_lines(graph, HopNames(graph)))
    lines = {name: set(rest.split(", ")) for name, _, rest in parts}
    assert list(lines) == ["author", "paper", "venue"]
    assert {name: lines[name] for name in DECLARED} == DECLARED
    assert "name" in lines["venue"]  # a feature of several types


def test_the_nearest_relations_of_a_node_in_a_graph_with_many():
    graph = demo_graph()
    assert definition_lines(graph, HopNames(graph)) == ()
    asked = run()
    told = "Relations of James Cameron nearest to the question: film (as director); "
    assert [prompt.user.count(told) for prompt in asked.shown("action")] == [0, 1, 1]


def test_prompts_of_a_question_begin_alike():
    asked = run(replies={"verify": ["Wrong.\nJudgment: no", "Right.\nJudgment: yes"]})
    assert len({prompt.system for prompt in asked.prompts}) == 1
    first = asked.prompts[: asked.turns.index("reflect") + 1]
    for before, after in pairwise(first):
        end = "\n```\n\n" if "Steps so far" in before.user else "\n\nWrite"
        assert after.user.startswith(before.user.partition(end)[0])
