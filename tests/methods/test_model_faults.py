"""A question to a model's server that misbehaves in one way after the other: a failure that says so, or the answer that
was given; never a defect of ours, never an answer that no one gave."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest

from kgqa import ask, open_resources
from kgqa.settings.values import resolve
from kgqa.storage.answer_json import answer_object, json_text
from kgqa.testing import faults
from kgqa.testing.faults import Fault, ModelReply, failing
from kgqa.testing.server import ScriptedServer, completion

GOOD_REPLY = '{"answers": ["Ada"]}'
BODY = completion(ModelReply(GOOD_REPLY), {"messages": [], "model": "m"})
BODY_BYTES = json.dumps(BODY).encode()


def body(*path, value) -> Fault:
    """Return a correct body with one value replaced."""
    changed = json.loads(BODY_BYTES)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return Fault(body=json.dumps(changed).encode())


def with_content(content) -> Fault:
    return body("choices", 0, "message", "content", value=content)


WITHOUT_ANSWER = {
    **{f"status {status}": failing(status, "No.") for status in (400, 401, 404, 413, 422, 429, 500)},
    **{f"status {status}, no body": Fault(status) for status in (204, 304, 400, 999)},
    "redirect": faults.redirected("http://[::1]:9/", 307),
    "come back never": faults.rate_limited("inf"),
    "a page, 502": Fault(502, b"<html>Bad gateway</html>", "text/html"),
    "400, details of another form": Fault(400, b'{"detail": [{"loc": 5}, 7, {"loc": [[1]]}], "param": [1]}'),
    "zipped": faults.zipped(100),
    "more than fits": with_content("x" * (9 << 20)),
    "not what was zipped": Fault(200, BODY_BYTES, headers=(("Content-Encoding", "gzip"),)),
    "nothing": Fault(),
    "deep": Fault(body=b"[" * 100_000),
    "cut off": faults.cut_off(),
    "no UTF-8": Fault(body=BODY_BYTES.replace(b"Ada", b"\xff\xfe")),
    "an error with 200": faults.error_with_200(),
    **{f"choices {value!r}": body("choices", value=value) for value in (None, [], [{}])},
    **{f"message {value!r}": body("choices", 0, "message", value=value) for value in (None, "Ada", {})},
    **{f"content {value!r}": with_content(value) for value in (None, " ", 7, {"text": "Ada"}, [{"text": 7}])},
    "content, prose": with_content("I am afraid I cannot tell."),
    "content, control characters": with_content("\x00\x1b]0;x\x07" * 100),
    "content, half a character": with_content("\ud800"),
    "content, only thoughts": with_content("<think>Ada"),
    "refused": body("choices", 0, "message", "refusal", value="No."),
    "filtered": body("choices", 0, "finish_reason", value="content_filter"),
    "dropped": faults.dropped(),
    "silent": faults.hangs(5),
    "no HTTP": Fault(raw=b"Ada\r\n\r\n"),
}
WITH_ANSWER = {
    "good": ModelReply(GOOD_REPLY),
    "UTF-16": Fault(body=BODY_BYTES.decode().encode("utf-16")),
    "tokens of 400 digits": body("usage", "prompt_tokens", value=10**400),
    "thoughts that are none": body("choices", 0, "message", "reasoning", value={"x": 1}),
    "parts": with_content([{"type": "text", "text": GOOD_REPLY}, 7, None]),
    "escapes around it": with_content(f"\x1b[31m{GOOD_REPLY}\x1b[0m"),
    "much before it": with_content("x" * 1_000_000 + "\n" + GOOD_REPLY),
}


@pytest.fixture(scope="module")
def graph(session_cache):
    from kgqa.graph.opening import open_graph
    from kgqa.storage.cache import Cache

    with open_graph(cache=Cache(session_cache)) as demo:
        yield demo


def ask_model(graph, url: str, question: str = "Who wrote the first program?", **given):
    settings = {"ask.method": "io", "rank.embeddings": "off", "llm.model": f"{url}#m", "llm.retries": 0}
    settings |= {"llm.timeout": 0.5, "llm.reask": 0, "llm.prices": None}
    resources = open_resources(graph, settings=resolve({**settings, **given}))
    try:
        return ask(question, resources=resources)
    finally:
        resources.models.close()


@pytest.mark.parametrize("name", [*WITHOUT_ANSWER, *WITH_ANSWER])
def test_malformed_model_replies(graph, tmp_path, name):
    prices = tmp_path / "prices.toml"
    prices.write_text("m = { prompt = 0.4, completion = 1.6 }")
    with ScriptedServer(lambda messages: WITHOUT_ANSWER.get(name) or WITH_ANSWER[name]) as server:
        tracemalloc.start()
        answer = ask_model(graph, server.url, **{"llm.prices": str(prices)})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if name in WITH_ANSWER:
        assert (answer.status, [item.name for item in answer.answers]) == ("answered", ["Ada"])
    else:
        assert (answer.status in ("failed", "no_answer"), answer.answers, answer.grounding) == (True, (), "none")
        assert answer.reason.isprintable() and answer.reason and len(answer.reason) < 1000
    json_text(answer_object(answer)).encode()
    assert peak < 128 << 20


def test_reply_that_comes_too_late_ends_with_the_budget(graph):
    with ScriptedServer(lambda messages: faults.hangs(30)) as server:
        start = time.monotonic()
        answer = ask_model(graph, server.url, **{"budget.seconds": 1.0, "llm.timeout": 20})
    assert time.monotonic() - start < 10 and (answer.status, answer.answers) == ("budget_exhausted", ())


PARASITE = "Who directed the film Parasite?"


@pytest.mark.parametrize("message", ["System role not supported", "Conversation roles must alternate user/assistant"])
def test_prompts_are_sent_without_system_messages_if_the_model_takes_none(graph, message):
    def reply(messages):
        return "[A]" if [each["role"] for each in messages] == ["user"] else failing(400, message)

    with ScriptedServer(reply) as server:
        answer = ask_model(graph, server.url, PARASITE, **{"ask.method": "top-2", "llm.concurrency": 1})
        sent = [[each["role"] for each in request.messages] for request in server.requests]
        assert sent[0] == ["system", "user"] and all(roles == ["user"] for roles in sent[1:])
    assert answer.usage.stages[0].failed == 0 and not answer.usage.no_usable_reply


@pytest.mark.parametrize("fault", [faults.too_long(), failing(400, "The content filter refused it.")])
def test_a_model_that_refuses_every_prompt_has_not_compared(graph, fault):
    with ScriptedServer(lambda messages: fault) as server:
        answer = ask_model(graph, server.url, PARASITE, **{"ask.method": "top-2"})
    assert answer.usage.no_usable_reply
    assert any(note.startswith("No reply of m could be used (400 ") for note in answer.notes)
    assert not any("Compared by" in note for note in answer.notes)


@pytest.mark.parametrize("reply", [ModelReply(""), ModelReply("", reasoning="It is [A]."), ModelReply("[THINK]A? [1]")])
@pytest.mark.parametrize("method", ["top-2", "io"])
def test_replies_that_stay_empty_end_the_question(graph, method, reply):
    with ScriptedServer(lambda messages: reply) as server:
        answer = ask_model(graph, server.url, PARASITE, **{"ask.method": method, "llm.reask": 5})
        assert server.calls <= 20
    assert answer.status == "failed" and "The replies of m stay empty: the reply is " in answer.reason


@pytest.mark.parametrize(
    "form", ["<think>%s</think>%s", "<seed:think>%s</seed:think>%s", "analysis%s assistantfinal%s"]
)
def test_reasoning_is_not_the_answer(graph, form):
    with ScriptedServer([form % (' Perhaps {"answers": ["Bo"]}', GOOD_REPLY)]) as server:
        answer = ask_model(graph, server.url)
    assert [each.name for each in answer.answers] == ["Ada"]
