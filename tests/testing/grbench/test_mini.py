"""The generated GRBench: questions, answers and programs."""

from __future__ import annotations

import json

import pytest

from kgqa.evaluation.datasets.registry import dataset_questions
from kgqa.llm.replies.action_lines import read_action_line
from kgqa.testing.grbench.json_graph import JsonGraph
from kgqa.testing.grbench.mini import DOMAINS, PER_TEMPLATE, write_mini_grbench


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_mini_grbench(tmp_path_factory.mktemp("grbench"))


def test_questions_of_each_template_have_one_kind(folders):
    texts = []
    for folder in folders:
        questions = dataset_questions(f"grbench:{folder / 'questions.jsonl'}")
        kinds = [question.kind for question in questions]
        templates = len(DOMAINS[folder.name].TEMPLATES)
        assert kinds == [str(number) for number in range(templates) for _ in range(PER_TEMPLATE)]
        assert all(question.answers for question in questions)
        texts += [question.text for question in questions]
    assert len(set(texts)) == len(texts) == 600


def test_programs_are_lines_of_calls(folders):
    functions = set()

    def names(call):
        functions.add(call.name)
        for argument in call.arguments:
            if not isinstance(argument, str):
                names(argument)

    for folder in folders:
        for line in (folder / "questions.jsonl").read_text().splitlines():
            row = json.loads(line)
            for action in row["program"]:
                reading = read_action_line(action)
                assert not reading.problem and reading.value, action
                for call in reading.value:
                    names(call)
            assert row["program"][-1].startswith("Finish[")
    assert functions == {
        "Retrieve", "Neighbour", "Feature", "Degree", "Intersect", "Without", "Count", "Most", "Finish"
    }  # fmt: skip


def test_graphs_have_the_quirks_of_the_published_ones(folders):
    """Ids of no node, repeated ids, edges at one end, and genes that regulate a gene which does not list them."""
    for folder in folders:
        module = DOMAINS[folder.name]
        data = json.loads((folder / "graph.json").read_text())
        graph = JsonGraph(data, module.PAIRS)
        lists = [
            (graph.types[ident], ident, link, ids)
            for nodes in data.values()
            for ident, node in nodes.items()
            for link, ids in node["neighbors"].items()
        ]
        assert any(len(set(ids)) < len(ids) for *_, ids in lists) or folder.name == "commerce"
        assert any(each not in graph.types for *_, ids in lists for each in ids) or folder.name == "healthcare"
        one_sided = any(set(graph.neighbours(ident, link)) - set(ids) for _, ident, link, ids in lists)
        assert one_sided or folder.name == "healthcare"
    genes = graph_of(folders, "healthcare").of_type("Gene")
    regulates = graph_of(folders, "healthcare").neighbours
    edges = {(gene, other) for gene in genes for other in regulates(gene, "Gene-regulates-Gene")}
    back = {(other, gene) for gene, other in edges}
    assert edges & back and edges - back


def graph_of(folders, name):
    folder = next(each for each in folders if each.name == name)
    return JsonGraph(json.loads((folder / "graph.json").read_text()), DOMAINS[name].PAIRS)
