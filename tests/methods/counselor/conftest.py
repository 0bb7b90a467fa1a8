"""Programs that are played on a graph."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.llm.replies.action_lines import read_action_line
from kgqa.methods.counselor.finishing import grounded_answer
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.model import Answer, Question
from kgqa.trace.trace import Trace


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
