"""The scripted model server: replies, faults and closing."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

import pytest

from kgqa.testing import faults
from kgqa.testing.constrained_replies import nearest
from kgqa.testing.faults import Fault, ModelReply
from kgqa.testing.server import ScriptedServer


def send(server: ScriptedServer, method: str, path: str, body: object = None, headers: dict[str, str] | None = None):
    """Send a request and return status, headers and text."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    try:
        content = body if isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, None if body is None else content, headers or {})
        response = connection.getresponse()
        return response.status, dict(response.headers), response.read().decode()
    finally:
        connection.close()


def chat(server: ScriptedServer, text: str = "hello", **fields: object):
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
    return send(server, "POST", "/v1/chat/completions", body)


def choice_of(text: str) -> dict:
    return json.loads(text)["choices"][0]


def run_in_threads(count: int, function) -> None:
    threads = [threading.Thread(target=function, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- replies ----


def test_replies_are_sent_in_order():
    with ScriptedServer(["one", ModelReply("two", finish_reason="length")]) as server:
        server.enqueue("three")
        bodies = [json.loads(chat(server, str(i))[2]) for i in range(3)]
        assert [body["choices"][0]["message"]["content"] for body in bodies] == ["one", "two", "three"]
        assert [body["choices"][0]["finish_reason"] for body in bodies] == ["stop", "length", "stop"]
        status, _, text = chat(server)
        assert status == 400 and "no reply left" in text
        assert server.calls == 4
        assert [request.messages[0]["content"] for request in server.requests] == ["0", "1", "2", "hello"]


def test_function_replies_after_the_queue():
    with ScriptedServer(lambda messages: messages[-1]["content"].upper()) as server:
        server.enqueue("first")
        assert [choice_of(chat(server, "abc")[2])["message"]["content"] for _ in range(2)] == ["first", "ABC"]


def test_exception_of_the_function_is_in_the_reply():
    with ScriptedServer(lambda messages: messages[7]) as server:
        status, _, text = chat(server)
        assert status == 400 and "IndexError" in text
        assert isinstance(server.errors[0], IndexError)


def test_fields_of_a_reply():
    reply = ModelReply(
        "text", reasoning="why", reasoning_field="reasoning_content", logprobs={"content": []}, prompt_tokens=7
    )
    with ScriptedServer([reply, faults.refusal("no"), "x" * 40]) as server:
        body = json.loads(chat(server, temperature=0.5)[2])
        assert body["model"] == "m" and body["object"] == "chat.completion"
        assert body["choices"][0]["message"]["reasoning_content"] == "why"
        assert body["choices"][0]["logprobs"] == {"content": []}
        assert body["usage"] == {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
        message = choice_of(chat(server)[2])["message"]
        assert message["refusal"] == "no" and message["content"] is None and "reasoning" not in message
        assert json.loads(chat(server, "y" * 80)[2])["usage"]["prompt_tokens"] == 20
        assert server.requests[0].body["temperature"] == 0.5


def test_key_is_checked_and_not_recorded():
    with ScriptedServer(lambda _: "yes", key="right") as server:
        body = {"model": "m", "messages": []}
        for key, status in (("right", 200), ("wrong", 401), ("", 401)):
            assert send(server, "POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})[0] == status
            assert send(server, "GET", "/v1/models", None, {"Authorization": f"Bearer {key}"})[0] == status
        assert server.calls == 3 and server.listings == 3
        assert all("authorization" not in request.headers for request in server.requests)
        assert "content-length" in server.requests[0].headers


def test_model_list_and_unknown_paths():
    with ScriptedServer(models=["a", "b"]) as server:
        status, headers, text = send(server, "GET", "/v1/models")
        assert status == 200 and headers["Content-Type"] == "application/json"
        assert [model["id"] for model in json.loads(text)["data"]] == ["a", "b"]
        for method, path in (
            ("POST", "/v1/completions"),
            ("GET", "/v1/chat/completions"),
            ("GET", "/"),
            ("PUT", "/v1/models"),
        ):
            assert send(server, method, path)[0] == 404
        assert server.calls == 0 and server.listings == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"model": 1, "messages": []}', b'{"model": "m"}', b'{"model": "m", "messages": [1]}'],
)
def test_invalid_request(body):
    with ScriptedServer(["never"]) as server:
        assert send(server, "POST", "/v1/chat/completions", body)[0] == 400
        assert server.calls == 0


# ---- faults ----


@pytest.mark.parametrize(
    ("fault", "status", "message"),
    [
        (faults.rate_limited(), 429, "Rate limit"),
        (faults.out_of_quota(), 429, "quota"),
        (faults.server_error(), 500, "error"),
        (faults.server_error(503), 503, "error"),
        (faults.wrong_key("sk-1"), 401, "sk-1"),
        (faults.no_such_model("big"), 404, "`big`"),
        (faults.unsupported("temperature"), 400, "'temperature' is not supported"),
        (faults.unsupported("max_tokens"), 400, "max_completion_tokens"),
        (faults.too_long(), 400, "context length"),
        (faults.error_with_200("oops"), 200, "oops"),
        (faults.no_choices(), 200, '"choices": []'),
        (faults.html(), 200, "<html>"),
        (faults.half_json(), 200, '"choices"'),
        (faults.empty(), 200, '"content": ""'),
        (faults.thinks("yes", "hm"), 200, "<think>\\nhm\\n</think>"),
        (Fault(418, b"teapot", "text/plain"), 418, "teapot"),
    ],
)  # fmt: skip
def test_fault(fault, status, message):
    with ScriptedServer([fault, "well"]) as server:
        got, headers, text = chat(server)
        assert got == status and message in text
        assert "Retry-After" not in headers
        if status >= 400 and headers["Content-Type"] == "application/json":
            assert json.loads(text)["error"]["message"]
        assert choice_of(chat(server)[2])["message"]["content"] == "well"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (3, "3"),
        (0.5, "0.5"),
        ("soon", "soon"),
        (datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), "Wed, 02 Jan 2030 03:04:05 GMT"),
    ],
)
def test_retry_after_header(given, sent):
    with ScriptedServer([faults.rate_limited(given)]) as server:
        assert chat(server)[1]["Retry-After"] == sent


