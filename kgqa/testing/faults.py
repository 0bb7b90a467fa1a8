"""Replies and faulty responses for the scripted language model server."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any, Literal

from kgqa.testing.loopback import Response


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A reply of the language model. Token counts default to about a quarter of the number of characters.

    `reasoning` is sent in the message's field `reasoning_field`, because some servers separate reasoning from the text.
    `logprobs` is sent unchanged.
    """

    text: str
    reasoning: str = ""
    reasoning_field: Literal["reasoning", "reasoning_content"] = "reasoning"
    finish_reason: str = "stop"
    refusal: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    logprobs: Any = None


@dataclass(frozen=True, slots=True)
class Fault(Response):
    """A faulty response that is sent instead of a reply; see `Response`."""


def failing(status: int, message: str, *, kind: str = "invalid_request_error", code: str | None = None,
            param: str | None = None, headers: tuple[tuple[str, str], ...] = ()) -> Fault:  # fmt: skip
    """Return an error response in OpenAI's format: `{"error": {"message", "type", "param", "code"}}`."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Fault(status, json.dumps({"error": error}).encode(), headers=headers)


def rate_limited(retry_after: float | str | datetime | None = None) -> Fault:
    """Return a 429. `retry_after`: seconds, an HTTP date, or any text; None sends no Retry-After header."""
    message, headers = "Rate limit reached. Please slow down.", retry_after_header(retry_after)
    return failing(429, message, kind="requests", code="rate_limit_exceeded", headers=headers)


def retry_after_header(value: float | str | datetime | None) -> tuple[tuple[str, str], ...]:
    """Return the Retry-After header with seconds, an HTTP date, or any text; no header for None."""
    if isinstance(value, datetime):
        value = format_datetime(value, usegmt=True)
    return () if value is None else (("Retry-After", str(value)),)


def out_of_quota() -> Fault:
    """Return a 429 for an exhausted quota; a client that waits and tries again gets the same error."""
    message = "You exceeded your current quota, please check your plan and billing details."
    return failing(429, message, kind="insufficient_quota", code="insufficient_quota")


def server_error(status: int = 500) -> Fault:
    """Return a 5xx error."""
    return failing(status, "The server had an error while processing your request.", kind="server_error")


def hangs(seconds: float) -> Fault:
    """Return a fault that sends nothing for `seconds` seconds and then closes the connection."""
    return Fault(seconds=seconds, dropped=True)


def dropped() -> Fault:
    """Return a fault that closes the connection without a reply."""
    return Fault(dropped=True)


def half_json() -> Fault:
    """Return a 200 with incomplete JSON and the correct Content-Length."""
    return Fault(body=b'{"id": "chatcmpl-1", "choices": [{"index": 0, "message": {"role": "assi')


def cut_off() -> Fault:
    """Return a 200 that closes the connection before the body is complete."""
    return Fault(body=half_json().body, missing=100)


def html() -> Fault:
    """Return a 200 with a web page instead of JSON, as some proxies send."""
    return Fault(body=b"<!DOCTYPE html><html><body>Welcome</body></html>", content_type="text/html; charset=utf-8")


def redirected(url: str, status: int = 307) -> Fault:
    """Return a redirect."""
    return Fault(status, headers=(("Location", url),))


def zipped(megabytes: int, status: int = 200) -> Fault:
    """Return a compressed JSON body that is a thousand times larger when decompressed."""
    packer = zlib.compressobj(wbits=31)
    blanks = b" " * (1 << 20)
    parts = [packer.compress(b'{"choices": ['), *(packer.compress(blanks) for _ in range(megabytes))]
    body = b"".join([*parts, packer.compress(b"]}"), packer.flush()])
    return Fault(status, body, headers=(("Content-Encoding", "gzip"),))


def error_with_200(message: str = "The upstream provider failed.") -> Fault:
    """Return a response with an error in its body, but with status 200."""
    return Fault(200, failing(200, message, kind="upstream_error").body)


def no_choices() -> Fault:
    """Return a completion without choices."""
    return Fault(body=json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "choices": []}).encode())


def wrong_key(key: str = "") -> Fault:
    """Return a 401 whose message contains the key, as some servers do."""
    return failing(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")


def no_such_model(model: str = "m") -> Fault:
    """Return a 404 for an unknown model."""
    message = f"The model `{model}` does not exist or you do not have access to it."
    return failing(404, message, param="model", code="model_not_found")


def unsupported(parameter: str) -> Fault:
    """Return a 400 for an unsupported parameter, in OpenAI's wording."""
    message = f"Unsupported parameter: '{parameter}' is not supported with this model."
    if parameter == "max_tokens":
        message += " Use 'max_completion_tokens' instead."
    return failing(400, message, param=parameter, code="unsupported_parameter")


def too_long() -> Fault:
    """Return vLLM's 400 for a prompt that is too long; the message wrongly blames `max_tokens`."""
    message = (
        "'max_tokens' or 'max_completion_tokens' is too large: 64. This model's maximum context length is 2048 tokens "
        "and your request has 4000 input tokens."
    )
    return failing(400, message, kind="BadRequestError", param="max_tokens")


def refusal(text: str = "I cannot help with that.") -> ModelReply:
    """Return a reply in which the language model refuses to answer."""
    return ModelReply("", refusal=text)


def thinks(text: str, thought: str = "Let me see.") -> ModelReply:
    """Return a reply with reasoning in the text, between `<think>` and `</think>`."""
    return ModelReply(f"<think>\n{thought}\n</think>\n\n{text}")


def empty() -> ModelReply:
    """Return an empty reply."""
    return ModelReply("")
