"""Questions over HTTP: answers, steps, permanent links, and stopping."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from kgqa.testing.server import ScriptedServer
from tests.serve.running import Running, running

CAPITAL = "Which city is the capital of the country whose anthem is Kimigayo?"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda messages: "1", latency=0.05) as server:
        yield server


@pytest.fixture(scope="module")
def served(session_cache, model, tmp_path_factory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("answers")
    given = {"cache_folder": str(session_cache), "serve_folder": str(folder), "llm_retries": 0}
    with running(**given, serve_models=f"{model.url}#scripted") as found:
        yield found


def ask(served: Running, question: str, **more: Any) -> dict[str, Any]:
    reply = served.client.post("/ask", json={"question": question, **more})
    assert reply.status_code == 200, reply.text
    return reply.json()


def events(reply: httpx.Response) -> Iterator[tuple[str, Any]]:
    """Yield the server-sent events of a reply."""
    name = ""
    for line in reply.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_an_answer_is_that_of_the_command_line_and_stays_at_its_link(served):
    answer = ask(served, CAPITAL)
    assert [each["name"] for each in answer["answers"]] == ["Tokyo"]
    assert answer["query_class"] == "exact" and answer["sparql"] and answer["asked"] == CAPITAL
    assert served.client.get(f"/answers/{answer['id']}").json() == answer
    again = ask(served, f"  {CAPITAL}")
    assert again["cached"] and again["id"] == answer["id"]
    for wrong in ("0" * 32, "x", "..%2f..%2fetc%2fpasswd", answer["id"].upper() + "0"):
        assert served.client.get(f"/answers/{wrong}").status_code == 404


def test_no_names_are_looked_up_after_the_budget_of_a_question(served, monkeypatch):
    monkeypatch.setattr("kgqa.methods.tournament.path_answers.MAX_NAMED", 1)
    answer = ask(served, "Which cities are the capitals of South Africa?")
    named = [each["name"] in ("Bloemfontein", "Cape Town", "Pretoria") for each in answer["answers"]]
    assert named == [True, False, False]


def test_steps_are_sent_in_words_before_the_answer(served):
    headers = {"Accept": "text/event-stream"}
    with served.client.stream(
        "POST", "/ask", json={"question": "Who directed the film Parasite?"}, headers=headers
    ) as r:
        found = list(events(r))
    names = [name for name, _ in found]
    assert names[0] == "queued" and names[-1] == "answer" and set(names[1:-1]) == {"step"}
    words = [step["words"] for name, step in found if name == "step"]
    assert "topics in the question: “Parasite”" in words
    assert any(each.startswith("best path: ") for each in words)
    assert found[-1][1]["answers"][0]["name"] == "Bong Joon-ho"


def test_topics_are_ids_or_names(served):
    for topic in ("m.demo_marie_curie", "Marie Curie"):
        answer = ask(served, "In which city was she born?", topics=[topic])
        assert [each["name"] for each in answer["answers"]] == ["Warsaw"], topic


def test_a_question_refers_to_the_answers_before_it(served):
    first = ask(served, CAPITAL)
    headers, body = {"Accept": "text/event-stream"}, {"question": "In which country is it?", "history": [first["id"]]}
    with served.client.stream("POST", "/ask", json=body, headers=headers) as reply:
        found = list(events(reply))
    answer = found[-1][1]
    assert (answer["asked"], answer["question"]) == ("In which country is it?", "In which country is Tokyo?")
    assert [each["name"] for each in answer["answers"]] == ["Japan"]
    assert "understood as: In which country is Tokyo?" in [step["words"] for name, step in found if name == "step"]
    assert ask(served, "Who is it?", history=["0" * 32, "nonsense"])["question"] == "Who is it?"


def test_advice_is_for_clients_wherever_it_was_asked_first(served):
    """The answer to a question is worded for whoever asks it, even if another client has asked it before."""
    question = "Who invented the flux capacitor?"
    chat = {"messages": [{"role": "user", "content": question}]}
    said = served.client.post("/v1/chat/completions", json=chat).json()
    text = said["choices"][0]["message"]["content"]
    assert "write its full name in the question" in text and "--" not in text and "\\" not in text
    again = ask(served, question)
    assert again["reason"].endswith("First search for it, then give its id as a topic")
    assert (again["status"], again["accepted"]) == ("no_answer", False)
    error = served.client.get("/neighbours", params={"id": "m.nobody"}).json()["error"]
    assert "kgqa graph" not in error["message"] + error["hint"]


def test_broken_json_is_told_from_wrong_json(served):
    reply = served.client.post("/ask", content=b'{"question": oh}', headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["error"]["message"]) == (
        400,
        "The request is not valid JSON (character 13).",
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"question": ""}, "empty"),
        ({"question": "x" * 100_000}, "100,000 characters"),
        ({"question": CAPITAL, "method": "nonsense"}, "not offered"),
        ({"question": CAPITAL, "method": "tog", "model": "http://127.0.0.1:1/v1"}, "not offered"),
        ({"question": CAPITAL, "url": "http://127.0.0.1:1"}, "url"),
        ({"question": 3}, "question"),
        ({}, "question"),
        ([], ""),
    ],
)
def test_a_wrong_request_is_explained(served, body, message):
    reply = served.client.post("/ask", json=body)
    assert reply.status_code == 400
    assert message in reply.json()["error"]["message"]


def test_a_closed_stream_stops_the_question(served, model):
    """No prompt is sent after the client has gone, and the answer that is kept says so."""
    body = {"question": CAPITAL, "method": "top", "model": "scripted"}
    with served.client.stream("POST", "/ask", json=body, headers={"Accept": "text/event-stream"}) as reply:
        found = events(reply)  # closes the connection when it is deleted
        id = next(found)[1]["id"]
        assert until(lambda: model.calls > 0)
    assert until(lambda: served.client.get(f"/answers/{id}").status_code == 200)
    sent = model.calls
    answer = served.client.get(f"/answers/{id}").json()
    assert (answer["status"], answer["reason"]) == ("budget_exhausted", "Stopped by the user.")
    time.sleep(0.3)
    assert model.calls == sent


def test_a_question_is_stopped_by_its_id(served, model):
    """The reply that the question waits for is not waited for, and no further prompt or query follows."""
    model.latency = 20
    before = model.calls
    body = {"question": CAPITAL, "method": "tog", "model": "scripted"}
    try:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask, served, **body)
            assert until(lambda: model.calls > before)
            (id,) = served.service.jobs
            started = time.monotonic()
            assert served.client.post(f"/ask/{id}/stop", json={}).json() == {"stopped": True}
            answer = asked.result(15)
        assert time.monotonic() - started < 15
        assert (answer["status"], answer["reason"]) == ("budget_exhausted", "Stopped by the user.")
        assert model.calls == before + 1
        assert served.client.post(f"/ask/{id}/stop", json={}).status_code == 404
    finally:
        model.latency = 0.05


def test_a_question_that_waits_is_stopped_before_it_begins(served, model):
    """Also by closing the connection of a request for plain JSON."""
    model.latency = 20
    before = model.calls
    body = json.dumps({"question": CAPITAL, "method": "tog", "model": "scripted"}).encode()
    head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    workers = 8
    try:
        connections = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(workers + 1)]
        for connection in connections:
            connection.sendall(head.encode() + body)
        assert until(lambda: served.service.questions.waiting == 1 and model.calls == before + workers)
        for connection in connections[::-1]:
            connection.close()
        assert until(lambda: not served.service.jobs)
        assert model.calls == before + workers
    finally:
        model.latency = 0.05


def test_what_the_service_offers(served):
    about = served.client.get("/about").json()
    assert about["graph"]["triples"] > 9000 and about["graph"]["name"] == "demo graph"
    assert about["models"] == ["scripted"] and "127.0.0.1" not in json.dumps(about["models"])
    names = {each["name"]: each for each in about["methods"]}
    assert {"top", "tog"} <= names.keys() and "rag" not in names
    assert all(each["summary"] for each in names.values())
    assert CAPITAL in about["examples"] and about["writable"] is False
    assert served.client.get("/health").json() == {"status": "ok", "store": True}
    text = served.client.get("/metrics").text
    assert 'kgqa_requests_total{method="GET",route="/about",status="200"} 1' in text
    assert 'kgqa_questions_total{method="top",status="answered"}' in text


def test_the_api_is_documented_without_other_servers(served):
    paths = served.client.get("/openapi.json").json()["paths"]
    assert {"/ask", "/ask/{id}/stop", "/search", "/neighbours", "/explain", "/health", "/metrics"} <= paths.keys()
    assert all("422" not in each["responses"] for path in paths.values() for each in path.values())
    page = served.client.get("/docs")
    assert page.status_code == 200 and "//" not in page.text.replace("<!doctype", "")
    for name in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js"):
        assert served.client.get(f"/docs/{name}").status_code == 200
    assert served.client.get("/docs/index.html").status_code == 404
