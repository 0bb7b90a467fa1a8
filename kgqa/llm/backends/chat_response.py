"""Functions that read chat responses, separate reasoning from the reply, and detect replies that cannot be used."""

from __future__ import annotations

from typing import Any

from kgqa.llm.client import MAX_TOKEN_COUNT, Completion, Failure
from kgqa.llm.replies.json_values import part_reasoning

_ABORTED = ("error", "abort", "insufficient_system_resource")
"""Finish reasons of an aborted reply (OpenRouter, vLLM, DeepSeek); after such a reply, the prompt is sent again."""

_MESSAGES = ("message", "detail", "error")
_DEEPEST_ERROR = 10


class UnreadableBody(ValueError):
    """The body of a response contains no reply."""


def read_reply(
    text: str | None,
    *,
    reasoning: str = "",
    finish_reason: str = "stop",
    refusal: str = "",
    prompt_tokens: int = 0,
    completion_tokens: int = 0,
) -> Completion:
    """Build a completion from a reply.

    `reasoning` is the reasoning that the server sent separately from the text. If the reply cannot be used, `failure`
    is set in the completion; text and token counts are kept.
    """
    answer, thought = part_reasoning(text or "")
    reasoning = "\n\n".join(part for part in (reasoning.strip(), thought) if part)
    failure: Failure = "" if answer else "empty"
    detail = "" if answer else "the reply is only reasoning, without an answer" if reasoning else "the reply is empty"
    if refusal.strip() or finish_reason == "content_filter":
        failure, detail = "refused", refusal.strip() or "the server's content filter stopped the reply"
    elif finish_reason == "length":
        failure, detail = "length", f"the reply was cut off after {completion_tokens} tokens"
    return Completion(
        text=answer,
        reasoning=reasoning,
        failure=failure,
        detail=detail,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
    )


def read_body(body: Any) -> Completion:
    """Build a completion from the JSON body of a chat response.

    Raises:
        UnreadableBody: The body contains an error, no choices, or values of the wrong type.
    """
    if not isinstance(body, dict):
        raise UnreadableBody("the reply is not a JSON object")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        error = body.get("error")
        raise UnreadableBody(
            f"an error instead of a reply: {message_of(error)}" if error else "the reply has no choices"
        )
    choice = choices[0]
    message, finish_reason = choice.get("message"), _text(choice.get("finish_reason"))
    if choice.get("error") or finish_reason in _ABORTED:
        raise UnreadableBody(f"the server aborted the reply: {message_of(choice.get('error') or finish_reason)}")
    if not isinstance(message, dict):
        raise UnreadableBody("the reply has no message")
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    text, thought = _content(message.get("content"))
    return read_reply(
        text,
        # only one of the fields is read, because proxies send both with the same content
        reasoning=_text(message.get("reasoning")) or _text(message.get("reasoning_content")) or thought,
        finish_reason=finish_reason or "stop",
        refusal=_text(message.get("refusal")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def message_of(error: Any) -> str:
    """Return the message of an error, which may be in `message`, `detail` or `error`, also in a nested object."""
    for _ in range(_DEEPEST_ERROR):
        if isinstance(error, dict):
            error = next((error[name] for name in _MESSAGES if error.get(name)), error)
    return safe_str(error)


def safe_str(value: Any) -> str:
    """Return a JSON value as text."""
    try:
        return str(value)
    except RecursionError:
        return "an error that is nested too deeply"


def _content(content: Any) -> tuple[str, str]:
    """Return the text and the reasoning in a content field; Mistral's reasoning models send this field as a list."""
    if not isinstance(content, list):
        return _text(content), ""
    parts = [part for part in content if isinstance(part, dict)]
    text = "".join(_text(part.get("text")) for part in parts)
    return text, "\n\n".join(filter(None, (_content(part.get("thinking"))[0] for part in parts)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_TOKEN_COUNT else 0
