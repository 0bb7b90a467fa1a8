"""The checks that query a language model, on the scripted server."""

from __future__ import annotations

import socket

import pytest

from kgqa.doctor.examination import OTHER_CHECKS, Examination
from kgqa.doctor.model_checks import AT_ONCE, cost_words
from kgqa.llm.client import Completion
from kgqa.settings.values import resolve
from kgqa.testing.faults import ModelReply, failing
from kgqa.testing.server import ScriptedServer

NAMES = ("model", "choice mode", "model concurrency")


def checks(url: str | None, **given):
    """Return the checks of the model, of the choice mode and of concurrency."""
    examination = Examination(resolve({"llm.model": url, **given}))
    examination.run_checks(row for row in OTHER_CHECKS if row.name in NAMES)
    return [check for check in examination.health().checks if check.name in NAMES]


@pytest.mark.parametrize(
    "options, mode, calls",
    [
        ({"constrains": "structured_outputs"}, "structured_outputs", 1 + AT_ONCE),
        ({"constrains": "json_schema"}, "json_schema", 2 + AT_ONCE),
        ({"constrains": "json_schema", "ignores_silently": False}, "json_schema", 2 + AT_ONCE),
        ({"constrains": "none"}, "Free text", 2 + AT_ONCE),
        ({"constrains": "none", "ignores_silently": False}, "Free text", 3 + AT_ONCE),
    ],
)
def test_ways_to_constrain_replies(options, mode, calls):
    with ScriptedServer(lambda messages: "A", latency=0.05, **options) as server:
        model, choice, at_once = checks(server.url)
        assert server.calls == calls
    assert (model.verdict, choice.verdict, at_once.verdict) == ("ok", "ok", "ok")
    assert choice.found.startswith(mode) and f"{AT_ONCE} of {AT_ONCE} replies could be read" in choice.found
    assert model.found.startswith("scripted answered")
    assert "tokens" in at_once.found and server.most_at_once > 1


def test_unreadable_replies():
    with ScriptedServer(lambda messages: "It is all very interesting.") as server:
        _, choice, _ = checks(server.url)
    assert choice.verdict == "failed" and "0 of 4 replies" in choice.found and choice.remedy


def test_empty_replies():
    with ScriptedServer(lambda messages: ModelReply("", finish_reason="length")) as server:
        model, choice, at_once = checks(server.url)
    assert model.verdict == "failed" and model.remedy
    assert choice.verdict == "skipped" and at_once.verdict == "warning"


def test_no_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        model_checks = checks(f"{url}#any")
    assert [check.verdict for check in model_checks] == ["failed", "skipped", "skipped"]
    assert model_checks[0].found == f"Nothing answers at {url}." and model_checks[0].remedy


def test_wrong_key_is_not_shown(monkeypatch):
    monkeypatch.setenv("KGQA_LLM_KEY", "sk-very-secret")
    with ScriptedServer(["A"], key="another") as server:
        model_checks = checks(f"{server.url}#any")
    assert model_checks[0].verdict == "failed" and "KGQA_LLM_KEY" in model_checks[0].remedy
    assert "very-secret" not in str(model_checks)


def test_server_error():
    with ScriptedServer(lambda messages: failing(400, "The engine is on fire.")) as server:
        model_checks = checks(server.url)
    assert model_checks[0].verdict == "failed" and "on fire" in model_checks[0].found


def test_slow_model(monkeypatch):
    monkeypatch.setattr("kgqa.doctor.model_checks.SECONDS", 0.3)
    with ScriptedServer(lambda messages: "A", latency=5.0) as server:
        model_checks = checks(server.url)
    assert model_checks[0].verdict == "failed" and model_checks[0].remedy


def test_replies_are_not_recorded(tmp_path):
    file = tmp_path / "replies.jsonl"
    with ScriptedServer(lambda messages: "A") as server:
        model_checks = checks(server.url, **{"llm.replay": str(file)})
    assert model_checks[0].verdict == "ok" and not file.exists()


def test_checks_are_skipped_without_a_model(tmp_path):
    assert {check.verdict for check in checks(None)} == {"skipped"}
    recorded = {"llm.replay": str(tmp_path / "r"), "llm.replay_only": "on"}
    assert {check.verdict for check in checks("http://127.0.0.1:1/v1#x", **recorded)} == {"skipped"}


def test_unknown_kind_of_model():
    assert checks("gpt")[0].verdict == "failed"


def test_cost_words():
    completions = [Completion("A", prompt_tokens=1_000_000, completion_tokens=500_000)] * 2
    assert cost_words(completions, (0.4, 1.6)).endswith("2 calls: 3,000,000 tokens, 2.4000 USD.")
    assert cost_words(completions, None).endswith("3,000,000 tokens.")
