"""Plays a program without a language model: lines of calls, the last of which is `Finish`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.llm.replies.action_lines import read_action_line
from kgqa.methods.counselor.calls.observations import Observation
from kgqa.methods.counselor.finishing import grounded_answer
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.model import Answer
from kgqa.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Played:
    """What a program did: its observations in order, its answer, and the texts of the lines that could not be read."""

    observations: tuple[Observation, ...]
    answer: Answer | None
    problems: tuple[str, ...] = ()


def play(
    program: Sequence[str], functions: GraphFunctions, empty: Answer, trace: Trace, *, published: bool = False
) -> Played:
    """Run the lines of a program until one finishes.

    Args:
        program: Lines of calls.
        functions: The functions of the question.
        empty: An answer without results, which provides the question, the method and the notes.
        trace: Records the answer.
        published: Whether lines are read as published.

    Raises:
        StoreError: The graph failed.
        BudgetExhausted: The question's budget is used up.
    """
    observations: list[Observation] = []
    problems: list[str] = []
    for line in program:
        read = read_action_line(line, published=published)
        if read.value is None:
            problems.append(f"{line[:200]}: {read.problem}")
            continue
        for call in read.value:
            if call.name == "Finish":
                text = str(call.arguments[0]) if call.arguments else ""
                return Played(tuple(observations), grounded_answer(text, functions, empty, trace), tuple(problems))
            observations.append(functions.run(call))
            problems += [each.problem for each in observations[-1:] if each.problem]
    return Played(tuple(observations), None, tuple(problems))
