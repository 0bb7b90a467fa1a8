"""`golden_adapter.py` for the first commit that was recorded, 8db8a12f, to which `make golden` copies it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from text_agents import AGENTS
from text_sets import TextQuestion, read_text_questions

import kgqa
from kgqa.evaluation.datasets.questions import read_questions
from kgqa.testing.agents.counselor_agent import CounselorAgent, GoldProgram
from kgqa.testing.agents.evograph_agent import EvographAgent, FactGold
from kgqa.testing.gold_table import gold_for
from kgqa.testing.grbench.mini import write_mini_grbench
from kgqa.testing.model_oracle import ModelOracle
from kgqa.testing.server import ScriptedServer

__all__ = [
    "Oracle",
    "ScriptedServer",
    "TextQuestion",
    "counselor_agent",
    "embedder",
    "read_text_questions",
    "text_agent",
    "write_mini_grbench",
]

KNOWN: dict[Hashable, Any] = {}
"""Right paths that were found for an oracle, which others need, too; all are asked about the same graph."""


def embedder() -> str:
    """Return the name of the embedding model in use; "" if there is none."""
    with kgqa.open_resources() as resources:
        return resources.encoder.name if resources.encoder else ""


class Oracle:
    """A simulated model that is right in nine of ten decisions, for the questions of a file.

    Args:
        graph: The graph folder.
        questions: The question file.
        options: Options of `kgqa.open_resources`.
    """

    def __init__(self, graph: Path, questions: Path, **options: Any) -> None:
        self._oracle = ModelOracle(p=0.9)
        self._questions = {each.id: each for each in read_questions(questions)}
        self._resources = kgqa.open_resources(graph, llm="http://127.0.0.1:1/v1#m", **options)

    def tell(self, ident: str) -> None:
        """Let the model know the right paths of the next question."""
        question = self._questions[ident]
        self._oracle.table = {question.text: gold_for(question, self._resources, known=KNOWN)}

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        return self._oracle(messages)


def text_agent(method: str, questions: Sequence[TextQuestion]) -> Callable[..., str]:
    """Return the agent that knows the right sub-questions and passages; that of evograph repairs the corpus with them."""
    if method == "evograph":
        return EvographAgent({each.text: _fact(each) for each in questions})
    return AGENTS[method]({each.text: each.gold for each in questions})


def _fact(question: TextQuestion) -> FactGold:
    """Return the first sentence of a supporting passage that contains the answer, and what it is searched with."""
    answer = question.gold.answers[0]
    sentences = [each for text in question.passages for each in text.split("\n", 1)[1].split(". ") if answer in each]
    return FactGold(question.grounded[-1], sentences[0] if sentences else answer, answer)


def counselor_agent(rows: Sequence[Mapping[str, Any]]) -> Callable[..., str]:
    """Return the agent that plays the gold programs, and fails in some trials."""
    programs = {}
    for row in rows:
        answer = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
        programs[row["question"]] = GoldProgram(tuple(row["program"]), tuple(map(str, answer)))
    return CounselorAgent(programs, noise=0.3)
