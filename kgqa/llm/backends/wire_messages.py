"""Converts the messages of prompts to the format of OpenAI's chat interface, which vLLM uses too."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from kgqa.llm.client import Content, Image, Message

_ROLES = re.compile(r"\broles?\b|\bsystem (?:message|prompt|instruction)|\balternat", re.IGNORECASE)


def wire_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as JSON data; images are `data:` URLs."""
    return [{"role": message.role, "content": _content(message.content)} for message in messages]


def concerns_roles(error: str) -> bool:
    """Return whether an error says that the model's template takes no system message, or wants roles to alternate."""
    return bool(_ROLES.search(error))


def without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages with the text of the system in the next message of the user, so that the roles alternate."""
    merged: list[Message] = []
    for message in messages:
        role = "user" if message.role == "system" else message.role
        parts = _parts(message.content)
        if merged and merged[-1].role == role:
            parts = (*_parts(merged.pop().content), *parts)
        texts = [part for part in parts if isinstance(part, str)]
        merged.append(Message(role, "\n\n".join(texts) if len(texts) == len(parts) else parts))
    return tuple(merged)


def _parts(content: Content) -> tuple[str | Image, ...]:
    return (content,) if isinstance(content, str) else content


def encodable(text: str) -> str:
    """Replace unpaired surrogates by question marks; damaged data contains them, and tokenizers reject them."""
    return text.encode(errors="replace").decode()


def _content(content: Content) -> str | list[dict[str, Any]]:
    return encodable(content) if isinstance(content, str) else [_part(part) for part in content]


def _part(part: str | Image) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": encodable(part)}
    url = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url}}
