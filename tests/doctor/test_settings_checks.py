"""Checks of the language model, on the scripted server, of the settings and of the cache."""

from __future__ import annotations

import socket

import pytest

from kgqa.doctor.examination import CHECKS, run_check
from kgqa.doctor.settings_checks import AT_ONCE
from kgqa.doctor.subject import LEFT_OUT, Subject
from kgqa.graph.endpoint.options import Access
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing.faults import ModelReply, failing
from kgqa.testing.server import ScriptedServer
from tests.doctor.subjects import finding_of

NAMES = ("model", "choice mode", "model concurrency")


def model_findings(url: str | None, *, asks_model: bool = True, **given):
    """Return the findings about the model, the choice mode and the concurrency."""
    subject = Subject(resolve({"llm.model": url, **given}), Cache.default(), asks_model)
    check = next(check for check in CHECKS if check.names == NAMES)
    with subject.opened:
        return list(run_check(check, subject))


@pytest.mark.parametrize(
    "options, mode, calls",
    [
        ({"constrains": "structured_outputs"}, "structured_outputs", 1 + AT_ONCE),
        ({"constrains": "json_schema"}, "json_schema", 2 + AT_ONCE),
        ({"constrains": "none"}, "Free text", 2 + AT_ONCE),
        ({"constrains": "none", "ignores_silently": False}, "Free text", 3 + AT_ONCE),
    ],
)
def test_ways_to_constrain_replies(options, mode, calls):
    with ScriptedServer(lambda messages: "A", latency=0.2, **options) as server:
        model, choice, at_once = model_findings(server.url)
        assert server.calls == calls and server.most_at_once > 1
    assert (model.verdict, choice.verdict, at_once.verdict) == ("ok", "ok", "ok")
    assert choice.found == f"{mode}: {AT_ONCE} of {AT_ONCE} replies could be read."
    assert model.found.startswith("scripted answered") and "tokens" in at_once.found


@pytest.mark.parametrize(
    "reply, verdicts, word",
    [
        ("It is all very interesting.", ("ok", "failed", "ok"), "0 of 4 replies"),
        (ModelReply("", finish_reason="length"), ("failed", "skipped", "warning"), "There was no reply to read."),
        (failing(400, "The engine is on fire."), ("failed", "skipped", "warning"), ""),
    ],
)
def test_unusable_replies(reply, verdicts, word):
    with ScriptedServer(lambda messages: reply) as server:
        findings = model_findings(server.url)
    assert tuple(finding.verdict for finding in findings) == verdicts and word in findings[1].found, findings
    assert all(finding.remedy for finding in findings if finding.verdict in ("failed", "warning"))
    assert word or "on fire" in findings[0].found


def test_no_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        findings = model_findings(f"{url}#any")
    assert [finding.verdict for finding in findings] == ["failed", "skipped", "skipped"]
    assert findings[0].found == f"Nothing answers at {url}." and findings[0].remedy


def test_wrong_key_is_not_shown(monkeypatch):
    monkeypatch.setenv("KGQA_LLM_KEY", "sk-very-secret")
    with ScriptedServer(["A"], key="another") as server:
        findings = model_findings(f"{server.url}#any")
    assert findings[0].verdict == "failed" and "KGQA_LLM_KEY" in findings[0].remedy
    assert "very-secret" not in str(findings)


def test_slow_model(monkeypatch):
    monkeypatch.setattr("kgqa.doctor.settings_checks.SECONDS", 0.3)
    with ScriptedServer(lambda messages: "A", latency=5.0) as server:
        model = model_findings(server.url)[0]
    assert model.verdict == "failed" and model.remedy


@pytest.mark.parametrize(
    "url, asks_model, word",
    [
        (None, True, "No language model is set"),
        ("http://127.0.0.1:1/v1#x", True, "Replies come from a file"),
        ("http://127.0.0.1:1/v1#x", False, LEFT_OUT),
    ],
)
def test_no_model_is_called(tmp_path, url, asks_model, word):
    recorded = {"llm.replay": str(tmp_path / "r"), "llm.replay_only": "on"} if "file" in word else {}
    findings = model_findings(url, asks_model=asks_model, **recorded)
    assert {(finding.verdict, word in finding.found) for finding in findings} == {("skipped", True)}


def test_cost_and_no_record(tmp_path):
    """The replies are priced, and not recorded."""
    prices, file = tmp_path / "prices.toml", tmp_path / "replies.jsonl"
    prices.write_text("scripted = { prompt = 1000000, completion = 0 }\n")
    with ScriptedServer(lambda messages: "A") as server:
        findings = model_findings(server.url, **{"llm.prices": str(prices), "llm.replay": str(file)})
    assert findings[0].verdict == "ok" and not file.exists()
    assert findings[2].found.endswith(" USD.") and "0.0000 USD" not in findings[2].found
    assert model_findings("gpt")[0].verdict == "failed"


@pytest.mark.parametrize(
    "given, verdict, word",
    [
        ({}, "ok", "Changed: "),
        ({"ask.method": "cot"}, "failed", "needs a language model"),
        ({"rank.chooser": "llm"}, "failed", "rank.chooser needs a language model"),
        ({"rank.ranker": "/nowhere.ranker"}, "failed", "rank.ranker names no file"),
        ({"ask.preset": "as-published"}, "warning", "as-published"),
        ({"llm.temperature": 0.7}, "warning", "repeated runs differ"),
        (
            {"explore.depth": 2, "explore.beam": 10, "budget.seconds": 0.2},
            "warning",
            "32 queries take 0 s, over budget",
        ),
        ({"budget.queries": 5}, "warning", "over budget.queries"),
        ({"endpoint.user": "me"}, "warning", "no password"),
    ],
)
def test_unusual_settings(tmp_path, given, verdict, word):
    subject = Subject(resolve(given, folder=tmp_path), Cache(tmp_path), query_seconds=0.01)
    subject.access = Access(user=subject.settings.endpoint.user or "")
    finding = finding_of("settings", subject)
    assert finding.verdict == verdict and word in finding.found and bool(finding.remedy) == (verdict != "ok")


def test_settings_file_is_named_without_its_values(tmp_path):
    (tmp_path / "kgqa.toml").write_text('[endpoint]\ncontact = "somebody@secret.example"\n')
    finding = finding_of("settings", Subject(resolve({}, folder=tmp_path), Cache(tmp_path)))
    assert "Set by kgqa.toml in the working folder: endpoint.contact" in finding.found
    assert "secret" not in finding.found


def test_cache_and_embeddings(tmp_path, monkeypatch):
    cache = Cache(tmp_path / "cache")
    (tmp_path / "cache" / "models" / "x").mkdir(parents=True)
    (tmp_path / "cache" / "models" / "x" / "y").write_bytes(b"0" * 20_000_000)
    finding = finding_of("cache", Subject(resolve(), cache))
    assert finding.verdict == "ok" and "uses 0.02 of at most 10.7 GB" in finding.found
    assert [item.name for item in cache.folder.iterdir()] == ["models"]
    (tmp_path / "file").write_text("")
    finding = finding_of("cache", Subject(resolve(), Cache(tmp_path / "file" / "cache")))
    assert finding.verdict == "warning" and "cache.folder" in finding.remedy
    off = Subject(resolve({"rank.embeddings": "off"}), Cache(tmp_path))
    assert finding_of("embeddings", off).verdict == "skipped"
    monkeypatch.setattr("kgqa.doctor.settings_checks.encoder_of", lambda *settings, say: None)
    finding = finding_of("embeddings", Subject(resolve(), cache))
    assert finding.verdict == "warning" and "minilm" in finding.remedy