def test_truncated_body():
    with pytest.raises(json.JSONDecodeError):
        json.loads(faults.half_json().body)


@pytest.mark.parametrize(
    "fault", [faults.dropped(), faults.hangs(0.05), faults.cut_off()], ids=["dropped", "hangs", "cut off"]
)
def test_dropped_connection(fault):
    with ScriptedServer([fault, "well"]) as server:
        with pytest.raises((HTTPException, ConnectionError)):
            chat(server)
        assert chat(server)[0] == 200


def test_rejected_fields():
    with ScriptedServer(lambda _: "yes", rejects=["seed"]) as server:
        assert chat(server)[0] == 200
        status, _, text = chat(server, seed=1)
        assert status == 400 and json.loads(text)["error"]["param"] == "seed"


# ---- many at once, and the end ----


def test_connection_is_reused():
    with ScriptedServer(lambda _: "yes") as server:
        connection = HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        for _ in range(3):
            connection.request("POST", "/v1/chat/completions", b'{"model": "m", "messages": []}')
            connection.getresponse().read()
            assert connection.sock is not None
            first = connection.sock
        assert connection.sock is first
        connection.close()


def test_maximum_of_concurrent_requests():
    with ScriptedServer(lambda _: "yes", latency=0.2) as server:
        start = time.monotonic()
        run_in_threads(5, lambda i: chat(server))
        assert server.most_at_once == 5 and server.calls == 5
        assert time.monotonic() - start >= 0.2
        server.latency = 0
        for _ in range(3):
            chat(server)
        assert server.most_at_once == 5
        assert server.requests[0].arrived >= start


def test_each_reply_is_sent_once_to_concurrent_clients():
    with ScriptedServer([str(i) for i in range(40)]) as server:
        got: list[str] = []
        run_in_threads(8, lambda _: got.extend(choice_of(chat(server)[2])["message"]["content"] for _ in range(5)))
        assert sorted(map(int, got)) == list(range(40))


