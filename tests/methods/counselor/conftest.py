"""Graphs of every kind of store, and programs that are played on them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from kgqa.evaluation.datasets.grbench.conversion import convert
from kgqa.llm.replies.action_lines import read_action_line
from kgqa.methods.counselor.finishing import grounded_answer
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.model import Answer, Question
from kgqa.testing.grbench.mini import write_mini_grbench
from kgqa.trace.trace import Trace
from tests.graph.conftest import graphs, make  # noqa: F401 - fixtures


@dataclass(frozen=True)
class Played:
    """What a program did: its observations, its answer, and the texts of the calls and lines that failed."""

    observations: tuple
    answer: Answer | None
    problems: tuple = ()


def played(graph, *program, question="", **options):
    """Run the calls of a program on a graph until one finishes."""
    trace = Trace()
    functions = GraphFunctions(graph.for_question(trace), **options)
    observations, problems = [], []
    for line in program:
        read = read_action_line(line)
        problems += [read.problem] if read.problem else []
        for call in read.value or ():
            if call.name == "Finish":
                text = str(call.arguments[0]) if call.arguments else ""
                empty = Answer(Question(question), "no_answer", method="counselor")
                return Played(tuple(observations), grounded_answer(text, functions, empty, trace), tuple(problems))
            observations.append(functions.run(call))
            problems += [each.problem for each in observations[-1:] if each.problem]
    return Played(tuple(observations), None, tuple(problems))


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
