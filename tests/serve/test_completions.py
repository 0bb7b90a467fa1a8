"""Chat front ends: the interface of OpenAI, with OpenAI's own client."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from kgqa.serve.api.completions import chat_text
from tests.serve.running import Running, running

CAPITAL = "Which city is the capital of the country whose anthem is Kimigayo?"


@pytest.fixture(scope="module")
def served(session_cache) -> Iterator[Running]:
    with running(cache_folder=str(session_cache), rank_embeddings="off", tokens=["a-token"]) as found:
        yield found


@pytest.fixture(scope="module")
def client(served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="a-token", max_retries=0) as found:
        yield found


def test_a_chat_is_answered_with_citations_and_a_link(served, client):
    assert {"top", "top-1", "top-2"} <= {each.id for each in client.models.list()}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": [{"type": "text", "text": CAPITAL}]},
    ]
    reply = client.chat.completions.create(model="gpt-4o", messages=messages, temperature=0.5)
    answer = reply.model_extra["kgqa"]
    text, link = reply.choices[0].message.content, f"{served.url}/a/{answer['id']}"
    assert text.startswith("Tokyo [1]\n\n[1] Kimigayo → ") and text.endswith(f"\n\n{link}")
    assert reply.choices[0].finish_reason == "stop" and reply.usage.total_tokens == 0
    more = [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": "In which country is it?"}]
    following = client.chat.completions.create(model="top", messages=more)
    assert following.choices[0].message.content.startswith("Japan [1]")
    parts = list(client.chat.completions.create(model="top", messages=messages, stream=True, stream_options={"include_usage": True}))  # fmt: skip
    streamed = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert streamed.rpartition("/")[0] == text.rpartition("/")[0]
    assert parts[-1].usage.total_tokens == 0
    assert [part.model_extra["kgqa"]["question"] for part in parts if "kgqa" in part.model_extra] == [CAPITAL]


def test_errors_are_those_of_the_client_library(served, client):
    with pytest.raises(openai.BadRequestError, match="no message of the user"):
        client.chat.completions.create(model="top", messages=[{"role": "system", "content": "x"}])
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="wrong", max_retries=0) as other:
        with pytest.raises(openai.AuthenticationError):
            other.models.list()


def test_names_of_a_graph_make_no_markup():
    named = {"id": "x", "name": "![x](http://evil.example/?q)<img src=x>`"}
    answer = {"id": "1", "answers": [named], "response": "", "reason": "", "weak": False, "hints": []}
    text = chat_text({**answer, "citations": [], "paths": [{"words": "[a](b)"}], "evidence": []}, "http://h/a/")
    assert text == "!\\[x\\](http://evil.example/?q)\\<img src=x\\>\\` [1]\n\n[1] \\[a\\](b)\n\nhttp://h/a/1"
    many = [{**answer["answers"][0], "name": f"a\n# {number}\u202e{'x' * 5000}"} for number in range(200)]
    text = chat_text({**answer, "answers": many, "citations": [], "paths": [], "evidence": []}, "http://h/a/")
    assert text.count("\n") == 2 and "\u202e" not in text and len(text) < 110_000
    assert text.endswith(" and 100 more\n\nhttp://h/a/1")


def test_half_a_character_in_a_message_is_answered(served):
    body = b'{"model": "\\udc00", "messages": [{"role": "user", "content": "\\ud800 Which city is the capital of Brazil?"}]}'
    headers = {"Authorization": "Bearer a-token", "Content-Type": "application/json"}
    assert served.client.post("/v1/chat/completions", content=body, headers=headers).status_code == 200
