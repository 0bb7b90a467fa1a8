"""Opening the models that settings name, and what one question is charged for asking them."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.backends.vllm import VLLMChat
from kgqa.llm.client import STAGES, Message, Prompt, Sampling
from kgqa.llm.models import Models, QuestionModels, open_models, read_prices
from kgqa.llm.replay import Replay
from kgqa.settings import resolve
from kgqa.settings_table import BY_KEY
from kgqa.testing import faults
from kgqa.testing.faults import ModelReply
from kgqa.testing.server import ScriptedServer
from kgqa.trace import Budget, BudgetExhausted, Trace

KEY = "sk-very-secret-0123456789"
NOWHERE = "http://127.0.0.1:9/v1"
PRICED = "gpt-4.1-mini"
"""Costs 0.4 and 1.6 USD for a million tokens."""


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("KGQA_LLM_KEY", raising=False)


@pytest.fixture
def opened(tmp_path):
    """Opens the models of settings, without tries after the first, and closes them."""
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


def fails(given: dict, kind: type[Exception] = SettingsError) -> str:
    """What the error says."""
    with pytest.raises(kind) as caught:
        open_models(resolve({"llm.retries": 0} | given, environment={}))
    return str(caught.value)


# ---- which model ----


@pytest.mark.parametrize("given", [{}, {"llm.model": "none"}, {"llm.model": " none "}, {"llm.model": ""},
                                   {"llm.stages": {"decide": {"temperature": 1}}}])  # fmt: skip
def test_no_model(given):
    assert open_models(resolve(given, environment={})) is None


def test_the_first_model_of_a_server(opened):
    with ScriptedServer(["yes"], models=["qwen", "other"]) as server:
        models = opened({"llm.model": server.url})
        assert models.name == "qwen" and server.listings == 1
        assert models.for_question(Trace()).complete([ask()])[0].text == "yes"
        assert server.requests[0].body["model"] == "qwen"


def test_one_of_several_models_of_a_server(opened):
    with ScriptedServer(["yes"], models=["qwen", "other"]) as server:
        models = opened({"llm.model": f"{server.url}#other/model:7b"})
        models.for_question(Trace()).complete([ask()])
        assert models.name == server.requests[0].body["model"] == "other/model:7b"
        assert server.listings == 0


def test_all_stages_share_a_model(opened):
    models = opened({"llm.model": f"{NOWHERE}#m"})
    assert set(models.by_stage) == set(STAGES)
    assert len({id(model) for model in models.by_stage.values()}) == 1
    assert all(models.sampling[stage] == Sampling() for stage in STAGES)


def test_the_variable_of_the_environment(opened):
    assert opened(KGQA_LLM=f"{NOWHERE}#from-environment").name == "from-environment"
    assert opened({"llm.model": f"{NOWHERE}#given"}, KGQA_LLM=f"{NOWHERE}#from-environment").name == "given"
    assert open_models(resolve(environment={"KGQA_LLM": ""})) is None


def test_openai_without_a_key(monkeypatch):
    monkeypatch.setenv("KGQA_LLM_KEY", KEY)  # of another server: it does not go to OpenAI
    said = fails({"llm.model": "openai:gpt-4.1-mini"}, ModelUnavailable)
    assert "OPENAI_API_KEY" in said and KEY not in said


def test_openai_with_a_key(opened, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    models = opened({"llm.model": "openai:gpt-4.1-mini"})
    model = models.by_stage["decide"]
    assert isinstance(model, OpenAIChat) and model.url == "https://api.openai.com/v1"
    assert models.name == "gpt-4.1-mini" and KEY not in repr(models)


def test_a_key_that_no_header_can_hold(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY + "\n" + KEY)
    said = fails({"llm.model": "openai:m"})
    assert "OPENAI_API_KEY" in said and KEY not in said


def test_the_key_of_a_server_goes_there_and_into_no_message(opened, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("KGQA_LLM_KEY", KEY)
    with ScriptedServer(lambda _: "yes", key=KEY) as server:
        assert opened({"llm.model": server.url}).for_question(Trace()).complete([ask()])[0].text == "yes"
        monkeypatch.setenv("KGQA_LLM_KEY", KEY + "-old")
        models = opened({"llm.model": f"{server.url}#m"})
        with pytest.raises(ModelUnavailable) as caught:
            models.for_question(Trace(Budget(seconds=20))).complete([ask()])
        assert "KGQA_LLM_KEY" in str(caught.value) and KEY not in str(caught.value)


def test_vllm_is_loaded_when_it_is_asked(opened):
    models = opened({"llm.model": "vllm:Qwen/Qwen3-0.6B"})
    assert models.name == "Qwen/Qwen3-0.6B" and isinstance(models.by_stage["decide"], VLLMChat)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4.1",
        "openai:",
        "openai",
        "vllm:",
        "replay:",
        "ollama:qwen",
        "ftp://host/v1",
        ":",
        "NONE",
        "http",
        "file:/etc",
    ],
)
def test_what_names_no_model(name):
    said = fails({"llm.model": name})
    assert "openai:NAME" in said or "http://" in said


@pytest.mark.parametrize(
    "name", ["http://user:secret@host/v1#m", "http://#m", "http:m", "https://host/v1?key=secret#m"]
)
def test_urls_that_are_none(name):
    said = fails({"llm.model": name})
    assert "secret" not in said and "URL" in said


def test_a_server_that_is_not_there():
    said = fails({"llm.model": NOWHERE}, ModelUnavailable)
    assert "127.0.0.1:9" in said and "name the model" in said


# ---- settings that decide where questions go are the user's own ----


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", '"http://evil.example/v1"'),
        ("replay", '"/tmp/x"'),
        ("extra_body", "{a = 1}"),
        ("stages", '{decide = {model = "http://evil.example/v1"}}'),
        ("prompts", '"theirs"'),
        ("prices", '"theirs.toml"'),
    ],
)
def test_a_file_in_the_working_folder_names_no_model(tmp_path, monkeypatch, name, value):
    monkeypatch.chdir(tmp_path)
    Path("kgqa.toml").write_text(f"[llm]\n{name} = {value}\n")
    assert BY_KEY[f"llm.{name}"].trusted
    with pytest.raises(SettingsError, match=f"llm.{name} cannot be set by a kgqa.toml in the working folder"):
        resolve(environment={})


def test_the_users_own_file_may(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(f'[llm]\nmodel = "{NOWHERE}#m"\nstages = {{decide = {{temperature = 1}}}}\n')
    models = open_models(resolve(environment={}, user_file=own, folder=tmp_path))
    assert models is not None and models.name == "m" and models.sampling["decide"].temperature == 1.0
    models.close()


# ---- stages ----


def test_each_stage_asks_its_model_in_its_way(opened):
    with ScriptedServer(lambda _: "yes") as server, ScriptedServer(lambda _: "no") as other:
        models = opened(
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
        asked = models.for_question(Trace())
        assert asked.name == models.name
        for stage in ("filter", "tournament", "decide", "judge"):
            asked.complete([ask(stage=stage)])
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


def test_stages_from_the_environment(opened):
    models = opened({"llm.model": f"{NOWHERE}#m"}, KGQA_LLM_STAGES='{"decide": {"temperature": 1, "seed": 0}}')
    assert models.sampling["decide"] == Sampling(temperature=1.0, seed=0)
    assert models.sampling["tournament"] == Sampling()


def test_the_baseline_explores_warmer_than_it_reasons(opened):
    models = opened({"llm.model": f"{NOWHERE}#m", "ask.method": "tog"})
    warm = {stage: models.sampling[stage].temperature for stage in ("filter", "entity", "decide")}
    assert warm == {"filter": 0.4, "entity": 0.4, "decide": 0.0}


@pytest.mark.parametrize(
    "stages",
    [
        {"nosuch": {}},
        {"decide": 3},
        {"decide": "gpt-4.1"},
        {"decide": {"nosuch": 1}},
        {"decide": {"choices": ["A"]}},
        {"decide": {"temperature": "0"}},
        {"decide": {"temperature": True}},
        {"decide": {"temperature": -1}},
        {"decide": {"temperature": float("nan")}},
        {"decide": {"temperature": None}},
        {"decide": {"top_p": -0.1}},
        {"decide": {"seed": 1.5}},
        {"decide": {"seed": -1}},
        {"decide": {"max_tokens": 0}},
        {"decide": {"max_tokens": 10.0}},
        {"decide": {"extra_body": [1]}},
        {"decide": {"model": 3}},
        {"decide": {"model": None}},
        {"decide": {"model": ""}},
        {"decide": {"model": "gpt-4.1"}},
        {"decide": {"model": "none"}},
    ],
    ids=str,
)
def test_stages_that_make_no_sense(stages):
    assert (
        "language model" in (said := fails({"llm.model": f"{NOWHERE}#m", "llm.stages": stages})) or "llm.stages" in said
    )


def test_a_model_for_a_stage_and_none_for_the_others():
    said = fails({"llm.stages": {"decide": {"model": f"{NOWHERE}#m"}}})
    assert "llm.stages" in said and "llm.model" in said


def test_where_one_model_cannot_be_opened_the_others_are_closed(monkeypatch):
    closed = []
    monkeypatch.setattr(OpenAIChat, "close", lambda self: closed.append(self.name))
    fails({"llm.model": f"{NOWHERE}#m", "llm.stages": {"judge": {"model": "gpt-4.1"}}})
    fails({"llm.model": f"{NOWHERE}#n", "llm.prices": "/no/such/file"})
    fails({"llm.model": f"{NOWHERE}#o", "budget.cost": 1.0})
    fails({"llm.model": f"{NOWHERE}#p", "llm.replay": "/dev/null/x"})
    assert closed == ["m", "n", "o", "p"]


# ---- recorded replies ----


def replies_of(models: Models, *prompts: Prompt) -> list[tuple[str, bool]]:
    return [(each.text, each.recorded) for each in models.for_question(Trace()).complete(prompts)]


def test_what_was_recorded_is_not_asked_again(opened, tmp_path):
    kept = {"llm.replay": str(tmp_path / "kept")}
    with ScriptedServer(lambda messages: messages[-1]["content"].upper()) as server:
        given = {"llm.model": f"{server.url}#m"} | kept
        models = opened(given)
        assert isinstance(models.by_stage["decide"], Replay) and models.name == "m"
        assert replies_of(models, ask("a"), ask("b")) == [("A", False), ("B", False)]
        models.close()
        assert replies_of(opened(given), ask("b"), ask("c")) == [("B", True), ("C", False)]
        assert server.calls == 3
        # other sampling makes another prompt
        assert replies_of(opened(given | {"llm.temperature": 0.5}), ask("a")) == [("A", False)]


@pytest.fixture
def kept(opened, tmp_path) -> str:
    """A file with a reply of the model `m`."""
    with ScriptedServer(["yes"]) as server:
        models = opened({"llm.model": f"{server.url}#m", "llm.replay": str(tmp_path / "kept")})
        replies_of(models, ask("known"))
        models.close()
    return str(tmp_path / "kept")


@pytest.mark.parametrize("name", [f"{NOWHERE}#m", NOWHERE, "openai:m", "vllm:m", "replay:FILE"])
def test_replies_alone_need_neither_server_nor_key(opened, kept, name):
    models = opened(
        {"llm.model": name.replace("FILE", kept)}
        if name.startswith("replay")
        else {"llm.model": name, "llm.replay": kept, "llm.replay_only": "on"}
    )
    assert models.name == "m"
    assert replies_of(models, ask("known")) == [("yes", True)]
    with pytest.raises(ModelUnavailable, match="'unheard of'"):
        replies_of(models, ask("unheard of"))


def test_replies_of_another_model(opened, kept):
    models = opened({"llm.model": f"{NOWHERE}#other", "llm.replay": kept, "llm.replay_only": "on"})
    with pytest.raises(ModelUnavailable, match="no reply of other"):
        replies_of(models, ask("known"))


def test_replies_alone_without_a_file(tmp_path):
    assert "--replay FILE" in fails({"llm.model": f"{NOWHERE}#m", "llm.replay_only": "on"})
    missing = str(tmp_path / "missing")
    given = {"llm.model": f"{NOWHERE}#m", "llm.replay": missing, "llm.replay_only": "on"}
    assert missing in fails(given, ModelUnavailable)
    assert missing in fails({"llm.model": f"replay:{missing}"}, ModelUnavailable)
    assert not Path(missing).exists()


def test_two_models_share_a_file(opened, tmp_path):
    with ScriptedServer(lambda _: "yes") as server:
        given = {
            "llm.model": f"{server.url}#small",
            "llm.stages": {"decide": {"model": f"{server.url}#large"}},
            "llm.replay": str(tmp_path / "kept"),
        }
        for recorded in (False, True):
            models = opened(given)
            assert replies_of(models, ask(stage="filter")) == replies_of(models, ask()) == [("yes", recorded)]
            models.close()
        assert [request.body["model"] for request in server.requests] == ["small", "large"]


# ---- prices ----


def test_our_prices_and_a_file_over_them(tmp_path):
    ours = read_prices(None)
    assert ours[PRICED] == (0.4, 1.6)
    assert all(0 < prompt < completion for prompt, completion in ours.values())
    file = tmp_path / "prices.toml"
    file.write_text('"gpt-4.1-mini" = { prompt = 1, completion = 2 }\n"my/model" = { prompt = 0, completion = 0.5 }\n')
    assert read_prices(str(file)) == ours | {PRICED: (1.0, 2.0), "my/model": (0.0, 0.5)}


@pytest.mark.parametrize(
    "content",
    [
        b"m = 3",
        b'm = "cheap"',
        b"m = { prompt = 1 }",
        b'm = { prompt = "a lot", completion = 1 }',
        b"m = { prompt = [1], completion = 1 }",
        b"m = { prompt = -1, completion = 1 }",
        b"m = { prompt = nan, completion = 1 }",
        b"m = { prompt = 1, completion = inf }",
        b"gpt-4.1 = { prompt = 1, completion = 1 }",
        b"[m",
        b"\xff",
    ],
)
def test_a_file_that_is_no_table_of_prices(tmp_path, content):
    file = tmp_path / "prices.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match="prices.toml is not a table of prices.*prompt = 0.4"):
        read_prices(str(file))
    with pytest.raises(SettingsError, match="nowhere.toml"):
        read_prices(str(tmp_path / "nowhere.toml"))


def test_a_limit_of_cost_needs_all_prices(opened, tmp_path):
    given = {
        "llm.model": f"{NOWHERE}#{PRICED}",
        "llm.stages": {"judge": {"model": f"{NOWHERE}#new"}},
        "budget.cost": 1.0,
    }
    said = fails(given)
    assert "--max-cost" in said and "llm.prices" in said and '"new" =' in said and PRICED not in said
    file = tmp_path / "prices.toml"
    file.write_text("new = { prompt = 1, completion = 2 }")
    assert opened(given | {"llm.prices": str(file)}).without_price() == []
    assert opened(given | {"budget.cost": None}).without_price() == ["new"]


# ---- one question ----


@contextmanager
def question(opened, reply, budget: Budget = Budget(), *, name: str = PRICED, **settings):
    """The server, the question's trace and its way to the model."""
    with ScriptedServer(reply) as server:
        trace = Trace(budget)
        given = {"llm.model": f"{server.url}#{name}"} | {key.replace("__", "."): v for key, v in settings.items()}
        yield server, trace, opened(given).for_question(trace)


