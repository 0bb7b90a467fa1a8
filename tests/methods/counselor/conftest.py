"""Graphs of every kind of store, and programs that are played on them."""

from __future__ import annotations

import json

import pytest

from kgqa.evaluation.datasets.grbench.conversion import convert
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.methods.counselor.programs import play
from kgqa.model import Answer, Question
from kgqa.testing.grbench.mini import write_mini_grbench
from kgqa.trace.trace import Trace
from tests.graph.conftest import graphs, make  # noqa: F401 - fixtures


def played(graph, *program, question="", **options):
    """Play a program on a graph, charged to a question."""
    trace = Trace()
    functions = GraphFunctions(graph.for_question(trace), **options)
    return play(program, functions, Answer(Question(question), "no_answer", method="counselor"), trace)


@pytest.fixture(scope="session")
def mini_grbench(tmp_path_factory):
    """For each domain, the N-Triples of its graph and its questions."""
    folder = tmp_path_factory.mktemp("grbench")
    found = {}
    for place in write_mini_grbench(folder, per_template=3):
        convert(place, folder / f"{place.name}.nt")
        questions = [json.loads(line) for line in (place / "questions.jsonl").read_text().splitlines()]
        found[place.name] = (folder / f"{place.name}.nt").read_text().splitlines(), questions
    return found
