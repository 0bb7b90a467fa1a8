"""Opening the models named in the settings, and charging model calls to a question."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.client import Message, Prompt
from kgqa.llm.models import Models, open_models, read_prices
from kgqa.llm.replay import Replay
from kgqa.settings.values import resolve
from kgqa.testing import faults
from kgqa.testing.faults import ModelReply
from kgqa.testing.server import ScriptedServer
from kgqa.trace.trace import Budget, BudgetExhausted, Trace

KEY = "sk-very-secret-0123456789"
CLOSED_PORT = "http://127.0.0.1:9/v1"
PRICED_MODEL = "gpt-4.1-mini"
"""A model that costs 0.4 and 1.6 USD per million tokens."""


@pytest.fixture(autouse=True)
def _remove_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("KGQA_LLM_KEY", raising=False)


@pytest.fixture
def open_from_settings(tmp_path):
    """Return a function that opens the models of given settings without retries; they are closed after the test."""
    found: list[Models] = []

    def open_(given: dict | None = None, **environment: str) -> Models:
        settings = resolve({"llm.retries": 0} | (given or {}), environment=environment, folder=tmp_path)
        models = open_models(settings)
        assert models is not None
        found.append(models)
        return models

    yield open_
    for each in found:
        each.close()


def ask(text: str = "hello", stage: str = "decide") -> Prompt:
    return Prompt((Message("user", text),), stage)  # type: ignore[arg-type]


def error_message(given: dict, kind: type[Exception] = SettingsError) -> str:
    """Return the message of the error that the settings raise."""
    with pytest.raises(kind) as caught:
        open_models(resolve({"llm.retries": 0} | given, environment={}))
    return str(caught.value)


# ---- choosing the model ----


@pytest.mark.parametrize("given", [{}, {"llm.model": "none"}, {"llm.model": " none "}, {"llm.model": ""},
                                   {"llm.stages": {"decide": {"temperature": 1}}}])  # fmt: skip
def test_no_model_without_setting(given):
    assert open_models(resolve(given, environment={})) is None


def test_openai_reads_its_key(open_from_settings, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    models = open_from_settings({"llm.model": "openai:gpt-4.1-mini"})
    model = models.by_stage["decide"]
    assert isinstance(model, OpenAIChat) and model.url == "https://api.openai.com/v1"
    assert models.name == "gpt-4.1-mini" and KEY not in repr(models)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4.1",
        "openai:",
        "ollama:qwen",
        "ftp://host/v1",
        "file:/etc",
    ],
)
def test_unknown_model_names_are_refused(name):
    message = error_message({"llm.model": name})
    assert "openai:NAME" in message or "http://" in message


# ---- settings that only the user's own file may give ----


# ---- stages ----


def test_each_stage_uses_its_own_model_and_sampling(open_from_settings):
    with ScriptedServer(lambda _: "yes") as server, ScriptedServer(lambda _: "no") as other:
        models = open_from_settings(
            {
                "llm.model": f"{server.url}#small",
                "llm.seed": 7,
                "llm.extra_body": {"top_k": 5},
                "llm.stages": {
                    "tournament": {"temperature": 0.4, "top_p": 0.9, "seed": 3},
                    "decide": {
                        "model": f"{other.url}#large",
                        "max_tokens": 9,
                        "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
                    },
                    "judge": {"model": f"{other.url}#large"},
                },
            }
        )
        assert models.name == "large, small", "the model that decides comes first"
        question_models = models.for_question(Trace())
        assert question_models.name == models.name
        for stage in ("filter", "tournament", "decide", "judge"):
            question_models.complete([ask(stage=stage)])
        sent, sent_other = (
            [{k: v for k, v in each.body.items() if k != "messages"} for each in log.requests]
            for log in (server, other)
        )
        assert sent == [
            {"model": "small", "temperature": 0.0, "seed": 7, "top_k": 5},
            {"model": "small", "temperature": 0.4, "top_p": 0.9, "seed": 3, "top_k": 5},
        ]
        thinking = {"chat_template_kwargs": {"enable_thinking": False}}
        assert sent_other == [
            {"model": "large", "temperature": 0.0, "seed": 7, "max_tokens": 9, **thinking},
            {"model": "large", "temperature": 0.0, "seed": 7, "top_k": 5},
        ]
        assert models.by_stage["decide"] is models.by_stage["judge"]


@pytest.mark.parametrize(
    "stages",
    [
        {"nosuch": {}},
        {"decide": 3},
        {"decide": {"nosuch": 1}},
        {"decide": {"temperature": "0"}},
        {"decide": {"temperature": None}},
        {"decide": {"seed": 1.5}},
        {"decide": {"max_tokens": 0}},
        {"decide": {"extra_body": [1]}},
        {"decide": {"model": None}},
        {"decide": {"model": "gpt-4.1"}},
    ],
    ids=str,
)
def test_invalid_stage_settings_are_refused(stages):
    assert (
        "language model" in (message := error_message({"llm.model": f"{CLOSED_PORT}#m", "llm.stages": stages}))
        or "llm.stages" in message
    )


def test_model_for_one_stage_alone_is_refused():
    message = error_message({"llm.stages": {"decide": {"model": f"{CLOSED_PORT}#m"}}})
    assert "llm.stages" in message and "llm.model" in message


def test_models_are_closed_when_another_fails_to_open(monkeypatch):
    closed = []
    monkeypatch.setattr(OpenAIChat, "close", lambda self: closed.append(self.name))
    error_message({"llm.model": f"{CLOSED_PORT}#m", "llm.stages": {"judge": {"model": "gpt-4.1"}}})
    error_message({"llm.model": f"{CLOSED_PORT}#n", "llm.prices": "/no/such/file"})
    error_message({"llm.model": f"{CLOSED_PORT}#o", "budget.cost": 1.0})
    error_message({"llm.model": f"{CLOSED_PORT}#p", "llm.replay": "/dev/null/x"})
    assert closed == ["m", "n", "o", "p"]


# ---- recorded replies ----


def replies_of(models: Models, *prompts: Prompt) -> list[str]:
    return [each.text for each in models.for_question(Trace()).complete(prompts)]


def test_recorded_replies_are_not_asked_again(open_from_settings, tmp_path):
    recorded_file = {"llm.replay": str(tmp_path / "kept")}
    with ScriptedServer(lambda messages: messages[-1]["content"].upper()) as server:
        given = {"llm.model": f"{server.url}#m"} | recorded_file
        models = open_from_settings(given)
        assert isinstance(models.by_stage["decide"], Replay) and models.name == "m"
        assert replies_of(models, ask("a"), ask("b")) == ["A", "B"]
        models.close()
        assert replies_of(open_from_settings(given), ask("b"), ask("c")) == ["B", "C"]
        assert server.calls == 3
        # other sampling makes another prompt
        assert replies_of(open_from_settings(given | {"llm.temperature": 0.5}), ask("a")) == ["A"]
        assert server.calls == 4


@pytest.fixture
def recorded_file(open_from_settings, tmp_path) -> str:
    """Return a file with one reply of the model `m`."""
    with ScriptedServer(["yes"]) as server:
        models = open_from_settings({"llm.model": f"{server.url}#m", "llm.replay": str(tmp_path / "kept")})
        replies_of(models, ask("known"))
        models.close()
    return str(tmp_path / "kept")


@pytest.mark.parametrize("name", [f"{CLOSED_PORT}#m", CLOSED_PORT, "openai:m", "vllm:m", "replay:FILE"])
def test_replay_only_needs_neither_server_nor_key(open_from_settings, recorded_file, name):
    models = open_from_settings(
        {"llm.model": name.replace("FILE", recorded_file)}
        if name.startswith("replay")
        else {"llm.model": name, "llm.replay": recorded_file, "llm.replay_only": "on"}
    )
    assert models.name == "m"
    assert replies_of(models, ask("known")) == ["yes"]
    with pytest.raises(ModelUnavailable, match="'unheard of'"):
        replies_of(models, ask("unheard of"))


def test_replay_only_without_file_is_an_error(tmp_path):
    assert "replay=" in error_message({"llm.model": f"{CLOSED_PORT}#m", "llm.replay_only": "on"})
    missing = str(tmp_path / "missing")
    given = {"llm.model": f"{CLOSED_PORT}#m", "llm.replay": missing, "llm.replay_only": "on"}
    assert missing in error_message(given, ModelUnavailable)
    assert missing in error_message({"llm.model": f"replay:{missing}"}, ModelUnavailable)
    assert not Path(missing).exists()


# ---- prices ----


def test_price_file_extends_the_built_in_prices(tmp_path):
    ours = read_prices(None)
    assert ours[PRICED_MODEL] == (0.4, 1.6)
    assert all(0 < prompt < completion for prompt, completion in ours.values())
    file = tmp_path / "prices.toml"
    file.write_text('"gpt-4.1-mini" = { prompt = 1, completion = 2 }\n"my/model" = { prompt = 0, completion = 0.5 }\n')
    assert read_prices(str(file)) == ours | {PRICED_MODEL: (1.0, 2.0), "my/model": (0.0, 0.5)}


@pytest.mark.parametrize(
    "content",
    [
        b"m = 3",
        b"m = { prompt = 1 }",
        b"m = { prompt = -1, completion = 1 }",
        b"m = { prompt = 1, completion = inf }",
        b"\xff",
    ],
)
def test_invalid_price_file_is_refused(tmp_path, content):
    file = tmp_path / "prices.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match="prices.toml cannot be read: .*prompt = 0.4"):
        read_prices(str(file))
    with pytest.raises(SettingsError, match="nowhere.toml"):
        read_prices(str(tmp_path / "nowhere.toml"))


def test_cost_limit_needs_a_price_for_each_model(open_from_settings, tmp_path):
    given = {
        "llm.model": f"{CLOSED_PORT}#{PRICED_MODEL}",
        "llm.stages": {"judge": {"model": f"{CLOSED_PORT}#new"}},
        "budget.cost": 1.0,
    }
    message = error_message(given)
    assert "max_cost=" in message and "llm.prices" in message and '"new" =' in message and PRICED_MODEL not in message
    file = tmp_path / "prices.toml"
    file.write_text("new = { prompt = 1, completion = 2 }")
    assert open_from_settings(given | {"llm.prices": str(file)}).prices["new"] == (1, 2)


# ---- one question ----


@contextmanager
def question(open_from_settings, reply, budget: Budget = Budget(), *, name: str = PRICED_MODEL, **settings):
    """Yield the server, the question's trace and its models."""
    with ScriptedServer(reply) as server:
        trace = Trace(budget)
        given = {"llm.model": f"{server.url}#{name}"} | {key.replace("__", "."): v for key, v in settings.items()}
        yield server, trace, open_from_settings(given).for_question(trace)