@pytest.mark.parametrize(
    "slow", [{"reply": [faults.hangs(60)]}, {"reply": ["late"], "latency": 60}], ids=["hangs", "latency"]
)
def test_close_during_a_waiting_request(slow):
    others = set(threading.enumerate())
    server = ScriptedServer(**slow)
    caught: list[Exception] = []

    def ask(_: int) -> None:
        try:
            chat(server)
        except (HTTPException, OSError) as error:
            caught.append(error)

    thread = threading.Thread(target=ask, args=(0,))
    thread.start()
    while not server.calls:
        time.sleep(0.01)
    start = time.monotonic()
    server.close()
    thread.join(5)
    assert not thread.is_alive() and caught
    assert time.monotonic() - start < 20
    server.close()
    while any("process_request" in thread.name for thread in set(threading.enumerate()) - others):
        assert time.monotonic() - start < 20
        time.sleep(0.01)


def test_close_ends_kept_connections():
    with ScriptedServer(["yes"]) as server:
        connection = HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        connection.request("POST", "/v1/chat/completions", b'{"model": "m", "messages": []}')
        connection.getresponse().read()
    assert connection.sock is not None and connection.sock.recv(1) == b""
    connection.close()


def test_port_is_free_after_close():
    with ScriptedServer(["never"]) as server:
        pass
    with pytest.raises(ConnectionError):
        chat(server)


# ---- choices ----

STRUCTURED = {"structured_outputs": {"choice": ["red", "blue"]}}
SCHEMA = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {
            "name": "choice",
            "schema": {"type": "object", "properties": {"choice": {"enum": ["red", "blue"]}}},
        },
    }
}


@pytest.mark.parametrize(
    ("constrains", "fields", "sent"),
    [
        ("structured_outputs", STRUCTURED, "blue"),
        ("structured_outputs", SCHEMA, "I take blue"),
        ("structured_outputs", {}, "I take blue"),
        ("structured_outputs", {"guided_choice": ["red", "blue"]}, "I take blue"),
        ("json_schema", SCHEMA, '{"choice": "blue"}'),
        ("json_schema", STRUCTURED, "I take blue"),
        ("json_schema", {"response_format": {"type": "json_object"}}, "I take blue"),
        ("none", STRUCTURED, "I take blue"),
        ("none", SCHEMA, "I take blue"),
    ],
)
def test_constraint_forms(constrains, fields, sent):
    with ScriptedServer(["I take blue"], constrains=constrains) as server:
        assert choice_of(chat(server, **fields)[2])["message"]["content"] == sent


@pytest.mark.parametrize(
    ("constrains", "fields", "status"),
    [
        ("none", STRUCTURED, 400),
        ("none", SCHEMA, 400),
        ("structured_outputs", STRUCTURED, 200),
        ("structured_outputs", SCHEMA, 400),
        ("json_schema", STRUCTURED, 400),
        ("json_schema", SCHEMA, 200),
    ],
)
def test_unsupported_constraint_is_rejected(constrains, fields, status):
    with ScriptedServer(["blue"], constrains=constrains, ignores_silently=False) as server:
        assert chat(server, **fields)[0] == status


def test_refusals_and_empty_replies_are_not_constrained():
    with ScriptedServer([faults.refusal(), faults.empty()], constrains="structured_outputs") as server:
        assert [choice_of(chat(server, **STRUCTURED)[2])["message"]["content"] for _ in range(2)] == [None, ""]


@pytest.mark.parametrize(
    ("text", "choices", "choice"),
    [
        ("B", ["A", "B"], "B"),
        ("Because it is B, not A", ["A", "B"], "B"),
        ("neither", ["A", "B"], "A"),
        ("new york city", ["new york", "new york city"], "new york city"),
        ("c++ (or c)", ["c", "c++"], "c++"),
    ],
)
def test_nearest_choice(text, choices, choice):
    assert nearest(text, choices) == choice


def test_unknown_constraint_form_is_an_error():
    with pytest.raises(ValueError, match="json_schema"):
        ScriptedServer(constrains="guided_choice")
