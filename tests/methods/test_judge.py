"""What a verdict means on a path: which field a name stands for, and whether values are dates or numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.path_verdicts import PathVerdict, RepliedCondition, RepliedOperation
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.tournament.judge import replied_candidate
from kgqa.methods.tournament.shown_paths import ShownPath
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step, Value
from kgqa.search.conditions.rows import read_rows
from kgqa.trace.trace import Trace
from tests.memory_graph import memory_graph

E, XSD = "http://e/", "http://www.w3.org/2001/XMLSchema#"


@dataclass
class View:
    """The question as a language model sees it, without masks."""

    question: str
    texts: set[str] = field(default_factory=set)
    masks: bool = False

    def elements(self, candidate: Candidate) -> tuple[str, ...]:
        return ("topic", "->", candidate.words)

    def name(self, value: Value, name: str) -> str:
        return name


def answers(graph: KnowledgeGraph, path: RelationPath, verdict: PathVerdict, question: str) -> list[str]:
    """Return the values or ids of the answers that a verdict gives."""
    rows = read_rows(graph, [Candidate(path, "path")], Trace())
    shown = ShownPath(graph, cast(PromptView, View(question)), rows[0], None)
    found = replied_candidate(shown, verdict, ())
    query = graph.answer_query(found.path, **{**found.limits, "restricted": dict(found.restricted)}, operation=found.operation)  # fmt: skip
    values = graph.run_exported(query)
    return sorted(value.value if isinstance(value, Literal) else value.iri.rpartition("/")[2] for value in values)


def towns(values: dict[str, str], datatype: str) -> KnowledgeGraph:
    typed = f"^^<{XSD}{datatype}>" if datatype else ""
    lines = [f"<{E}land> <{E}has> <{E}{name}> ." for name in values]
    return memory_graph([*lines, *(f'<{E}{name}> <{E}size> "{value}"{typed} .' for name, value in values.items())], schema="rdfs")  # fmt: skip


@pytest.mark.parametrize(
    ("values", "datatype", "largest", "over_5000"),
    [
        ({"a": "4100", "b": "5200", "c": "1200000"}, "integer", ["c"], ["b", "c"]),
        ({"a": "8611", "b": "4516", "c": "8848.86"}, "", ["c"], ["a", "c"]),
        ({"a": "1998", "b": "1999-05-01", "c": "2001"}, "", ["c"], None),
        ({"a": "1998", "b": "2004"}, "gYear", ["b"], None),
    ],
)
def test_numbers_of_four_digits_are_no_years(values: dict[str, str], datatype: str, largest: list[str], over_5000: Any) -> None:  # fmt: skip
    graph, path = towns(values, datatype), RelationPath(Entity(E + "land"), (Step(E + "has"),))
    most = PathVerdict("complete", 0, operations=(RepliedOperation("most", "size"),))
    assert answers(graph, path, most, "Which town has the largest size?") == largest
    over = PathVerdict("complete", 0, (RepliedCondition("size", ">", "5000" if over_5000 is not None else "2000"),))
    expected = over_5000 if over_5000 is not None else [name for name, value in values.items() if value[:1] == "2"]
    assert answers(graph, path, over, "Which towns have a size above that?") == expected


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"conditions": (RepliedCondition("answer", "absent"),)}, "is never absent"),
        ({"conditions": (RepliedCondition("answer", ">", "5"),)}, "has no value"),
        ({"operations": (RepliedOperation("most", "size", compared=True),)}, "nothing to compare"),
        ({"operations": (RepliedOperation("most", "answer"),)}, "no numbers or dates"),
        ({"operations": (RepliedOperation("most", "size", rank=99),)}, "the rank is between"),
    ],
)
def test_parts_that_do_not_fit_the_path_are_refused(parts: dict[str, Any], message: str) -> None:
    graph, path = towns({"a": "1", "b": "2"}, "integer"), RelationPath(Entity(E + "land"), (Step(E + "has"),))
    with pytest.raises(ValueError, match=message):
        answers(graph, path, PathVerdict("complete", 0, **parts), "Which town has the largest size?")


def test_conditions_on_what_is_absent_and_sums() -> None:
    graph, path = towns({"a": "1", "b": "2"}, "integer"), RelationPath(Entity(E + "land"), (Step(E + "has"),))
    for conditions, operations, expected in (
        ((RepliedCondition("size", "present"),), (), ["a", "b"]),
        ((RepliedCondition("size", "!=", "1"),), (), ["b"]),
        ((), (RepliedOperation("sum", "size"),), ["3"]),
    ):
        verdict = PathVerdict("complete", 0, conditions, operations)
        assert answers(graph, path, verdict, "Which towns have a size?") == expected
