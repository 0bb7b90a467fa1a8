"""Runs whose questions have hand-made traces of methods that act in turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.evaluation.runs.records import Record, record_of
from kgqa.evaluation.runs.run_files import FORMAT, Run
from kgqa.evaluation.runs.run_folder import create_run
from kgqa.model import Answer, Literal, Named, Question
from kgqa.storage.answer_json import answer_object
from kgqa.trace import (
    ActionRead,
    Called,
    EditDecided,
    EditProposed,
    Event,
    Finished,
    PiecesKept,
    Retrieved,
    Seen,
    StepPlanned,
    TaskGiven,
)


def call(name: str, **arguments: Any) -> str:
    block = json.dumps({"name": name, "arguments": arguments})
    return f"<think>I need more.</think>\n<tool_call>{block}</tool_call>"


def conclusion(answer: str) -> str:
    return f"<think>I know.</think>\n<answer>{answer}</answer>"


def searched(step: int, query: str, shown: str) -> list[Event]:
    """The events of a turn that searches."""
    return [
        ActionRead(
            reply=call("graph_search", query=query), actions=("graph_search",), thought="I need more.", step=step
        ),
        Retrieved(query=query, pieces=("urn:a", "urn:b"), step=step),
        PiecesKept(pieces=("urn:a",), step=step),
        Called(name="graph_search", arguments=(json.dumps({"query": query}),), total=1, step=step),
        Seen(text=shown, count=1, step=step),
    ]


def concluded(step: int, answer: str) -> list[Event]:
    return [
        ActionRead(reply=conclusion(answer), thought="I know.", step=step),
        Finished(text=answer, answers=(answer,), grounded=True, step=step),
    ]


def edited(step: int) -> list[Event]:
    """The events of a turn that proposes two edits: one is accepted, one is rejected by a gate."""
    return [
        ActionRead(reply=call("insert", content="Ada died in 1852.", sources=[1]), thought="New.", step=step),
        Called(name="insert", arguments=("{}",), step=step),
        EditProposed(proposal=1, edit="insert", content="Ada died in 1852.", step=step),
        EditDecided(proposal=1, edit="urn:e1", state="overlay", step=step),
        EditProposed(proposal=2, edit="insert", content="See http://example.org.", step=step),
        EditDecided(proposal=2, state="rejected", rule="url", why="It contains a URL.", step=step),
        Seen(text="1 edit accepted, 1 rejected.", step=step),
    ]


def planned(step: int, reply: str, *, trial: int = 0, finish: str = "") -> list[Event]:
    """The events of a step of a method that plans, names what is missing, and calls functions in one line."""
    where = {"trial": trial, "step": step}
    found: list[Event] = [
        StepPlanned(text="Look up the node.", **where),
        StepPlanned(text="The year is missing.", need=True, **where),
        ActionRead(reply=reply, actions=(reply,), **where),
    ]
    if finish:
        return [*found, Finished(text=finish, answers=(finish,), **where)]
    calls = [Called(name=name, arguments=("x",), **where) for name in ("RetrieveNode", "NodeFeature")]
    return [*found, *calls, Seen(text="1852", count=1, **where)]


def record(ident: str, events: Sequence[Event], *, method: str = "evograph", **more: Any) -> Record:
    """The record of a question whose gold answer is Ada Lovelace."""
    question = GoldQuestion(
        text=more.pop("text", "Who wrote the first program?"),
        id=ident,
        dataset="made",
        number=0,
        answers=(GoldAnswer("", "Ada Lovelace", "", ("Countess of Lovelace",)),),
        **{key: more.pop(key) for key in ("group", "rollout") if key in more},
    )
    answers = tuple(Named(Literal(event.text), "", event.text) for event in events if isinstance(event, Finished))
    answer = Answer(Question(question.text, id=ident), "answered", answers=answers, method=method, trace=tuple(events))
    return record_of(question, answer_object(answer, trace=True), **more)


def write_run(folder: Path, records: Sequence[Record], method: str = "evograph") -> Run:
    manifest = {
        "format": FORMAT,
        "id": "0123456789abcdef",
        "method": method,
        "working_folder": str(folder),
        "settings": {"graph.path": str(folder / "corpus"), "llm.model": f"vllm:{folder}/model"},
        "dataset": {"questions": len(records)},
    }
    with create_run(folder, manifest) as run:
        run.append(records)
    return Run(folder, manifest)


def small_run(folder: Path) -> Run:
    """Three rollouts of one question, and one of another: right, wrong, without an end, right without a call."""
    shown = '{"number": 1, "text": "Ada Lovelace wrote it."}'
    support = (("urn:a", "urn:c"), ("urn:b",))
    right = [
        TaskGiven(system="Think first.", user="Question: Who wrote the first program?"),
        *searched(1, "first program", shown),
        *edited(2),
        *concluded(3, "Ada Lovelace"),
    ]
    wrong = [*searched(1, "first program", shown), *concluded(2, "Grace Hopper")]
    endless = [*searched(1, "first program", shown), *searched(2, "program", shown)]
    records = [
        record("q1", right, support=support, group="q1"),
        record("q1~2", wrong, support=support, group="q1", rollout=1),
        record("q1~3", endless, support=support, group="q1", rollout=2),
        record("q2", concluded(1, "Ada Lovelace"), text="Who was \ud800 first?"),
    ]
    return write_run(folder, records)
