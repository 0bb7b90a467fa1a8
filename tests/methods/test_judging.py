"""The judge on the demo graph: its conditions and operations become part of the query, and nothing from memory does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kgqa.graph.opening import open_graph
from kgqa.model import Answer

from .scripted import run_scripted

PRESIDENT = "m.demo_president_of_the_united_states"
HOLDERS = "office holders"


class Reader:
    """Picks all paths whose words end in `wanted`, and gives these verdicts in turn; the last one is repeated."""

    def __init__(self, wanted: str | tuple[str, ...], *verdicts: Any) -> None:
        self.wanted, self.verdicts = wanted, list(verdicts)
        self.judged: list[str] = []

    def __call__(self, messages: list[dict[str, str]]) -> str:
        asked = next(message["content"] for message in messages if message["role"] == "user")
        lines = asked.splitlines()
        if lines[-1] == "Verdict:":
            self.judged.append("\n".join(message["content"] for message in messages if message["role"] != "system"))
            paths = [line for line in lines if line.startswith("Path ")]
            given = self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]
            if given.get("verdict") == "wrong":
                return json.dumps(given)
            fitting = [n for n, line in enumerate(paths, start=1) if line.endswith(self.wanted)]
            return json.dumps({"path": fitting[0] if fitting else 1, **given})
        listed = [line.split(" = ")[0] for line in lines if line.startswith("[")]
        return json.dumps([n for n, line in enumerate(listed, start=1) if line.endswith(self.wanted)])


@pytest.fixture(scope="module")
def asking() -> Iterator[Callable[..., Answer]]:
    with open_graph() as graph:

        def run(question: str, reader: Reader, *, topic: str = PRESIDENT, **given: Any) -> Answer:
            return run_scripted(reader, question, graph=graph, topics=topic, **{"explore.depth": 2, **given}).answer

        yield run


def names(answer: Answer) -> list[str]:
    return [item.name for item in answer.answers]


def complete(*conditions: dict[str, str], operation: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"verdict": "complete", "conditions": list(conditions), "operation": operation}


@pytest.mark.parametrize(
    ("question", "operation", "expected"),
    [
        ("How many presidents did the United States have?", {"do": "count"}, ["5"]),
        ("Who was its first president?", {"do": "least", "field": "from"}, ["George Washington"]),
        ("Which was born last?", {"do": "most", "field": "answer's date of birth"}, ["Barack Obama"]),
    ],
)
def test_operation(
    asking: Callable[..., Answer], question: str, operation: dict[str, Any], expected: list[str]
) -> None:
    answer = asking(question, Reader(HOLDERS, complete(operation=operation)))
    assert names(answer) == expected and answer.query_class == "exact" and answer.grounding == "graph"


def test_unknown_value_is_asked_again_and_never_used(asking: Callable[..., Answer]) -> None:
    memory = complete({"field": "answer's profession", "is": "=", "value": "Rail-splitter"})
    known = complete({"field": "answer's profession", "is": "=", "value": "Writer"})
    reader = Reader(HOLDERS, memory, known)
    answer = asking("Which president was a writer by profession?", reader)
    assert 'has no value "Rail-splitter"' in reader.judged[1]
    assert names(answer) == ["Barack Obama", "Theodore Roosevelt"]


def test_field_that_was_not_shown_is_refused(asking: Callable[..., Answer]) -> None:
    reader = Reader(HOLDERS, complete({"field": "net worth", "is": ">", "value": "3"}))
    answer = asking("Which president was rich?", reader)
    assert 'has no field "net worth"' in reader.judged[-1]
    assert answer.status == "answered" and not answer.accepted, "the best path is answered, but not accepted"
    assert not answer.paths[0].conditions


def test_best_path_is_not_accepted_or_not_answered(asking: Callable[..., Answer]) -> None:
    wrong = {"path": None, "verdict": "wrong"}
    answer = asking("Who was president?", Reader(HOLDERS, wrong))
    assert answer.status == "answered" and not answer.accepted and "No path was accepted" in " ".join(answer.notes)
    none = asking("Who was president?", Reader(HOLDERS, wrong), **{"ask.on_exhausted": "none"})
    assert none.status == "no_answer" and "accepted by the language model" in none.reason


def test_conditions_of_a_missing_path_stay(asking: Callable[..., Answer]) -> None:
    term = {"verdict": "missing", "conditions": [{"field": "from", "is": "=", "value": "2009"}]}
    reader = Reader((HOLDERS, "place of birth"), term, complete())
    answer = asking("Where was its president of 2009 born?", reader, **{"explore.depth": 2})
    assert names(answer) == ["Honolulu"] and len(answer.paths[0].conditions) == 1


@pytest.mark.parametrize(
    ("question", "field", "conditions", "operation", "expected"),
    [
        ("When did Kennedy take office?", "from", [("answer", "John F. Kennedy")], None, ["1961"]),
        ("When was its last president born?", "answer's date of birth", [], {"do": "most", "field": "from"}, ["1961-08-04"]),
    ],
)  # fmt: skip
def test_another_field_is_the_answer(
    asking: Callable[..., Answer],
    question: str,
    field: str,
    conditions: list[tuple[str, str]],
    operation: dict[str, Any] | None,
    expected: list[str],
) -> None:
    wanted = [{"field": name, "is": "=", "value": value} for name, value in conditions]
    answer = asking(question, Reader(HOLDERS, {**complete(*wanted, operation=operation), "answer": field}))
    assert names(answer) == expected and answer.accepted and answer.query_class == "exact"


def test_condition_on_a_mediator(asking: Callable[..., Answer]) -> None:
    reader = Reader(
        HOLDERS,
        complete({"field": "from", "is": "<=", "value": "1962"}, {"field": "to", "is": ">=", "value": "1962"}),
    )
    answer = asking("Who was president of the United States in 1962?", reader)
    assert names(answer) == ["John F. Kennedy"]
    assert answer.accepted and answer.query_class == "exact"
    assert "from = 1961" in reader.judged[0]
    assert len(answer.paths[0].conditions) == 2
    assert "Kennedy" not in answer.sparql
