"""Constraining a model to choices: request modes, and servers that support one of them, none, or ignore them."""

from __future__ import annotations

import json

import pytest

from kgqa.llm.backends.constraints import (
    constraint_fields,
    held_text,
    is_of_schema,
)
from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.client import Message, Prompt, Sampling
from kgqa.testing import faults
from kgqa.testing.server import ScriptedServer

CHOICES = ("red", "blue")


def ask(text: str = "which?", *, choices: tuple[str, ...] = CHOICES, sampling: Sampling = Sampling()) -> Prompt:
    return Prompt((Message("user", text),), "tournament", sampling=sampling, choices=choices)


@pytest.fixture
def open_client():
    """Return a function that opens clients without pauses; they are closed after the test."""
    clients: list[OpenAIChat] = []

    def open_one(server: ScriptedServer, **options) -> OpenAIChat:
        clients.append(OpenAIChat("m", url=server.url, **{"sleep": lambda _: None, "retries": 1, **options}))
        return clients[-1]

    yield open_one
    for each in clients:
        each.close()


def fields_of(server: ScriptedServer) -> list[str]:
    """Return the constraint fields that each request used."""
    names = ("structured_outputs", "response_format")
    return ["+".join(name for name in names if name in request.body) or "-" for request in server.requests]


# ---- modes ----


def test_request_fields_of_each_mode():
    prompt = ask(choices=("a", "b", "a"))
    assert constraint_fields("structured_outputs", prompt) == {"structured_outputs": {"choice": ["a", "b"]}}
    format_ = constraint_fields("json_schema", prompt)["response_format"]
    assert format_["type"] == "json_schema" and format_["json_schema"]["strict"] is True
    schema = format_["json_schema"]["schema"]
    assert schema["properties"] == {"choice": {"type": "string", "enum": ["a", "b"]}}
    # required by the strict mode of OpenAI
    assert schema["required"] == ["choice"] and schema["additionalProperties"] is False
    assert constraint_fields("free", prompt) == {}


@pytest.mark.parametrize(
    ("mode", "text", "choice"),
    [
        ("structured_outputs", "red", "red"),
        ("structured_outputs", "Red", None),
        ("structured_outputs", '{"choice": "red"}', None),
        ("json_schema", '{"choice": "red"}', "red"),
        ("json_schema", ' {"choice":"red"}\n', "red"),
        ("json_schema", "red", None),
        ("json_schema", '{"choice": "green"}', None),
        ("json_schema", '{"choice": "red", "why": "it is"}', None),
        ("json_schema", '```json\n{"choice": "red"}\n```', None),
        ("json_schema", "[" * 100_000, None),
    ],
)
def test_chosen_option(mode, text, choice):
    assert held_text(text, mode, ask()) == choice


# ---- with a server ----


def test_server_with_structured_outputs(open_client):
    with ScriptedServer(lambda _: "I would say blue", constrains="structured_outputs") as server:
        model = open_client(server)
        completions = model.complete([ask(), ask()])
        assert [(each.text, each.constrained, each.failure) for each in completions] == [("blue", True, "")] * 2
        assert server.requests[0].body["structured_outputs"] == {"choice": ["red", "blue"]}
        assert fields_of(server) == ["structured_outputs"] * 2
        assert model.notes == ()


@pytest.mark.parametrize("ignores", [True, False], ids=["ignores silently", "rejects"])
def test_server_with_json_schema_only(open_client, ignores):
    with ScriptedServer(lambda _: "I would say blue", constrains="json_schema", ignores_silently=ignores) as server:
        model = open_client(server)
        first = model.complete([ask()])[0]
        # a reply that ignored the constraint is kept; a rejected request is sent again without it
        assert (first.text, first.constrained) == (("I would say blue", False) if ignores else ("blue", True))
        second = model.complete([ask()])[0]
        assert (second.text, second.constrained) == ("blue", True)
        assert fields_of(server) == ["structured_outputs"] + ["response_format"] * (1 if ignores else 2)
        (note,) = model.notes
        assert "structured_outputs" in note and "response_format" in note