def test_usage_is_charged_per_stage(open_from_settings):
    reply = ModelReply("yes", prompt_tokens=1000, completion_tokens=500)
    with question(open_from_settings, lambda _: reply) as (_, trace, question_models):
        assert [each.text for each in question_models.complete([ask("a"), ask("b"), ask("c")])] == ["yes"] * 3
        question_models.complete([ask(stage="tournament")])
        question_models.complete([ask()])
        decide, tournament = trace.usage().stages
        assert (decide.stage, decide.calls, decide.rounds) == ("decide", 4, 2)
        assert (decide.prompt_tokens, decide.completion_tokens) == (4000, 2000)
        assert decide.cost == pytest.approx((4000 * 0.4 + 2000 * 1.6) / 1e6)
        assert (tournament.stage, tournament.calls, tournament.rounds, tournament.prompt_tokens) == (
            "tournament",
            1,
            1,
            1000,
        )
        usage = trace.usage()
        assert (usage.calls, usage.rounds, usage.prompt_tokens, usage.completion_tokens) == (5, 3, 5000, 2500)
        assert usage.cost == pytest.approx((5000 * 0.4 + 2500 * 1.6) / 1e6)


@pytest.mark.parametrize(
    ("budget", "before", "message"),
    [
        (Budget(calls=3), [2, 1], "3 model calls"),
        (Budget(calls=0), [], "0 model calls"),
        (Budget(tokens=3000), [1, 1], "3000 tokens"),
        (Budget(cost=0.0024), [2], "0.0024 USD"),
    ],
    ids=str,
)
def test_spent_budget_stops_further_calls(open_from_settings, budget, before, message):
    """`before` are the sizes of the batches within the budget; the next batch, of two, is not sent."""
    reply = ModelReply("yes", prompt_tokens=1000, completion_tokens=500)  # 0.0012 USD
    with question(open_from_settings, lambda _: reply, budget) as (server, trace, question_models):
        for size in before:
            assert len(question_models.complete([ask(str(number)) for number in range(size)])) == size
        for _ in range(2):
            with pytest.raises(BudgetExhausted, match=message):
                question_models.complete([ask(), ask()])
        assert server.calls == trace.usage().calls == sum(before)


