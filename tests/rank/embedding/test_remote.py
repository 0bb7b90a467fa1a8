"""Embeddings from a server: requests, replies and errors."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

from kgqa.errors import ModelRefused, ModelUnavailable
from kgqa.rank.embedding.encoder import open_encoder
from kgqa.rank.embedding.remote import BATCH_SIZE, EMBEDDINGS_KEY_VARIABLE, RemoteEncoder
from kgqa.storage.cache import Cache
from kgqa.testing import faults
from kgqa.testing.loopback import LoopbackServer, Response

KEY = "sk-very-secret-0123456789"


def vector(text: str) -> list[float]:
    """Return a vector that depends on the text and is not normalised."""
    return [float(len(text)) + 1, float(sum(map(ord, text)) % 97), -3.0]


def valid_reply(body: dict) -> dict:
    data = [{"object": "embedding", "index": i, "embedding": vector(text)} for i, text in enumerate(body["input"])]
    return {
        "object": "list",
        "data": data[::-1],
        "model": body["model"],
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }


class Server:
    """A server on the loopback interface; `reply` returns a status and a body (JSON or bytes) for a request."""

    def __init__(self) -> None:
        self.requests: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.reply = lambda body: (200, valid_reply(body))
        self._http = LoopbackServer(self._answer)
        self.url = f"http://127.0.0.1:{self._http.port}"
        self.close = self._http.close

    def _answer(self, method: str, path: str, headers: dict[str, str], sent: bytes) -> Response:
        body = json.loads(sent)
        self.requests.append(body)
        self.headers.append(headers)
        self.paths.append(path)
        status, content = self.reply(body)
        return Response(status, content if isinstance(content, bytes) else json.dumps(content).encode())

    @property
    def texts(self) -> list[str]:
        return [text for body in self.requests for text in body["input"]]


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def normalised(text: str) -> np.ndarray:
    return np.array(vector(text)) / np.linalg.norm(vector(text))


def test_vectors_are_normalised_and_in_order(server):
    encoder = RemoteEncoder(server.url, "m")
    texts = [f"text {'x' * i}" for i in range(BATCH_SIZE * 2 + 5)]  # each batch comes back in the reverse order
    vectors = encoder.encode(texts)
    assert vectors.dtype == np.float32 and vectors.shape == (len(texts), 3)
    assert vectors == pytest.approx(np.stack([normalised(text) for text in texts]), abs=1e-6)
    assert [len(body["input"]) for body in server.requests] == [BATCH_SIZE, BATCH_SIZE, 5]
    assert {(body["model"], body["encoding_format"]) for body in server.requests} == {("m", "float")}
    assert set(server.paths) == {"/v1/embeddings"}
    assert encoder.size == 3


def test_key_comes_from_the_environment(server, monkeypatch):
    monkeypatch.setenv(EMBEDDINGS_KEY_VARIABLE, KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    monkeypatch.setenv("OPENAI_ORG_ID", "an organisation")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "a project")
    encoder = RemoteEncoder(server.url, "m")
    encoder.encode(["a"])
    (headers,) = server.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert not [name for name in headers if name.startswith("openai-")]
    assert KEY not in repr(vars(encoder)["name"])


# ---- unusable replies ----


def item(index=0, embedding=(1.0, 2.0, 3.0)) -> dict:
    return {"object": "embedding", "index": index, "embedding": embedding}


UNUSABLE_REPLIES = {
    "html": b"<html>Welcome</html>",
    "nothing": {},
    "no list": {"data": "text"},
    "an error with status 200": {"error": {"message": "no such model"}},
    "too few": {"data": [item()]},
    "one twice": {"data": [item(), item()]},
    "not numbered": {"data": [{"embedding": [1, 2, 3]}, {"embedding": [1, 2, 3]}]},
    "no vector": {"data": [item(), {"index": 1}]},
    "base64": {"data": [item(), item(1, "AACAPwAAAEA=")]},
    "not of one length": {"data": [item(), item(1, [1.0])]},
    "empty": {"data": [item(0, []), item(1, [])]},
    "not numbers": {"data": [item(), item(1, [1.0, None, 2.0])]},
    "not finite": b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [NaN]}]}',
    "too large": b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1' + b"0" * 400 + b"]}]}",
    "zeros": {"data": [item(), item(1, [0, 0, 0])]},
}


@pytest.mark.parametrize("content", UNUSABLE_REPLIES.values(), ids=UNUSABLE_REPLIES)
def test_unusable_reply_is_an_error(server, content):
    server.reply = lambda body: (200, content)
    with pytest.raises(ModelUnavailable, match="at http://127.0.0.1"):
        RemoteEncoder(server.url, "m").encode(["a", "b"])


@pytest.mark.parametrize(("status", "times"), [(401, 1), (500, 3)])
def test_server_failure_is_an_error(server, monkeypatch, status, times):
    monkeypatch.setenv(EMBEDDINGS_KEY_VARIABLE, KEY)
    server.reply = lambda body: (status, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with pytest.raises(ModelUnavailable, match=str(status)) as caught:
        RemoteEncoder(server.url, "m").encode(["a"])
    assert len(server.requests) == times  # the client retries temporary failures
    assert "Incorrect API key" in str(caught.value)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


@pytest.mark.parametrize(("most", "status", "sizes"), [(10, 413, [64, 32, 16, 8]), (32, 400, [64, 32]), (1, 422, [64])])
def test_refused_batch_is_halved_and_the_size_is_kept(server, most, status, sizes):
    refusal = (status, {"error": {"message": f"at most {most} texts"}})
    server.reply = lambda body: refusal if len(body["input"]) > most else (200, valid_reply(body))
    encoder = RemoteEncoder(server.url, "m")
    texts = [f"text {'x' * i}" for i in range(BATCH_SIZE)]
    vectors = encoder.encode(texts)
    assert vectors == pytest.approx(np.stack([normalised(text) for text in texts]), abs=1e-6)
    assert [len(body["input"]) for body in server.requests][: len(sizes)] == sizes
    requests = len(server.requests)
    encoder.encode(texts)
    assert all(len(body["input"]) <= most for body in server.requests[requests:])


def test_refused_text_is_an_error_with_the_words_of_the_server(server):
    refusal = (400, {"error": {"message": "text is longer than 512 tokens"}})
    server.reply = lambda body: refusal if "long" in body["input"] else (200, valid_reply(body))
    encoder = RemoteEncoder(server.url, "m")
    with pytest.raises(ModelRefused, match="longer than 512 tokens"):
        encoder.encode(["a"] * 40 + ["long"] + ["b"] * 40)
    server.requests.clear()
    encoder.encode(["a"] * BATCH_SIZE)
    assert len(server.requests) == 1  # the size of a batch was not the reason


@pytest.mark.parametrize("status", [301, 308])
def test_redirects_are_refused_and_not_followed(status):
    got = []
    other = LoopbackServer(lambda *request: got.append(request) or Response(404))
    moved = LoopbackServer(lambda *_: faults.redirected(f"http://127.0.0.1:{other.port}/v1/embeddings", status))
    with pytest.raises(ModelUnavailable, match=rf"redirects to http://127.0.0.1:{other.port}/.*rank\.model_url"):
        RemoteEncoder(f"http://127.0.0.1:{moved.port}", "m").encode(["a"])
    moved.close(), other.close()
    assert got == []


def test_reply_size_is_limited(server):
    """A batch of the longest vectors fits into the size limit."""
    server.reply = lambda body: (
        200,
        valid_reply(body) | {"data": [item(i, [1 / 3] * 8192) for i in range(BATCH_SIZE)]},
    )
    assert RemoteEncoder(server.url, "m").encode(["a"] * BATCH_SIZE).shape == (BATCH_SIZE, 8192)
    bomb = LoopbackServer(lambda *_: faults.zipped(300))
    tracemalloc.start()
    with pytest.raises(ModelUnavailable, match="larger than 32 MB"):
        RemoteEncoder(f"http://127.0.0.1:{bomb.port}", "m").encode(["a"])
    assert tracemalloc.get_traced_memory()[1] < 128 << 20
    tracemalloc.stop()
    bomb.close()


# ---- as the encoder of a run ----


def test_cached_vectors_are_not_requested_again(server, tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    first = open_encoder(cache, url=server.url, model="org/m", query_prompt="query: ")
    vectors = first.encode(["a", "b", "a"])
    assert vectors == pytest.approx(np.stack([normalised("a"), normalised("b"), normalised("a")]), abs=1e-3)
    assert server.texts == ["?", "a", "b"]
    server.requests.clear()
    monkeypatch.setattr("kgqa.rank.embedding.encoder._OPEN_ENCODERS", {})  # as in another process
    again = open_encoder(cache, url=server.url, model="org/m", query_prompt="query: ")
    assert np.array_equal(again.encode(["b", "a"]), vectors[[1, 0]])
    assert server.requests == []
    assert again.encode_questions(["who?"])[0] == pytest.approx(normalised("query: who?"), abs=1e-6)
    assert again.name == first.name


def test_unreachable_server_is_reported_on_opening(server, tmp_path):
    server.close()
    with pytest.raises(ModelUnavailable):
        open_encoder(Cache(tmp_path), url=server.url, model="m")