@pytest.mark.parametrize("ignores", [True, False], ids=["ignores silently", "rejects"])
def test_server_without_constraints(open_client, ignores):
    with ScriptedServer(lambda _: "I would say blue", ignores_silently=ignores) as server:
        model = open_client(server)
        completions = [model.complete([ask()])[0] for _ in range(4)]
        assert [(each.text, each.constrained, each.failure) for each in completions] == [
            ("I would say blue", False, "")
        ] * 4
        tried = ["structured_outputs", "response_format"]
        assert fields_of(server) == tried + ["-"] * (2 if ignores else 4)
        assert len(model.notes) == 2
        assert "free text" in model.notes[1]


# ---- JSON schemas of replies ----

SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": ["string", "null"]},
        "support": {"type": "array", "items": {"type": "integer"}},
        "verdict": {"enum": ["yes", "no"]},
    },
    "required": ["answer"],
}
RIGHT = '{"answer": "Tokyo", "support": [1, 2], "verdict": "yes"}'


def ask_for_schema(schema=SCHEMA) -> Prompt:
    return Prompt((Message("user", "which?"),), "decide", schema=schema)


def test_closed_and_open_objects():
    closed = {**SCHEMA, "additionalProperties": False}
    assert not is_of_schema('{"answer": "x", "more": 1}', closed)
    assert is_of_schema('{"answer": "x", "more": 1}', SCHEMA)
    assert is_of_schema("[]", {"type": ["array", "null"]}) and is_of_schema("[]", {"anyOf": [{"type": "array"}]})
    assert is_of_schema("[]", {"type": "array"}) and not is_of_schema("{}", {"type": "array", "required": ["a"]})


def test_strict_is_sent_only_for_closed_schemas():
    """OpenAI rejects a strict schema whose objects may have other keys, or may lack some."""
    inner = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    closed = {**inner, "additionalProperties": False}
    for schema, strict in ((closed, True), (inner, False), (SCHEMA, False), ({"type": "array", "items": inner}, False),
                           ({"type": "array", "items": closed}, True)):  # fmt: skip
        format_ = constraint_fields("json_schema", ask_for_schema(schema))["response_format"]
        assert format_["type"] == "json_schema" and format_["json_schema"]["strict"] is strict
        assert format_["json_schema"]["schema"] == schema


def test_server_that_holds_to_the_schema(open_client):
    with ScriptedServer(lambda _: "It is Tokyo.", constrains="json_schema") as server:
        model = open_client(server)
        (completion,) = model.complete([ask_for_schema()])
        assert completion.constrained and json.loads(completion.text)["answer"] == "It is Tokyo."
        assert fields_of(server) == ["response_format"] and model.notes == ()
        assert server.requests[0].body["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize("ignores", [True, False], ids=["ignores silently", "rejects"])
def test_server_that_does_not_hold_to_the_schema(open_client, ignores):
    with ScriptedServer(lambda _: "It is Tokyo.", ignores_silently=ignores) as server:
        model = open_client(server)
        completions = [model.complete([ask_for_schema()])[0] for _ in range(3)]
        assert {(each.text, each.constrained, each.failure) for each in completions} == {("It is Tokyo.", False, "")}
        assert fields_of(server) == ["response_format"] + ["-"] * (2 if ignores else 3)
        (note,) = model.notes
        assert "JSON schema" in note and "free text" in note


def test_one_rejected_schema_does_not_affect_others_nor_choices(open_client):
    reject = faults.failing(400, "Invalid schema for response_format 'reply'.", param="response_format")
    with ScriptedServer([reject, "free", RIGHT, "blue"]) as server:
        model = open_client(server)
        odd = model.complete([ask_for_schema({"type": "object", "$ref": "#/odd"})])[0]
        assert (odd.text, odd.constrained) == ("free", False)
        assert model.complete([ask_for_schema()])[0].constrained
        assert model.complete([ask()])[0].constrained
        assert fields_of(server) == ["response_format", "-", "response_format", "structured_outputs"]
