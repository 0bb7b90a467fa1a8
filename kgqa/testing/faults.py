"""What the scripted server answers with: replies of a model, and the ways in which servers fail."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any, Literal

from kgqa.testing.loopback import Response


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the model. Token counts are about a quarter of the characters where none are given.

    `reasoning` stands in the message's field `reasoning_field`, as servers that part it from the text send it.
    `logprobs` is sent as it is.
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
    """What a server sends instead of a reply; see `Response`. `seconds`: waited before anything is sent."""

    seconds: float = 0.0


def failing(status: int, message: str, *, kind: str = "invalid_request_error", code: str | None = None,
            param: str | None = None, headers: tuple[tuple[str, str], ...] = ()) -> Fault:  # fmt: skip
    """An error as OpenAI words it: `{"error": {"message", "type", "param", "code"}}`."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Fault(status, json.dumps({"error": error}).encode(), headers=headers)


def rate_limited(retry_after: float | str | datetime | None = None) -> Fault:
    """429. `retry_after`: seconds, an HTTP date, or text that is sent as it is; None sends no such header."""
    if isinstance(retry_after, datetime):
        retry_after = format_datetime(retry_after, usegmt=True)
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return failing(
        429, "Rate limit reached. Please slow down.", kind="requests", code="rate_limit_exceeded", headers=headers
    )


def out_of_quota() -> Fault:
    """429 that no waiting helps against."""
    message = "You exceeded your current quota, please check your plan and billing details."
    return failing(429, message, kind="insufficient_quota", code="insufficient_quota")


def server_error(status: int = 500) -> Fault:
    return failing(status, "The server had an error while processing your request.", kind="server_error")


def hangs(seconds: float) -> Fault:
    """Nothing for so many seconds, then the connection is closed."""
    return Fault(seconds=seconds, dropped=True)


def dropped() -> Fault:
    """The connection is closed without a reply."""
    return Fault(dropped=True)


def half_json() -> Fault:
    """200, and a body that ends in the middle though it is as long as announced."""
    return Fault(body=b'{"id": "chatcmpl-1", "choices": [{"index": 0, "message": {"role": "assi')


def cut_off() -> Fault:
    """200, and the connection is closed before the body is as long as announced."""
    return Fault(body=half_json().body, missing=100)


def html() -> Fault:
    """200 and a page, as a proxy sends it in place of the server."""
    return Fault(body=b"<!DOCTYPE html><html><body>Welcome</body></html>", content_type="text/html; charset=utf-8")


def redirected(url: str, status: int = 307) -> Fault:
    return Fault(status, headers=(("Location", url),))


def zipped(megabytes: int, status: int = 200) -> Fault:
    """A body of JSON that is a thousand times as large once it is unpacked."""
    packer = zlib.compressobj(wbits=31)
    blanks = b" " * (1 << 20)
    parts = [packer.compress(b'{"choices": ['), *(packer.compress(blanks) for _ in range(megabytes))]
    body = b"".join([*parts, packer.compress(b"]}"), packer.flush()])
    return Fault(status, body, headers=(("Content-Encoding", "gzip"),))


def error_with_200(message: str = "The upstream provider failed.") -> Fault:
    return Fault(200, failing(200, message, kind="upstream_error").body)


def no_choices() -> Fault:
    return Fault(body=json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "choices": []}).encode())


def wrong_key(key: str = "") -> Fault:
    """401. `key` is repeated in the message, as some servers do."""
    return failing(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")


def no_such_model(model: str = "m") -> Fault:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return failing(404, message, param="model", code="model_not_found")


def unsupported(parameter: str) -> Fault:
    """400 that names a parameter, in the words of OpenAI."""
    if parameter == "max_tokens":
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
    else:
        message = f"Unsupported parameter: '{parameter}' is not supported with this model."
    return failing(400, message, param=parameter, code="unsupported_parameter")


def too_long() -> Fault:
    """400 as vLLM refuses a prompt that does not fit: it names `max_tokens`, and means the prompt."""
    message = (
        "'max_tokens' or 'max_completion_tokens' is too large: 64. This model's maximum context length is 2048 tokens "
        "and your request has 4000 input tokens."
    )
    return failing(400, message, kind="BadRequestError", param="max_tokens")


def refusal(text: str = "I cannot help with that.") -> Reply:
    return Reply("", refusal=text)


def thinks(text: str, thought: str = "Let me see.") -> Reply:
    """Reasoning inside the text, between `<think>` and `</think>`."""
    return Reply(f"<think>\n{thought}\n</think>\n\n{text}")


def empty() -> Reply:
    return Reply("")