def test_calls_tokens_and_cost_are_charged_by_stage(opened):
    reply = ModelReply("yes", prompt_tokens=1000, completion_tokens=500)
    with question(opened, lambda _: reply) as (_, trace, asked):
        assert [each.text for each in asked.complete([ask("a"), ask("b"), ask("c")])] == ["yes"] * 3
        asked.complete([ask(stage="tournament")])
        asked.complete([ask()])
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


def test_without_a_price_there_is_no_cost(opened):
    with question(opened, ["yes"], name="unheard-of") as (_, trace, asked):
        asked.complete([ask()])
        assert trace.usage().cost is None and trace.usage().calls == 1


def test_nothing_asked_is_nothing_charged(opened):
    with question(opened, ["yes"], Budget(calls=0)) as (server, trace, asked):
        assert asked.complete([]) == []
        assert trace.usage().stages == () and server.calls == 0


@pytest.mark.parametrize(
    ("budget", "before", "said"),
    [
        (Budget(calls=3), [2, 1], "3 model calls"),
        (Budget(calls=3), [2], "3 model calls"),
        (Budget(calls=0), [], "0 model calls"),
        (Budget(tokens=3000), [1, 1], "3000 tokens"),
        (Budget(tokens=1501), [1, 1], "1501 tokens"),
        (Budget(tokens=0), [], "0 tokens"),
        (Budget(cost=0.0024), [2], "0.0024 USD"),
        (Budget(cost=0.0013), [1, 1], "0.0013 USD"),
        (Budget(cost=0.0), [], "0 USD"),
    ],
    ids=str,
)
def test_a_budget_that_is_spent(opened, budget, before, said):
    """`before`: batches that go through; the next one, of two, is not sent."""
    reply = ModelReply("yes", prompt_tokens=1000, completion_tokens=500)  # 0.0012 USD
    with question(opened, lambda _: reply, budget) as (server, trace, asked):
        for size in before:
            assert len(asked.complete([ask(str(number)) for number in range(size)])) == size
        for _ in range(2):
            with pytest.raises(BudgetExhausted, match=said):
                asked.complete([ask(), ask()])
        assert server.calls == trace.usage().calls == sum(before)


