"""Converts the messages of prompts to the format of OpenAI's chat interface, which vLLM uses too."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from kgqa.llm.client import Content, Image, Message


def wire_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as JSON data; images are `data:` URLs."""
    return [{"role": message.role, "content": _content(message.content)} for message in messages]


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