def test_hanging_server_is_bounded_by_the_time_budget(open_from_settings):
    with question(open_from_settings, lambda _: faults.hangs(30), Budget(seconds=1.5)) as (
        server,
        trace,
        question_models,
    ):
        start = time.monotonic()
        with pytest.raises(BudgetExhausted, match="in time"):
            question_models.complete([ask()])
        assert time.monotonic() - start < 25
        with pytest.raises(BudgetExhausted, match="1.5 seconds"):
            question_models.complete([ask()])
        assert trace.usage().calls == server.calls == 1


def test_failures_are_counted_and_traced(open_from_settings):
    replies = {
        "a": faults.refusal("I will not"),
        "b": faults.empty(),
        "c": ModelReply("half", finish_reason="length"),
        "d": faults.failing(400, "Too odd."),
        "e": "yes",
    }
    with question(open_from_settings, lambda messages: replies[messages[0]["content"]]) as (_, trace, question_models):
        completions = question_models.complete([ask(text) for text in replies])
        assert [each.failure for each in completions] == ["refused", "empty", "length", "rejected", ""]
        assert trace.usage().stages[0].failed == 4
        details = [event.detail for event in trace.events() if event.kind == "no_reply"]
        assert [each["failure"] for each in details] == ["refused", "empty", "length", "rejected"]
        assert all(each["stage"] == "decide" and each["detail"] for each in details)
        json.dumps([event.detail for event in trace.events()])


@pytest.mark.parametrize(("given", "exploring"), [({}, 0.4), ({"llm.temperature": 0.0}, 0.0)])
def test_tog_exploration_temperature_can_be_set(open_from_settings, given, exploring):
    with ScriptedServer(lambda messages: "yes") as server:
        models = open_from_settings(
            {"llm.model": f"{server.url}#m", "ask.method": "tog", "llm.stages": {"judge": {"seed": 1}}} | given
        )
    assert [models.sampling[stage].temperature for stage in ("filter", "entity", "decide")] == [
        exploring,
        exploring,
        0.0,
    ]
    assert models.sampling["judge"].seed == 1
