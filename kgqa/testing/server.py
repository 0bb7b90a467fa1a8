"""A scripted OpenAI-compatible chat server on the loopback interface, to test clients of language models.

with ScriptedServer(["yes", rate_limited(1), ModelReply("no", reasoning="Hm.")]) as server:
    ask_the_model_at(server.url)
    assert server.requests[0].body["temperature"] == 0
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kgqa.testing.constrained_replies import FIELDS, constrain_reply
from kgqa.testing.faults import Fault, ModelReply, failing, unsupported, wrong_key
from kgqa.testing.loopback import LoopbackServer, Response

Answered = str | ModelReply | Fault
Constrains = Literal["none", "structured_outputs", "json_schema"]


@dataclass(frozen=True)
class ChatRequest:
    """A chat request.

    `arrived` is a value of `time.monotonic()`. `headers` have lower-case names and do not contain the API key.
    """

    body: dict[str, Any]
    arrived: float
    headers: dict[str, str]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the prompt."""
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages


class ScriptedServer(LoopbackServer):
    """Serves POST /v1/chat/completions and GET /v1/models; other requests get a 404. Thread-safe.

    The server runs as soon as it is created.

    Args:
        reply: a function from messages to a reply, or a sequence of replies, used in the order of the requests.
        constrains: the request field that constrains replies to choices, either `structured_outputs.choice` (vLLM) or
            the schema of `response_format`. A text that is not a choice is replaced by the first choice that occurs in
            it; if none occurs in it, by the first choice. A text that is not JSON of the schema is replaced by a value
            of the schema.
        ignores_silently: whether the server ignores the remaining one of the two fields, like vLLM; if False, requests
            with that field get a 400.
        rejects: request fields that get a 400.
        key: required API key; "" for none.
        models: the models that GET /v1/models lists. A chat request may name any model.
        latency: delay before each reply in seconds; can be changed later.

    Attributes:
        url: base URL, ending in `/v1`.
        requests: the chat requests, in order of arrival.
        listings: number of GET /v1/models requests.
        most_at_once: maximum number of concurrent chat requests.
        errors: exceptions raised by the function `reply`. A request gets a 400 if the function raises an exception, or
            if all replies have been used.
    """

    requests: list[ChatRequest]

    def __init__(
        self,
        reply: Callable[[list[dict[str, Any]]], Answered] | Iterable[Answered] = (),
        *,
        constrains: Constrains = "none",
        ignores_silently: bool = True,
        rejects: Collection[str] = (),
        key: str = "",
        models: Sequence[str] = ("scripted",),
        latency: float = 0.0,
    ) -> None:
        if constrains not in ("none", *FIELDS):
            raise ValueError(f"`constrains` must be one of none, {', '.join(FIELDS)}, not {constrains!r}")
        self.errors: list[Exception] = []
        self.listings = 0
        self.latency = latency
        self._reply = reply if callable(reply) else None
        self._queue: deque[Answered] = deque(() if callable(reply) else reply)
        self._constrains = constrains
        self._rejects = (
            *rejects,
            *(() if ignores_silently else (FIELDS[name] for name in FIELDS if name != constrains)),
        )
        self._key = key
        self._models = tuple(models)
        super().__init__(self._answer)
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def enqueue(self, *replies: Answered) -> None:
        """Add replies; all of them are used before the function is called again."""
        with self._lock:
            self._queue.extend(replies)

    @property
    def calls(self) -> int:
        """The number of chat requests."""
        return len(self.requests)

    # ---- answering ----

    def _answer(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Response:
        arrived = time.monotonic()
        key = headers.pop("authorization", "").removeprefix("Bearer ")
        route = (method, path.partition("?")[0])
        if route == ("GET", "/v1/models"):
            with self._lock:
                self.listings += 1
            return wrong_key(key) if self._key and key != self._key else self._listing()
        if route != ("POST", "/v1/chat/completions"):
            return failing(404, f"Unknown request URL: {method} {path}.", code="unknown_url")
        try:
            body = json.loads(content)
            usable = isinstance(body["model"], str) and all(isinstance(each, dict) for each in body["messages"])
        except (ValueError, TypeError, KeyError):
            usable = False
        if not usable:
            return failing(400, "The request is not a JSON object with a model and messages.")
        with self.counted(ChatRequest(body, arrived, headers)):
            if self._key and key != self._key:
                return wrong_key(key)
            refused = next((field for field in self._rejects if field in body), None)
            answered = unsupported(refused) if refused else self._next(body)
            self.wait(self.latency)
            if isinstance(answered, Fault):
                self.wait(answered.seconds)
                return answered
            reply = ModelReply(answered) if isinstance(answered, str) else answered
            return _json(completion(constrain_reply(reply, body, self._constrains), body))

    def _next(self, body: dict[str, Any]) -> Answered:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        if self._reply is None:
            return failing(400, "The scripted server has no reply left.")
        try:
            return self._reply(body["messages"])
        except Exception as error:  # noqa: BLE001  an error in the test's own function, which the test can inspect
            self.errors.append(error)
            return failing(400, f"The function of the scripted server raised {type(error).__name__}: {error}")

    def _listing(self) -> Response:
        data = [{"id": model, "object": "model", "created": 0, "owned_by": "kgqa"} for model in self._models]
        return _json({"object": "list", "data": data})


def completion(reply: ModelReply, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a response with one choice."""
    prompt_tokens, completion_tokens = reply.prompt_tokens, reply.completion_tokens
    if prompt_tokens is None:
        prompt_tokens = sum(len(str(message.get("content", ""))) for message in body["messages"]) // 4
    if completion_tokens is None:
        completion_tokens = len(reply.reasoning + reply.text) // 4
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.refusal is not None and not reply.text:
        message["content"] = None
    if reply.reasoning:
        message[reply.reasoning_field] = reply.reasoning
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": reply.logprobs}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def _json(content: Any) -> Response:
    return Response(body=json.dumps(content).encode())