def test_a_hanging_server_does_not_take_more_time_than_there_is(opened):
    with question(opened, lambda _: faults.hangs(30), Budget(seconds=0.3)) as (server, trace, asked):
        start = time.monotonic()
        with pytest.raises(BudgetExhausted, match="in time"):
            asked.complete([ask()])
        assert 0.2 < time.monotonic() - start < 3
        with pytest.raises(BudgetExhausted, match="0.3 seconds"):
            asked.complete([ask()])
        assert trace.usage().calls == server.calls == 1


def test_an_error_reaches_whoever_waits(opened):
    with question(opened, [faults.no_such_model(PRICED)], Budget(seconds=20)) as (_, _trace, asked):
        with pytest.raises(ModelUnavailable, match=PRICED):
            asked.complete([ask()])


def test_with_time_left_replies_come_as_they_are(opened):
    with question(opened, lambda messages: messages[0]["content"], Budget(seconds=20)) as (_, _trace, asked):
        texts = [str(number) for number in range(12)]
        assert [each.text for each in asked.complete([ask(text) for text in texts])] == texts


def test_failures_are_counted_and_told(opened):
    replies = {
        "a": faults.refusal("I will not"),
        "b": faults.empty(),
        "c": ModelReply("half", finish_reason="length"),
        "d": faults.failing(400, "Too odd."),
        "e": "yes",
    }
    with question(opened, lambda messages: replies[messages[0]["content"]]) as (_, trace, asked):
        completions = asked.complete([ask(text) for text in replies])
        assert [each.failure for each in completions] == ["refused", "empty", "length", "rejected", ""]
        assert trace.usage().stages[0].failed == 4
        told = [event.detail for event in trace.events() if event.kind == "no_reply"]
        assert [each["failure"] for each in told] == ["refused", "empty", "length", "rejected"]
        assert all(each["stage"] == "decide" and each["detail"] for each in told)
        json.dumps([event.detail for event in trace.events()])


def test_what_a_model_thought_is_in_the_trace(opened):
    with question(opened, [ModelReply("yes", reasoning="Hm. " * 2000)]) as (_, trace, asked):
        asked.complete([ask()])
        (event,) = [event for event in trace.events() if event.kind == "reasoning"]
        assert event.detail["stage"] == "decide" and event.detail["text"].startswith("Hm. Hm.")
        assert len(event.detail["text"]) <= 2000


def test_questions_in_threads_are_charged_for_their_own(opened):
    with ScriptedServer(lambda messages: messages[0]["content"]) as server:
        models = opened({"llm.model": f"{server.url}#m"})
        traces = [Trace() for _ in range(6)]
        got: dict[int, list[str]] = {}

        def run(number: int) -> None:
            asked = models.for_question(traces[number])
            got[number] = [c.text for c in asked.complete([ask(f"{number}.{i}") for i in range(number + 1)])]

        threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert got == {number: [f"{number}.{i}" for i in range(number + 1)] for number in range(6)}
        assert [trace.usage().calls for trace in traces] == [1, 2, 3, 4, 5, 6]


def test_notes_are_said_once(opened):
    with ScriptedServer(lambda _: "yes", rejects=["seed"]) as server:
        models = opened({"llm.model": f"{server.url}#m", "llm.seed": 1})
        asked = models.for_question(Trace())
        assert isinstance(asked, QuestionModels)
        asked.complete([ask(), ask("b")])
        asked.complete([ask(stage="filter")])
        (note,) = models.notes
        assert "seed" in note


@pytest.mark.parametrize(
    ("given", "exploring"), [({}, 0.4), ({"llm.temperature": 0.0}, 0.0), ({"tog.temperature": 1.0}, 1.0)]
)
def test_think_on_graph_explores_with_some_temperature_unless_told_otherwise(opened, given, exploring):
    with ScriptedServer(lambda messages: "yes") as server:
        models = opened(
            {"llm.model": f"{server.url}#m", "ask.method": "tog", "llm.stages": {"judge": {"seed": 1}}} | given
        )
    assert [models.sampling[stage].temperature for stage in ("filter", "entity", "decide")] == [
        exploring,
        exploring,
        0.0,
    ]
    assert models.sampling["judge"].seed == 1


def test_kept_replies_of_nobody_are_an_error():
    assert "--llm" in fails({"llm.replay": "kept.sqlite"})
